package scope

import (
	"fmt"
	"regexp"
	"strings"

	"tiptoe/internal/weburl"
)

// pattern is one compiled include or exclude pattern. Exactly one of its
// kinds is in use; the package comment has the syntax.
type pattern struct {
	text    string
	admits  string         // the rule of a URL that an include pattern lets in
	request bool           // held against path and query only
	re      *regexp.Regexp // re:
	glob    []string       // the parts between stars
	prefix  string
	substr  string
}

func compile(what string, texts []string) ([]pattern, error) {
	var out []pattern
	for _, t := range texts {
		p := pattern{text: t, admits: "included by pattern " + t, request: strings.HasPrefix(t, "/")}
		expr, isExpr := strings.CutPrefix(t, "re:")
		switch {
		case isExpr:
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, fmt.Errorf("%s pattern %q: %w", what, t, err)
			}
			if re.MatchString("") {
				return nil, fmt.Errorf("%s pattern %q matches everything", what, t)
			}
			p.re = re
		case strings.TrimSpace(t) == "":
			return nil, fmt.Errorf("%s pattern %q is empty", what, t)
		case strings.Trim(t, "*") == "":
			return nil, fmt.Errorf("%s pattern %q matches everything", what, t)
		case strings.ContainsAny(t, " \t\r\n#"):
			return nil, fmt.Errorf("%s pattern %q can match nothing: a canonical URL has no space and no fragment", what, t)
		case strings.Contains(t, "*"):
			p.glob = strings.Split(t, "*")
		case p.request:
			p.prefix = t
		default:
			p.substr = t
		}
		out = append(out, p)
	}
	return out, nil
}

func firstMatch(ps []pattern, u weburl.URL) *pattern {
	for i := range ps {
		if ps[i].match(u) {
			return &ps[i]
		}
	}
	return nil
}

func (p *pattern) match(u weburl.URL) bool {
	s := u.String()
	if p.request && p.re == nil {
		s = u.RequestURI()
	}
	switch {
	case p.re != nil:
		return p.re.MatchString(s)
	case p.glob != nil:
		return matchGlob(p.glob, s)
	case p.prefix != "":
		return strings.HasPrefix(s, p.prefix)
	default:
		return strings.Contains(s, p.substr)
	}
}

// matchGlob takes the first part as a prefix, the last as a suffix, and finds
// each part between them as early as possible, which is always good enough.
func matchGlob(parts []string, s string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
