package robots

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// MaxBytes is how much of a robots.txt is read: the least that RFC 9309 asks
// of a crawler. The line the limit falls into is dropped whole, since half a
// pattern is another pattern.
const MaxBytes = 500 << 10

// File is a parsed robots.txt.
type File struct {
	groups    []group
	runs      []run
	sitemaps  []string
	truncated bool
}

// group is a run of User-agent lines and the rules below them.
type group struct {
	agents []agent
	rules  []line
}

type agent struct {
	name string // lower-case product token, "*", or "" for nobody
	run  int    // index into File.runs
}

// run is what neighbouring User-agent lines share beside their group: agents
// that stand above and below a Crawl-delay are of one group but of two runs.
type run struct {
	delay time.Duration
	line  int // 0: no Crawl-delay
}

// line is an Allow or Disallow as written.
type line struct {
	value  string
	number int
	allow  bool
}

// Parse reads a robots.txt. Whatever it does not understand it skips.
func Parse(body []byte) *File {
	f := &File{}
	if len(body) > MaxBytes {
		body, f.truncated = cut(body), true
	}
	text := strings.TrimPrefix(string(body), "\ufeff")

	p := parser{file: f}
	for number := 1; text != ""; number++ {
		var raw string
		raw, text = nextLine(text)
		p.line(raw, number)
	}
	return f
}

// Sitemaps lists the values of the Sitemap lines as written, in order, none
// twice. They are a stranger's text: parse, scope and guard them like links.
func (f *File) Sitemaps() []string { return f.sitemaps }

// Truncated reports whether the file was longer than MaxBytes.
func (f *File) Truncated() bool { return f.truncated }

// cut shortens body to whole lines within MaxBytes.
func cut(body []byte) []byte {
	if c := body[MaxBytes]; c == '\n' || c == '\r' {
		return body[:MaxBytes]
	}
	body = body[:MaxBytes]
	return body[:bytes.LastIndexAny(body, "\r\n")+1]
}

// nextLine splits after the first CR, LF or CRLF.
func nextLine(s string) (line, rest string) {
	i := strings.IndexAny(s, "\r\n")
	switch {
	case i < 0:
		return s, ""
	case strings.HasPrefix(s[i:], "\r\n"):
		return s[:i], s[i+2:]
	default:
		return s[:i], s[i+1:]
	}
}

type parser struct {
	file *File

	// inRules is true once the current group has a rule: the next User-agent
	// line opens another group. Only Allow and Disallow set it; Sitemap,
	// Crawl-delay and unknown lines must not end a row of User-agent lines.
	inRules bool
	// delayed is true once the current run has a Crawl-delay: the next
	// User-agent line opens another run.
	delayed bool
}

func (p *parser) line(raw string, number int) {
	key, value, ok := split(raw)
	if !ok {
		return
	}
	switch keyOf(key) {
	case keyAgent:
		p.agent(value)
	case keyAllow:
		p.rule(line{value, number, true})
	case keyDisallow:
		p.rule(line{value, number, false})
	case keyDelay:
		p.delay(value, number)
	case keySitemap:
		if value != "" && !slices.Contains(tail(p.file.sitemaps, sitemapDedupe), value) {
			p.file.sitemaps = append(p.file.sitemaps, value)
		}
	}
}

// sitemapDedupe bounds how far back a repeated Sitemap line is noticed, so
// that a file of nothing but Sitemap lines stays cheap to parse.
const sitemapDedupe = 64

func tail(s []string, n int) []string { return s[max(0, len(s)-n):] }

func (p *parser) agent(value string) {
	f := p.file
	if len(f.groups) == 0 || p.inRules {
		f.groups = append(f.groups, group{})
		f.runs = append(f.runs, run{})
	} else if p.delayed {
		f.runs = append(f.runs, run{})
	}
	p.inRules, p.delayed = false, false
	g := &f.groups[len(f.groups)-1]
	g.agents = append(g.agents, agent{agentName(value), len(f.runs) - 1})
}

func (p *parser) rule(l line) {
	if len(p.file.groups) == 0 {
		return // a rule before any User-agent line belongs to nobody
	}
	g := &p.file.groups[len(p.file.groups)-1]
	p.inRules = true
	// An empty pattern restricts nothing and permits nothing, and a pattern
	// that begins with neither "/" nor a wildcard matches no path.
	if l.value != "" && (l.value[0] == '/' || l.value[0] == '*') {
		g.rules = append(g.rules, l)
	}
}

func (p *parser) delay(value string, number int) {
	d, ok := parseDelay(value)
	if !ok || len(p.file.runs) == 0 {
		return
	}
	p.delayed = true
	if r := &p.file.runs[len(p.file.runs)-1]; r.line == 0 || d > r.delay {
		*r = run{d, number}
	}
}
