package robots

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
)

// maxOverrides bounds an operator's rule file: every one of them may be tried
// on every URL.
const maxOverrides = 10_000

// Overrides are the operator's own rules, one a line:
//
//	# verb   host           regular expression on path and query
//	disallow *              [?&]sessionid=
//	allow    *.example.org  ^/public/
//
// The first line whose host and expression both match decides. A host is a
// name or a glob in which "*" stands for any text, "*.example.org" not
// covering example.org itself; without a port it holds for every port.
// Expressions are Go's, so their time is linear in the path.
type Overrides struct{ rules []override }

type override struct {
	host  string // lower case
	path  *regexp.Regexp
	text  string
	line  int
	allow bool
}

// ParseRules reads an operator's rule file. Unlike a stranger's robots.txt, a
// line that cannot be understood is an error.
func ParseRules(r io.Reader) (*Overrides, error) {
	o := &Overrides{}
	scan := bufio.NewScanner(r)
	number := 0
	for scan.Scan() {
		number++
		text := strings.TrimSpace(strings.TrimPrefix(scan.Text(), "\ufeff"))
		if text == "" || text[0] == '#' {
			continue
		}
		rule, err := parseOverride(text)
		if err != nil {
			return nil, fmt.Errorf("robots rules line %d: %w", number, err)
		}
		if len(o.rules) == maxOverrides {
			return nil, fmt.Errorf("robots rules line %d: more than %d rules", number, maxOverrides)
		}
		rule.line = number
		o.rules = append(o.rules, rule)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("robots rules line %d: %w", number+1, err)
	}
	return o, nil
}

func parseOverride(text string) (override, error) {
	verb, rest := cutWord(text)
	host, expr := cutWord(rest)
	o := override{host: strings.ToLower(host), text: text}
	switch strings.ToLower(verb) {
	case "allow":
		o.allow = true
	case "disallow":
	default:
		return o, fmt.Errorf("unknown verb %q: want allow or disallow", verb)
	}
	if expr == "" {
		return o, fmt.Errorf("want three parts: %s, a host or *, and a regular expression", verb)
	}
	var err error
	if o.path, err = regexp.Compile(expr); err != nil {
		return o, fmt.Errorf("bad expression: %w", err)
	}
	return o, nil
}

func cutWord(s string) (word, rest string) {
	i := strings.IndexAny(s, blank)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.Trim(s[i:], blank)
}

// Check returns the operator's decision about a path and query on a host
// (name, or name:port), and false if no rule of theirs applies.
func (o *Overrides) Check(host, pathAndQuery string) (Decision, bool) {
	if o == nil {
		return Decision{}, false
	}
	host = strings.ToLower(host)
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	for i := range o.rules {
		r := &o.rules[i]
		if (hostGlob(r.host, name) || hostGlob(r.host, host)) && r.path.MatchString(pathAndQuery) {
			return Decision{Allowed: r.allow, Rule: r.text, Pattern: r.path.String(), Line: r.line}, true
		}
	}
	return Decision{}, false
}

// hostGlob matches with "*" as any text: leftmost parts, no backtracking.
func hostGlob(glob, host string) bool {
	first, rest, starred := strings.Cut(glob, "*")
	if !starred {
		return glob == host
	}
	host, ok := strings.CutPrefix(host, first)
	if !ok {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(host, part)
		}
		i := strings.Index(host, part)
		if i < 0 {
			return false
		}
		host, rest = host[i+len(part):], next
	}
}
