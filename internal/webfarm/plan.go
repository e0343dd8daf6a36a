package webfarm

import (
	"bytes"
	"strconv"
	"time"
)

// plan computes everything about the web that does not depend on what was
// asked before. It holds no state and is safe for concurrent use.
type plan struct {
	Config
	origins []string // http://name[:port] per host
	filler  []byte
}

// Salts keep the draws for different purposes independent of each other.
const (
	saltLink uint64 = iota + 1
	saltCross
	saltText
	saltRedirect
	saltError
	saltLatency
	saltName
)

// mix is the finaliser of splitmix64 over a running state: cheap, and good
// enough that neighbouring pages have nothing in common.
func mix(h, v uint64) uint64 {
	h += v*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func (p *plan) draw(salt uint64, host, page, n int) uint64 {
	return mix(mix(mix(mix(p.Seed, salt), uint64(host)), uint64(page)), uint64(n))
}

// share turns a draw into a number in [0, 1).
func share(draw uint64) float64 { return float64(draw>>11) / (1 << 53) }

// redirected reports whether links to a page go through /go/.
func (p *plan) redirected(host, page int) bool {
	return p.Redirects > 0 && page > 0 && share(p.draw(saltRedirect, host, page, 0)) < p.Redirects
}

// fails reports whether the answer to the asked-th request for a page is 503.
func (p *plan) fails(host, page, asked int) bool {
	return p.Errors > 0 && share(p.draw(saltError, host, page, asked)) < p.Errors
}

func (p *plan) delay(host, page, asked int) time.Duration {
	if p.Jitter == 0 {
		return p.Latency
	}
	return p.Latency + time.Duration(share(p.draw(saltLatency, host, page, asked))*float64(p.Jitter))
}

// target returns where the n-th link of a page leads.
func (p *plan) target(host, page, n int) (toHost, toPage int) {
	if n < p.Fanout {
		// Divided instead of multiplied, so that a huge page number
		// cannot overflow.
		if page <= (p.Pages-1)/p.Fanout {
			if child := page*p.Fanout + 1 + n; child < p.Pages {
				return host, child
			}
		}
	}
	d := p.draw(saltLink, host, page, n)
	if p.CrossHost > 0 && p.Hosts > 1 && share(p.draw(saltCross, host, page, n)) < p.CrossHost {
		host = int(mix(d, saltCross) % uint64(p.Hosts))
	}
	return host, int(d % uint64(p.Pages))
}

// sections and words make paths look like those of a site somebody wrote.
var sections = [...]string{"news", "guides", "products", "archive", "people", "places", "recipes", "letters"}

var words = [...]string{
	"amber", "bridge", "candle", "delta", "ember", "forest", "garden", "harbour",
	"island", "juniper", "kettle", "lantern", "meadow", "north", "orchard", "pebble",
	"quiet", "river", "silver", "timber", "upland", "valley", "willow", "yarrow",
}

// appendPath appends the path of a page: "/" or /section/word-word-N.html.
func (p *plan) appendPath(dst []byte, host, page int) []byte {
	if page == 0 {
		return append(dst, '/')
	}
	dst = append(dst, '/')
	return p.appendName(dst, host, page)
}

func (p *plan) appendName(dst []byte, host, page int) []byte {
	d := p.draw(saltName, host, page, 0)
	dst = append(dst, sections[d%uint64(len(sections))]...)
	dst = append(dst, '/')
	dst = append(dst, words[(d>>8)%uint64(len(words))]...)
	dst = append(dst, '-')
	dst = append(dst, words[(d>>16)%uint64(len(words))]...)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, int64(page), 10)
	return append(dst, ".html"...)
}

const redirectPrefix = "/go/"

// page returns the number of the page at a path, which must be written
// exactly as the farm writes it: any other spelling is another URL, and a
// crawler that changes URLs shall find nothing there.
func (p *plan) page(host int, path []byte) (int, bool) {
	if len(path) == 1 {
		return 0, path[0] == '/'
	}
	name, ok := bytes.CutSuffix(path, []byte(".html"))
	if !ok {
		return 0, false
	}
	page, ok := number(name[bytes.LastIndexByte(name, '-')+1:])
	if !ok || page == 0 || page >= p.Pages {
		return 0, false
	}
	var scratch [128]byte
	return page, bytes.Equal(path, p.appendPath(scratch[:0], host, page))
}

// number reads a page number as strconv.AppendInt writes it.
func number(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 9 || (b[0] == '0' && len(b) > 1) {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
