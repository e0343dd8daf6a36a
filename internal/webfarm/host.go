package webfarm

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"tiptoe/internal/webfarm/books"
	"tiptoe/internal/webfarm/wire"
)

const (
	closedPrefix = "/closed/"
	// perSitemap is the standard's limit of entries in one file.
	perSitemap = 50_000
)

// host answers the requests of one host of the farm.
type host struct {
	farm   *Farm
	number int
	book   *books.Host
	bucket Bucket
}

// Serve answers a request. Everything of a host counts against its rate
// limit, robots.txt and sitemaps too.
func (h *host) Serve(r *wire.Request, a *wire.Answer) {
	p := h.farm.plan
	if !r.IsHead() && string(r.Method) != "GET" {
		a.Status = http.StatusMethodNotAllowed
		a.Header = "Allow: GET, HEAD\r\n"
		return
	}
	path := r.Path()
	a.Entry.Closed = bytes.HasPrefix(path, []byte(closedPrefix))
	if ok, wait := h.bucket.Take(h.farm.recorder.Now(), p.Rate); !ok {
		a.Status = http.StatusTooManyRequests
		a.Entry.Kind = books.Throttled
		a.Delay = p.delay(h.number, -1, 0)
		if wait > 0 {
			a.Header = "Retry-After: " + strconv.Itoa(int(wait.Seconds())) + "\r\n"
			a.Entry.RetryAfter = wait
		}
		a.WriteString("<!doctype html><title>Too many requests</title><p>Slow down, please.</p>\n")
		return
	}
	// The farm's pages have no queries: an added one is another URL.
	if len(path) == len(r.Target) {
		if page, ok := p.page(h.number, path); ok {
			h.page(page, a, r.IsHead())
			return
		}
		if h.special(path, a) {
			return
		}
	}
	a.Delay = p.delay(h.number, -1, 0)
	a.Status = http.StatusNotFound
	a.Entry.Kind = books.NotFound
	a.WriteString("<!doctype html><title>Not found</title><p>There is no such page.</p>\n")
}

func (h *host) page(page int, a *wire.Answer, isHead bool) {
	p := h.farm.plan
	asked := 0
	if p.Errors > 0 || p.Jitter > 0 {
		asked = h.book.Ask(page)
	}
	a.Delay = p.delay(h.number, page, asked)
	if p.fails(h.number, page, asked) {
		a.Status = http.StatusServiceUnavailable
		a.Entry.Kind = books.Failed
		a.WriteString("<!doctype html><title>Unavailable</title><p>Try again.</p>\n")
		return
	}
	if !isHead {
		a.Entry.Kind, a.Entry.Page = books.Page, page
	}
	a.Append(func(dst []byte) []byte { return p.appendPage(dst, h.number, page) })
}

// special answers what is neither a page nor an error.
func (h *host) special(path []byte, a *wire.Answer) bool {
	p := h.farm.plan
	s := string(path)
	switch {
	case s == "/robots.txt":
		if p.NoRobots {
			a.Status = http.StatusNotFound
		}
		a.Entry.Kind = books.Robots
		a.Type = "text/plain; charset=utf-8"
		a.WriteString(h.robots())
	case p.Sitemap && strings.HasPrefix(s, "/sitemap"):
		if !h.sitemap(s, a) {
			return false
		}
		a.Entry.Kind = books.Sitemap
		a.Type = "application/xml"
	case strings.HasPrefix(s, redirectPrefix):
		to, ok := number(path[len(redirectPrefix):])
		if !ok || to >= p.Pages || !p.redirected(h.number, to) {
			return false
		}
		a.Entry.Kind = books.Redirect
		a.Status = http.StatusMovedPermanently
		a.Header = "Location: " + string(p.appendPath(nil, h.number, to)) + "\r\n"
	case a.Entry.Closed:
		a.WriteString("<!doctype html><title>Closed</title><p>robots.txt asked you to stay outside.</p>\n")
	default:
		return false
	}
	a.Delay = p.delay(h.number, -1, 0)
	return true
}

func (h *host) robots() string {
	p := h.farm.plan
	if p.NoRobots {
		return "no such file\n"
	}
	if p.RobotsTxt != "" {
		return p.RobotsTxt
	}
	s := "User-agent: *\nDisallow: " + closedPrefix + "\n"
	if p.CrawlDelay != "" {
		s += "Crawl-delay: " + p.CrawlDelay + "\n"
	}
	if p.Sitemap {
		s += "Sitemap: " + p.origins[h.number] + "/sitemap.xml\n"
	}
	return s
}

// sitemap writes /sitemap.xml, which is an index once the pages need more
// than one file, or /sitemap-N.xml.
func (h *host) sitemap(path string, a *wire.Answer) bool {
	p := h.farm.plan
	const ns = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	const decl = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	files := (p.Pages + perSitemap - 1) / perSitemap
	from := 0
	if path == "/sitemap.xml" {
		if files > 1 {
			a.WriteString(decl + "<sitemapindex" + ns)
			for n := range files {
				a.WriteString("<sitemap><loc>" + p.origins[h.number] + "/sitemap-" + strconv.Itoa(n) + ".xml</loc></sitemap>\n")
			}
			a.WriteString("</sitemapindex>\n")
			return true
		}
	} else {
		name, ok := strings.CutPrefix(strings.TrimSuffix(path, ".xml"), "/sitemap-")
		n, isNumber := number([]byte(name))
		if !ok || !isNumber || files < 2 || n >= files || !strings.HasSuffix(path, ".xml") {
			return false
		}
		from = n * perSitemap
	}
	a.WriteString(decl + "<urlset" + ns)
	a.Append(func(dst []byte) []byte {
		for page := from; page < min(from+perSitemap, p.Pages); page++ {
			dst = append(dst, "<url><loc>"...)
			dst = append(dst, p.origins[h.number]...)
			dst = p.appendPath(dst, h.number, page)
			dst = append(dst, "</loc></url>\n"...)
		}
		return dst
	})
	a.WriteString("</urlset>\n")
	return true
}
