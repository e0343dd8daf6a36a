package robots

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// rule is one compiled Allow or Disallow.
type rule struct {
	pattern string // normalised text; its length is the rule's weight
	text    string // "Disallow: /x", for people
	line    int
	allow   bool
	shape
	// query is the second shape of a pattern that has a query with reserved
	// characters in it: these compare decoded there. Nil for all others.
	query *shape
}

// shape is a pattern taken apart. A path matches if it begins with head, goes
// on with parts[0], and contains the other parts in order; if anchored, the
// last part is where it ends.
type shape struct {
	head     []byte // literal start, found through the matcher's index
	parts    [][]byte
	anchored bool
	least    int // octets that parts need
}

// maxRuleText bounds what a decision quotes of a rule, since every page's
// evidence stores it.
const maxRuleText = 256

func compileRule(l line) rule {
	text := string(appendNormal(nil, l.value, false))
	r := rule{pattern: text, text: ruleText(l), line: l.number, allow: l.allow}
	star, q := strings.IndexByte(text, '*'), strings.IndexByte(text, '?')
	if q < 0 {
		r.shape = takeApart(text, star)
		return r
	}
	decoded := string(appendDecodedQuery(nil, []byte(text)))
	if decoded == text && !strings.ContainsAny(text[q+1:], queryReserved) {
		r.shape = takeApart(text, star)
		return r
	}
	// Only behind a "?" do the forms differ: a head that ends with it at the
	// latest is the head of both shapes.
	headEnd := q + 1
	if star >= 0 {
		headEnd = min(star, headEnd)
	}
	second := takeApart(decoded, headEnd)
	r.shape, r.query = takeApart(text, headEnd), &second
	return r
}

// takeApart splits a normalised pattern at its wildcards. The head ends at
// headEnd, or with the pattern if that is negative.
func takeApart(text string, headEnd int) shape {
	var s shape
	text, s.anchored = strings.CutSuffix(text, "$")
	if headEnd < 0 || headEnd > len(text) {
		headEnd = len(text)
	}
	s.head = literal(text[:headEnd])
	words := strings.Split(text[headEnd:], "*")
	last := len(words) - 1
	for i, w := range words {
		// Runs of wildcards are one wildcard, and a wildcard at the very end
		// of an unanchored pattern says nothing.
		if w != "" || i == 0 || i == last && s.anchored {
			s.parts = append(s.parts, literal(w))
			s.least += len(s.parts[len(s.parts)-1])
		}
	}
	return s
}

// isPrefix reports whether the shape is its head and nothing more.
func (s *shape) isPrefix() bool {
	return !s.anchored && len(s.parts) == 1 && len(s.parts[0]) == 0
}

// literal resolves the two escapes that exist to write wildcards literally.
func literal(w string) []byte {
	if !strings.Contains(w, "%2") {
		return []byte(w)
	}
	return appendNormal(nil, w, true)
}

// match reports whether the rest of a path, behind the head, fits, and how
// many octets it looked at. Each part is searched once, from where the one
// before it ended: the leftmost place is always as good as any later one, so
// there is nothing to come back to.
func (s *shape) match(rest []byte) (ok bool, work int) {
	if s.least > len(rest) {
		return false, 1
	}
	if !bytes.HasPrefix(rest, s.parts[0]) {
		return false, 1 + len(s.parts[0])
	}
	start := len(rest)
	rest = rest[len(s.parts[0]):]
	middle := s.parts[1:]
	if len(middle) == 0 {
		return !s.anchored || len(rest) == 0, 1 + start - len(rest)
	}
	if s.anchored {
		middle = middle[:len(middle)-1]
	}
	for _, w := range middle {
		i := bytes.Index(rest, w)
		if i < 0 {
			return false, 1 + start
		}
		rest = rest[i+len(w):]
	}
	return !s.anchored || bytes.HasSuffix(rest, s.parts[len(s.parts)-1]), 1 + start - len(rest)
}

// ruleText quotes a rule: one line, valid UTF-8, no control characters,
// bounded.
func ruleText(l line) string {
	key := "Disallow: "
	if l.allow {
		key = "Allow: "
	}
	v := l.value
	if len(v) > maxRuleText {
		n := maxRuleText
		for n > maxRuleText-utf8.UTFMax && !utf8.RuneStart(v[n]) {
			n--
		}
		v = v[:n] + "…"
	}
	return key + strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(v, "\ufffd"))
}
