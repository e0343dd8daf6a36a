package extract

import "strings"

// Robots is a set of the directives of meta robots and X-Robots-Tag. Only
// NoFollow and NoIndex mean something to a crawler; the others are recorded.
type Robots uint8

const (
	NoIndex Robots = 1 << iota
	NoFollow
	NoArchive
	NoSnippet
	UnavailableAfter // present; the date is not judged
)

// Has reports whether all of want is in r.
func (r Robots) Has(want Robots) bool { return r&want == want }

// String lists the directives as they are written, separated by commas.
func (r Robots) String() string {
	var words []string
	for _, d := range [...]struct {
		bit  Robots
		name string
	}{{NoIndex, "noindex"}, {NoFollow, "nofollow"}, {NoArchive, "noarchive"}, {NoSnippet, "nosnippet"},
		{UnavailableAfter, "unavailable_after"}} {
		if r.Has(d.bit) {
			words = append(words, d.name)
		}
	}
	return strings.Join(words, ",")
}

// RobotsTag reads the values of all X-Robots-Tag headers of a response. A
// directive may be addressed ("otherbot: noindex, nofollow"); the address
// holds until the end of its header or the next address, and those to others
// than agent, our product token, are passed over. Contradictions are settled
// as search engines do: what forbids wins.
func RobotsTag(values []string, agent string) Robots {
	var r Robots
	for _, v := range values {
		ours := true
		for part := range strings.SplitSeq(v, ",") {
			part = strings.Trim(part, " \t")
			if name, rest, ok := strings.Cut(part, ":"); ok {
				name = strings.Trim(name, " \t")
				if isAgentName(name) {
					ours = strings.EqualFold(name, agent)
					part = strings.Trim(rest, " \t")
				}
			}
			if ours {
				r |= directive(part)
			}
		}
	}
	return r
}

// isAgentName tells "otherbot:" from "unavailable_after:", "max-snippet:" and
// the colons of a date.
func isAgentName(name string) bool {
	if name == "" || !isLetter(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '-' && c != '_' {
			return false
		}
	}
	switch strings.ToLower(name) {
	case "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return false
	}
	return true
}

// parseDirectives reads the content of a meta robots element.
func parseDirectives(content []byte) Robots {
	var r Robots
	for i := 0; i <= len(content); i++ {
		start := i
		for i < len(content) && content[i] != ',' {
			i++
		}
		r |= directive(essence(content[start:i]))
	}
	return r
}

func directive[T string | []byte](d T) Robots {
	switch {
	case equalFold(d, "noindex"):
		return NoIndex
	case equalFold(d, "nofollow"):
		return NoFollow
	case equalFold(d, "none"):
		return NoIndex | NoFollow
	case equalFold(d, "noarchive"):
		return NoArchive
	case equalFold(d, "nosnippet"):
		return NoSnippet
	case len(d) >= 17 && equalFold(d[:17], "unavailable_after"):
		return UnavailableAfter
	}
	return 0
}
