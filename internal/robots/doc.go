// Package robots answers: may this agent fetch this path, and which line of
// the site's robots.txt says so?
//
// It is RFC 9309 as a pure room: bytes in, decisions out. It opens no
// connection, reads no clock and starts no goroutine; whoever fetches the file
// (one guarded client, single flight per host) hands over status, headers and
// body.
//
//	file := robots.Parse(body)                       // once per fetched copy
//	m := file.For("tiptoe/1.0 (+https://…)", policy) // once per copy and agent
//	d := m.Check("/shop?page=2")                     // once per URL
//
// # Guarantees
//
//   - Parse never fails and never panics: a file of rubbish has no rules.
//   - Every decision made by a rule names it and its line, counted from 1 in
//     the file as served. A decision without a line was made by no rule.
//   - Check does not allocate for paths up to pathBuffer bytes, and its cost is
//     bounded by maxWork whatever the site wrote: patterns are matched left to
//     right without backtracking, so one rule costs at most one pass over the
//     path. A check that would exceed the bound is refused (TooCostly), since
//     guessing "allowed" would be impolite.
//   - File and Matcher are immutable after construction and safe for
//     concurrent use.
//
// # What the standard says, and where this house adds to it
//
// Groups of one product token are merged, wherever they stand; "*" is used
// only if no group names the agent; a named group without rules allows all.
// The longest pattern wins, measured in octets of its normalised text; a tie
// goes to Allow. "/robots.txt" itself is always allowed. Paths and patterns
// are compared octet by octet after normalisation: percent-encoded unreserved
// characters are decoded, all other escapes are upper-cased, and octets that
// may not stand in a URL are encoded. "%2A" and "%24" in a pattern are the
// literal "*" and "$". Inside a query ":", "/", "?", "[", "]" and "@" equal
// their escaped forms, as in the standard's table of examples; anywhere else a
// reserved character and its escape are different.
//
// The tests split the two: RFC9309_… rows are the standard's, House_… rows are
// ours. Ours follow Google's published parser where it is lenient (a missing
// colon, seven misspelt keys, patterns that begin with "*", a version after
// the agent's name), and add: digits and dots belong to agent names, so "bot1"
// and "bot2" differ; a User-agent line without a usable name opens a group for
// nobody; Crawl-delay holds for the agents directly above it even where the
// standard's grouping puts more agents into the group; of several delays the
// longest counts.
//
// # What a crash loses
//
// Nothing: there is no state here. A copy of the file lives with its fetcher.
package robots
