package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/extract"
	"tiptoe/internal/robots"
	"tiptoe/internal/tui"
	"tiptoe/internal/weburl"
)

type urlCmd struct {
	Base string   `help:"Resolve relative references against this URL." placeholder:"URL"`
	JSON bool     `help:"One JSON object a line."`
	URLs []string `arg:"" name:"url" help:"URLs or references."`
}

func (c *urlCmd) Help() string {
	return `Examples:
  tiptoe url 'HTTP://Example.com:80/a/../b?q=1#top'
  tiptoe url --base https://example.com/docs/ ../about 'javascript:void(0)'

Exit code 0 if all are valid, 1 otherwise.`
}

type urlAnswer struct {
	Input  string `json:"input"`
	URL    string `json:"url,omitempty"`
	Host   string `json:"host,omitempty"`
	Domain string `json:"domain,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (c *urlCmd) Run(st *streams) error {
	var base *weburl.Base
	if c.Base != "" {
		b, err := weburl.ParseSeed(c.Base)
		if err != nil {
			return usageError{fmt.Errorf("--base: %q: %w", c.Base, err)}
		}
		base = weburl.NewBase(b)
	}
	w := bufio.NewWriter(st.out)
	bad := false
	for _, raw := range c.URLs {
		a := urlAnswer{Input: hideCredentials(raw)}
		var u weburl.URL
		var err error
		if base != nil {
			u, err = base.Resolve(raw)
		} else {
			u, err = weburl.Parse(raw)
		}
		if err != nil {
			a.Error, bad = err.Error(), true
		} else {
			a.URL, a.Host, a.Domain = u.String(), u.HostKey(), u.Domain()
		}
		switch {
		case c.JSON:
			writeJSON(w, a)
		case a.Error != "":
			fmt.Fprintf(w, "refused %s: %s\n", tui.Clean(a.Input, 0), tui.Clean(a.Error, 0))
		default:
			fmt.Fprintf(w, "%s host=%s domain=%s\n", a.URL, a.Host, a.Domain)
		}
	}
	return finish(w, bad)
}

// hideCredentials cuts user name and password out of whatever was typed, a
// URL or not.
func hideCredentials(raw string) string {
	begin := strings.Index(raw, "//") + 2
	if begin < 2 {
		begin = 0
	}
	end := len(raw)
	if i := strings.IndexAny(raw[begin:], `/?#\`); i >= 0 {
		end = begin + i
	}
	at := strings.LastIndexByte(raw[begin:end], '@')
	if at < 0 || begin == 0 && !strings.Contains(raw[:at], ":") {
		return raw
	}
	return raw[:begin] + raw[begin+at+1:]
}

type extractCmd struct {
	Base string `help:"Resolve links against this URL; without it they are shown as written." placeholder:"URL"`
	JSON bool   `help:"Links and metadata as one JSON object."`
	Type string `help:"Content-Type to assume." placeholder:"T"`
	File string `arg:"" help:"HTML file, or - for standard input."`
}

func (c *extractCmd) Help() string {
	return `Examples:
  tiptoe extract page.html
  curl -s https://example.com/ | tiptoe extract --base https://example.com/ -
  tiptoe extract --json page.html | jq .title`
}

type extractAnswer struct {
	Title       string        `json:"title"`
	Description string        `json:"description,omitempty"`
	Lang        string        `json:"lang,omitempty"`
	Charset     string        `json:"charset"`
	Base        string        `json:"base,omitempty"`
	Canonical   string        `json:"canonical,omitempty"`
	Robots      string        `json:"robots,omitempty"`
	Links       []extractLink `json:"links"`
}

type extractLink struct {
	URL      string `json:"url"`
	Kind     string `json:"kind"`
	Nofollow bool   `json:"nofollow,omitempty"`
	Hreflang string `json:"hreflang,omitempty"`
	Error    string `json:"error,omitempty"`
}

func (c *extractCmd) Run(st *streams) error {
	body, err := readInput(c.File, st.in)
	if err != nil {
		return err
	}
	var base *weburl.Base
	if c.Base != "" {
		u, err := weburl.ParseSeed(c.Base)
		if err != nil {
			return usageError{fmt.Errorf("--base: %q: %w", c.Base, err)}
		}
		base = weburl.NewBase(u)
	}
	ct := c.Type
	if ct == "" {
		ct = "text/html"
	}
	var sc extract.Scanner
	doc := sc.Scan(body, ct)
	if base != nil && doc.Base != "" {
		if u, err := base.Resolve(doc.Base); err == nil {
			base = weburl.NewBase(u)
		}
	}
	a := extractAnswer{Title: doc.Title, Description: doc.Description, Lang: doc.Lang, Charset: doc.Charset,
		Base: doc.Base, Canonical: doc.Canonical, Robots: doc.Robots.String(), Links: []extractLink{}}
	w := bufio.NewWriter(st.out)
	bad := false
	for _, l := range doc.Links {
		link := extractLink{URL: string(l.Ref), Kind: l.Kind.String(), Nofollow: l.Rel.Has(extract.RelNoFollow), Hreflang: string(l.Lang)}
		if base != nil {
			u, err := base.Resolve(string(l.Ref))
			if err != nil {
				if !c.JSON {
					continue // mailto:, javascript: and the like are no URLs to fetch
				}
				link.Error = err.Error()
			} else {
				link.URL = u.String()
			}
		}
		if c.JSON {
			a.Links = append(a.Links, link)
		} else {
			fmt.Fprintln(w, tui.Clean(link.URL, 0))
		}
	}
	if c.JSON {
		writeJSON(w, a)
	}
	return finish(w, bad)
}

type robotsCmd struct {
	Check robotsCheckCmd `cmd:"" help:"Say for each URL whether it is allowed, by which rule and line."`
}

type robotsCheckCmd struct {
	Agent  string   `help:"User agent or product token." default:"tiptoe"`
	Policy string   `help:"How agents are matched: rfc9309 or open." default:"rfc9309" enum:"rfc9309,open"`
	JSON   bool     `help:"One JSON object a line."`
	Source string   `arg:"" name:"file|url" help:"A robots.txt file, - for standard input, or the URL of a site."`
	URLs   []string `arg:"" name:"url" help:"URLs or paths to check."`
}

func (c *robotsCheckCmd) Help() string {
	return `Examples:
  tiptoe robots check robots.txt /private/ /index.html
  tiptoe robots check --agent Googlebot https://example.com /search?q=1
  curl -s https://example.com/robots.txt | tiptoe robots check - /

Exit code 0 if all are allowed, 1 otherwise.`
}

type robotsAnswer struct {
	URL        string   `json:"url"`
	Allowed    bool     `json:"allowed"`
	Rule       string   `json:"rule,omitempty"`
	Line       int      `json:"line,omitempty"`
	Agent      string   `json:"agent"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
}

func (c *robotsCheckCmd) Run(st *streams) error {
	policy, err := robots.ParsePolicy(c.Policy)
	if err != nil {
		return usageError{err}
	}
	m, err := c.matcher(st, policy)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(st.out)
	bad := false
	for _, raw := range c.URLs {
		path := raw
		if !strings.HasPrefix(raw, "/") {
			u, err := weburl.ParseSeed(raw)
			if err != nil {
				return usageError{fmt.Errorf("%q: %w; write a URL, or a path that begins with /", raw, err)}
			}
			path = u.RequestURI()
		}
		d := m.Check(path)
		a := robotsAnswer{URL: hideCredentials(raw), Allowed: d.Allowed, Rule: d.Rule, Line: d.Line, Agent: m.Agent()}
		if delay, line := m.CrawlDelay(); line > 0 {
			s := delay.Seconds()
			a.CrawlDelay = &s
		}
		bad = bad || !d.Allowed
		if c.JSON {
			writeJSON(w, a)
			continue
		}
		fmt.Fprintln(w, robotsLine(a))
	}
	return finish(w, bad)
}

func robotsLine(a robotsAnswer) string {
	verdict := "allowed"
	if !a.Allowed {
		verdict = "blocked"
	}
	s := verdict + " " + tui.Clean(a.URL, 0)
	switch {
	case a.Line > 0:
		s += fmt.Sprintf(" rule=%q line=%d", tui.Clean(a.Rule, 200), a.Line)
	case a.Rule != "":
		s += fmt.Sprintf(" rule=%q", tui.Clean(a.Rule, 200))
	default:
		s += " rule=none"
	}
	if a.CrawlDelay != nil {
		s += fmt.Sprintf(" crawl-delay=%gs", *a.CrawlDelay)
	}
	return s
}

func (c *robotsCheckCmd) matcher(st *streams, policy robots.Policy) (*robots.Matcher, error) {
	if !strings.Contains(c.Source, "://") {
		body, err := readInput(c.Source, st.in)
		if err != nil {
			return nil, err
		}
		return robots.Parse(body).For(c.Agent, policy), nil
	}
	u, err := weburl.Parse(c.Source)
	if err != nil {
		return nil, usageError{fmt.Errorf("%q: %w", c.Source, err)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return app.FetchRobots(ctx, config.Web{UserAgent: c.Agent, Timeout: 10 * time.Second, Client: config.Client{HTTP2: true}}, u, c.Agent, policy)
}

// readInput reads a file, or standard input for "-".
func readInput(name string, stdin io.Reader) ([]byte, error) {
	const most = 64 << 20
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && len(b) > most {
		err = errors.New("input is larger than 64 MiB")
	}
	return b, err
}

func writeJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a failed write shows when the writer is flushed
}

// finish flushes and turns "not all were fine" into exit code 1.
func finish(w *bufio.Writer, bad bool) error {
	if err := w.Flush(); err != nil {
		return err
	}
	if bad {
		return exitWith(exitError)
	}
	return nil
}
