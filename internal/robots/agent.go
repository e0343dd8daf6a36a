package robots

import (
	"fmt"
	"strings"
)

// Policy is how strictly robots.txt is read when it leaves room.
type Policy uint8

const (
	// RFC9309 matches agents by exact product token and treats a server that
	// fails to deliver its robots.txt as one that disallows everything.
	RFC9309 Policy = iota
	// Open also matches agents whose name contains ours or is contained in it,
	// and after the retries treats a failing server as one without rules.
	Open
)

// ParsePolicy reads a policy's name.
func ParsePolicy(name string) (Policy, error) {
	switch strings.ToLower(name) {
	case "rfc9309":
		return RFC9309, nil
	case "open":
		return Open, nil
	}
	return RFC9309, fmt.Errorf("unknown robots policy %q: want rfc9309 or open", name)
}

// String returns the policy's name.
func (p Policy) String() string {
	if p == Open {
		return "open"
	}
	return "rfc9309"
}

// ProductToken finds the name by which robots.txt addresses a User-Agent:
// "tiptoe" in "tiptoe/1.0 (+https://example.org)", and also in
// "Mozilla/5.0 (compatible; tiptoe/1.0)", where the first name is everybody's.
// It returns "" if there is none.
func ProductToken(userAgent string) string {
	s := strings.TrimLeft(userAgent, blank)
	name := leadingToken(s)
	if !strings.EqualFold(name, "mozilla") {
		return name
	}
	const mark = "(compatible;"
	for i := 0; i+len(mark) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(mark)], mark) {
			if inner := leadingToken(strings.TrimLeft(s[i+len(mark):], blank)); inner != "" {
				return inner
			}
			break
		}
	}
	return name
}

func leadingToken(s string) string {
	n := 0
	for n < len(s) && isTokenByte(s[n]) {
		n++
	}
	return strings.TrimRight(s[:n], ".")
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// agentName reads the value of a User-agent line.
func agentName(value string) string {
	if value == "*" || strings.HasPrefix(value, "* ") || strings.HasPrefix(value, "*\t") {
		return "*"
	}
	return strings.ToLower(ProductToken(value))
}

// For selects the rules for an agent, given by product token or by its whole
// User-Agent, merges them and compiles them.
func (f *File) For(product string, policy Policy) *Matcher {
	chosen := f.choose(strings.ToLower(ProductToken(product)), policy)
	m := &Matcher{agent: chosen}
	if chosen == "" {
		return m
	}
	var rules []line
	for i := range f.groups {
		g := &f.groups[i]
		named := false
		for _, a := range g.agents {
			if a.name != chosen {
				continue
			}
			named = true
			if r := f.runs[a.run]; r.line > 0 && (m.delayLine == 0 || r.delay > m.delay) {
				m.delay, m.delayLine = r.delay, r.line
			}
		}
		if named {
			rules = append(rules, g.rules...)
		}
	}
	m.compile(rules)
	return m
}

// choose returns the agent name whose groups apply, or "" if none do.
func (f *File) choose(name string, policy Policy) string {
	var exact, star bool
	partial := ""
	for i := range f.groups {
		for _, a := range f.groups[i].agents {
			switch {
			case a.name == "":
			case a.name == "*":
				star = true
			case name == "":
			case a.name == name:
				exact = true
			case len(a.name) > len(partial) && (strings.Contains(a.name, name) || strings.Contains(name, a.name)):
				partial = a.name // the longest such name, the first of its length
			}
		}
	}
	switch {
	case exact:
		return name
	case policy == Open && partial != "":
		return partial
	case star:
		return "*"
	default:
		return ""
	}
}
