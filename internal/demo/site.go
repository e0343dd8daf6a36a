package demo

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"sync"
	"time"

	"tiptoe/internal/webfarm"
	"tiptoe/internal/webfarm/books"
	"tiptoe/internal/webfarm/wire"
)

// maxBooked bounds the URLs of one site that get a page number; the calendar
// would otherwise fill the memory of somebody who lets it run for days.
const maxBooked = 100_000

// link is an anchor: where to, and its words.
type link struct{ href, text string }

// page is one URL of a site. The zero status means 200.
type page struct {
	title, text string // text: paragraphs separated by empty lines
	links       []link
	status      int
	location    string // for redirects
	contentType string
	body        []byte // instead of the layout
	failures    int    // answers with 503 before the first success
	closed      bool   // robots.txt forbids it
	head        string // further markup for the head
}

// site is one host: its pages and its manners. It implements wire.Handler.
type site struct {
	name    string // first label of the host
	title   string
	shows   string
	robots  string // "" means 404
	pages   map[string]*page
	dynamic func(target string) *page // for what is not in pages
	delay   time.Duration
	rate    webfarm.RateLimit

	web    *Web
	book   *books.Host
	bucket webfarm.Bucket

	mu      sync.Mutex
	numbers map[string]int // target to page number in the book
}

// Serve answers one request.
func (s *site) Serve(r *wire.Request, a *wire.Answer) {
	a.Delay = s.delay
	if ok, wait := s.bucket.Take(s.web.recorder.Now(), s.rate); !ok {
		a.Status, a.Entry.Kind, a.Entry.RetryAfter = 429, books.Throttled, wait
		if wait > 0 {
			a.Header = "Retry-After: " + strconv.Itoa(int(wait.Seconds())) + "\r\n"
		}
		s.render(a, &page{title: "One at a time, please", text: "The baker has only two hands. Come back in a moment."})
		return
	}
	target := string(r.Target)
	if target == "/robots.txt" {
		a.Entry.Kind, a.Type = books.Robots, "text/plain; charset=utf-8"
		if s.robots == "" {
			a.Status = 404
		}
		a.WriteString(s.robots)
		return
	}
	p := s.pages[target]
	if p == nil && s.dynamic != nil {
		p = s.dynamic(target)
	}
	if p == nil {
		p = &page{status: 404, title: "Nothing here", text: "Perhaps there was once. The link that brought you does not know either.",
			links: []link{{"/", "Back to the front door"}}}
	}
	s.answer(p, target, r.IsHead(), a)
}

func (s *site) answer(p *page, target string, isHead bool, a *wire.Answer) {
	a.Entry.Closed = p.closed
	number := s.number(target)
	if p.failures > 0 && s.book.Ask(number) < p.failures {
		a.Status, a.Entry.Kind = 503, books.Failed
		s.render(a, &page{title: "Just a moment", text: "The tea is still in the pot. Try again and it will be in the cup."})
		return
	}
	if p.status != 0 {
		a.Status = p.status
	}
	switch {
	case p.location != "":
		a.Entry.Kind = books.Redirect
		a.Header = "Location: " + p.location + "\r\n"
	case a.Status >= 500:
		a.Entry.Kind = books.Failed
	case a.Status >= 400:
		a.Entry.Kind = books.NotFound
	case strings.HasPrefix(target, "/sitemap"):
		a.Entry.Kind = books.Sitemap
	case !isHead:
		a.Entry.Kind, a.Entry.Page = books.Page, number
	}
	if p.contentType != "" {
		a.Type = p.contentType
	}
	if p.body != nil {
		a.Write(p.body)
		return
	}
	s.render(a, p)
}

// number gives every target of the site a number for its book; -1 once there
// are too many.
func (s *site) number(target string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.numbers[target]
	if !ok {
		if len(s.numbers) >= maxBooked {
			return -1
		}
		if s.numbers == nil {
			s.numbers = map[string]int{}
		}
		n = len(s.numbers)
		s.numbers[target] = n
	}
	return n
}

const style = `body{font:17px/1.6 Georgia,serif;max-width:38em;margin:3em auto;padding:0 1em;color:#222;background:#fdfbf7}` +
	`a{color:#0a5c6b}header{border-bottom:1px solid #ccc}footer{margin-top:3em;font-size:.85em;color:#777}`

// render writes a page in the layout all hosts of the demo share.
func (s *site) render(a *wire.Answer, p *page) {
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>")
	b.WriteString(html.EscapeString(p.title + " · " + s.title))
	b.WriteString("</title>\n<style>" + style + "</style>\n" + p.head + "</head>\n<body>\n<header><p><a href=\"/\">")
	b.WriteString(html.EscapeString(s.title))
	b.WriteString("</a></p></header>\n<main>\n<h1>" + html.EscapeString(p.title) + "</h1>\n")
	for para := range strings.SplitSeq(p.text, "\n\n") {
		b.WriteString("<p>" + html.EscapeString(strings.TrimSpace(para)) + "</p>\n")
	}
	if len(p.links) > 0 {
		b.WriteString("<ul>\n")
		for _, l := range p.links {
			b.WriteString("<li><a href=\"" + html.EscapeString(l.href) + "\">" + html.EscapeString(l.text) + "</a></li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</main>\n<footer><p>A made-up host of the tiptoe demo: " + html.EscapeString(s.shows) + ".</p></footer>\n</body>\n</html>\n")
	a.Write(b.Bytes())
}

// chain links a list of paths to each other: home lists all, each page leads
// to the next one.
func (s *site) chain(home string, intro string, prefix string, entries [][2]string) {
	front := &page{title: home, text: intro}
	for n, e := range entries {
		at := prefix + slug(e[0])
		front.links = append(front.links, link{at, e[0]})
		next := entries[(n+1)%len(entries)]
		s.pages[at] = &page{title: e[0], text: e[1], links: []link{{prefix + slug(next[0]), "Next: " + next[0]}, {"/", "All of them"}}}
	}
	s.pages["/"] = front
}

// slug turns a title into the last segment of a path.
func slug(title string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(title) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		} else if r != '\'' {
			dash = true
		}
	}
	return b.String()
}
