package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/weburl"
)

// host is one simulated server: what it serves, how it behaves, and its own
// books, which know nothing of the crawler's.
type host struct {
	name    string
	pages   int
	latency time.Duration
	delay   time.Duration // Crawl-delay of its robots.txt
	limit   time.Duration // answers 429 to requests closer together than this
	after   time.Duration // Retry-After sent with 429
	flaky   float64       // share of 503 and of connections that fail
	closed  bool          // robots.txt closes /closed/
	dead    bool          // never answers
	noRobot int           // status of robots.txt if it has none
	down    [2]time.Time  // from the first to the second it cannot be reached

	lastOK   time.Time // of the rate limiter
	last     time.Time // last request start
	inFlight int
	minGap   time.Duration
	blocked  time.Time // until then it asked, in an answer that arrived, to be left alone
	robotsAt time.Time // when its robots.txt was delivered
	requests int
	arrivals []Arrival // kept for hosts of a Plan
}

// world is a deterministic web of many hosts.
type world struct {
	hosts map[string]*host
	names []string
	rnd   *rand.Rand
}

func newWorld(c Config, start time.Time) *world {
	w := &world{hosts: make(map[string]*host), rnd: rand.New(rand.NewPCG(c.Seed, 1))}
	for _, p := range c.Plan {
		w.plan(p, start)
	}
	for i := range c.Hosts {
		h := &host{name: fmt.Sprintf("h%04d.sim.test", i), pages: c.PagesPerHost, minGap: time.Hour}
		h.latency = time.Duration(5+w.rnd.IntN(300)) * time.Millisecond
		switch {
		case i%10 == 1:
			h.delay = time.Duration(1+w.rnd.IntN(3)) * time.Second
		case i%10 == 2:
			h.limit = time.Duration(300+w.rnd.IntN(900)) * time.Millisecond
			h.after = time.Duration(w.rnd.IntN(3)) * 5 * time.Second
		case i%10 == 3:
			h.flaky = 0.05
		case i%10 == 4:
			h.closed = true
		case i%100 == 5:
			h.dead = true
		case i%10 == 6:
			h.noRobot = []int{404, 403, 410}[w.rnd.IntN(3)]
		}
		w.hosts[h.name] = h
		w.names = append(w.names, h.name)
	}
	return w
}

// answer is what a request gets.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    string // a failed connection
}

// serve decides the answer to a request that starts now.
func (w *world) serve(h *host, url string, now time.Time) answer {
	path := weburl.FromCanonical(url).RequestURI()
	hdr := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	if h.dead || !now.Before(h.down[0]) && now.Before(h.down[1]) {
		return answer{err: "connection refused"}
	}
	if path == "/robots.txt" {
		if h.noRobot != 0 {
			return answer{status: h.noRobot, header: hdr}
		}
		return answer{status: 200, header: hdr, body: []byte(h.robots())}
	}
	if h.limit > 0 && now.Sub(h.lastOK) < h.limit {
		if h.after > 0 {
			hdr.Set("Retry-After", strconv.Itoa(int(h.after.Seconds())))
		}
		return answer{status: 429, header: hdr}
	}
	h.lastOK = now
	if h.flaky > 0 && w.rnd.Float64() < h.flaky {
		if w.rnd.IntN(2) == 0 {
			return answer{err: "connection reset"}
		}
		return answer{status: 503, header: hdr}
	}
	n, ok := strings.CutPrefix(path, "/p/")
	page, err := strconv.Atoi(n)
	switch {
	case path == "/":
		page = 0
	case strings.HasPrefix(path, "/moved/"):
		hdr.Set("Location", "/p/"+path[len("/moved/"):])
		return answer{status: 301, header: hdr}
	case !ok || err != nil || page >= h.pages:
		return answer{status: 404, header: hdr}
	}
	return answer{status: 200, header: hdr, body: w.page(h, page)}
}

func (h *host) robots() string {
	s := "User-agent: *\n"
	if h.closed {
		s += "Disallow: /closed/\n"
	}
	if h.delay > 0 {
		s += fmt.Sprintf("Crawl-delay: %g\n", h.delay.Seconds())
	}
	return s
}

// page renders a page: links to its children in a tree, to random pages of
// this and of other hosts, through a redirect now and then, and into the
// closed area. It depends on the world's seed and the page alone.
func (w *world) page(h *host, n int) []byte {
	f := fnv.New64a()
	fmt.Fprintf(f, "%s/%d", h.name, n)
	r := rand.New(rand.NewPCG(f.Sum64(), 2))
	var b strings.Builder
	fmt.Fprintf(&b, "<html><head><title>page %d of %s</title></head><body>", n, h.name)
	for c := 3*n + 1; c <= 3*n+3 && c < h.pages; c++ {
		if c%17 == 0 {
			fmt.Fprintf(&b, `<a href="/moved/%d">m</a> `, c)
		} else {
			fmt.Fprintf(&b, `<a href="/p/%d">c</a> `, c)
		}
	}
	for range 4 {
		fmt.Fprintf(&b, `<a href="/p/%d">x</a> `, r.IntN(h.pages))
	}
	other := w.names[r.IntN(len(w.names))]
	if h.arrivals != nil {
		other = h.name // its day is its own
	}
	fmt.Fprintf(&b, `<a href="http://%s/p/%d">o</a> <a href="/closed/%d">k</a>`, other, r.IntN(h.pages), n)
	if n%29 == 3 {
		fmt.Fprintf(&b, ` <a href="/gone/%d">g</a>`, n)
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}
