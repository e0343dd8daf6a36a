// Package webfarm answers: what would a web of this shape have seen of the
// crawler?
//
// A Farm is a simulated web on real sockets. Its pages are never stored: page
// p of host h is computed from (seed, h, p) when somebody asks for it, so a
// farm of ten million pages starts at once, and two farms with one Config are
// the same web, byte for byte (only the port, which the links carry, differs).
// It is cheap on purpose: the farm must never be the slow side of a
// measurement.
//
// # The web it simulates
//
// Every host has Pages pages. Page 0 is "/"; the children of page p in a tree
// of Fanout are linked from p, so every page can be reached from its host's
// home page; the remaining links of a page go to pages drawn at random, a
// share CrossHost of them on other hosts. Links are written in every usual
// way: absolute, from the root, relative to the page, with a fragment. A share
// Redirects of the pages is linked only through /go/N, which redirects to the
// page. Pages are valid HTML of exactly PageSize bytes, or as many as
// their links need.
//
// # How a host behaves
//
// Each of these is drawn from (seed, host, page, how often it was asked
// before), so a run can be repeated: Latency with jitter; a share Errors of
// answers is 503; a RateLimit is a token bucket that answers 429, with
// Retry-After if it has one, and stays silent until it ends. robots.txt is
// RobotsTxt or made from CrawlDelay; ClosedLinks puts a link into an area that
// robots.txt closes on every page; Sitemap publishes all pages.
//
// # Where hosts live
//
//   - OneAddress: the only host is the listening address itself.
//   - Names: hosts are virtual (h0000.farm.test, ...) on one listener; the
//     crawler must be told where they are (Resolve).
//   - Addresses: 127.x.y.z, one listener each, all on one port.
//   - Ports: one listener each on the listening address.
//
// # Books
//
// The farm keeps its own accounts (package books) and knows the set of URLs a
// complete crawl must have fetched (URLs), so completeness, duplicates and
// politeness are measured at the web and never taken from the crawler's word.
// The same accounts are at /-/books (JSON), the URLs at /-/urls (one a line),
// POST /-/reset empties the books; requests to /-/ are not booked and no page
// links there.
//
// Close stops all listeners and connections and waits for them. Nothing is
// written to disk: whoever wants the books after a crash of the farm has lost
// them.
package webfarm
