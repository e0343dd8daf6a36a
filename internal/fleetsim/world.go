package fleetsim

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

// host is one simulated server and its own books, which know nothing of leases.
type host struct {
	name    string
	pages   int
	latency time.Duration
	delay   time.Duration // Crawl-delay of its robots.txt
	limit   time.Duration // answers 429 to requests closer together than this
	after   time.Duration // Retry-After sent with 429
	flaky   bool          // answers 503 now and then
	down    bool          // answers every request with 500, and has done so before
	sulks   int           // answers so many requests for robots.txt with 429
	robots  string        // the host to which its robots.txt redirects; empty: its own

	served   time.Time // of its rate limiter
	last     time.Time // last request start
	robotsAt time.Time // when its rules were first delivered
	requests int
}

type world struct {
	hosts map[string]*host
	names []string
	rnd   *rand.Rand
}

func newWorld(c Config) *world {
	w := &world{hosts: map[string]*host{}, rnd: rand.New(rand.NewPCG(c.Seed, 1))}
	for i := range c.Hosts {
		h := &host{name: fmt.Sprintf("h%02d.sim%02d.test", i, i/2), pages: c.Pages,
			latency: time.Duration(5+w.rnd.IntN(600)) * time.Millisecond}
		switch i % 8 {
		case 1:
			h.delay = time.Duration(1+w.rnd.IntN(3)) * time.Second
		case 2, 3:
			h.limit = time.Duration(300+w.rnd.IntN(900)) * time.Millisecond
			h.after = time.Duration(2+w.rnd.IntN(10)) * time.Second
		case 4:
			h.flaky = true
		case 7:
			h.down = i == 7
		case 6:
			h.sulks, h.after = 2, 15*time.Second
		case 5:
			h.robots = fmt.Sprintf("h%02d.sim%02d.test", i-4, (i-4)/2)
		}
		w.hosts[h.name] = h
		w.names = append(w.names, h.name)
	}
	return w
}

type answer struct {
	status int
	header http.Header
	body   []byte
	rules  string // the host whose robots.txt this is
}

// final reports that there is no reason to ask again.
func (a *answer) final() bool { return a.status != 429 && a.status != 503 }

// serve decides the answer to a request that starts now.
func (w *world) serve(h *host, url string, now time.Time) answer {
	path := weburl.FromCanonical(url).RequestURI()
	hdr := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	if sulks := path == "/robots.txt" && h.sulks > 0; sulks || h.limit > 0 && now.Sub(h.served) < h.limit {
		if sulks {
			h.sulks--
		}
		hdr.Set("Retry-After", strconv.Itoa(int(h.after.Seconds())))
		return answer{status: 429, header: hdr}
	}
	h.served = now
	if h.down {
		return answer{status: 500, header: hdr}
	}
	if of, ok := strings.CutPrefix(path, "/rules-of/"); ok {
		return answer{status: 200, header: hdr, body: []byte("User-agent: *\nDisallow: /closed/\n"), rules: of}
	}
	switch {
	case path == "/robots.txt" && h.robots != "":
		hdr.Set("Location", "http://"+h.robots+"/rules-of/"+h.name)
		return answer{status: 302, header: hdr}
	case path == "/robots.txt":
		body := "User-agent: *\nDisallow: /closed/\n"
		if h.delay > 0 {
			body += fmt.Sprintf("Crawl-delay: %g\n", h.delay.Seconds())
		}
		return answer{status: 200, header: hdr, body: []byte(body), rules: h.name}
	case h.flaky && w.rnd.IntN(12) == 0:
		return answer{status: 503, header: hdr}
	}
	n, err := strconv.Atoi(strings.TrimPrefix(path, "/p/"))
	switch {
	case path == "/":
		n = 0
	case strings.HasPrefix(path, "/moved/"):
		hdr.Set("Location", "/p/"+path[len("/moved/"):])
		return answer{status: 301, header: hdr}
	case err != nil || n >= h.pages:
		return answer{status: 404, header: hdr}
	}
	var b strings.Builder
	for _, l := range w.links(h, n) {
		fmt.Fprintf(&b, `<a href="%s">l</a>`, l)
	}
	return answer{status: 200, header: hdr, body: []byte(b.String())}
}

// links are what a page names: a tree over the host, now and then through a
// redirect, other hosts, what is closed and what is gone.
func (w *world) links(h *host, n int) (urls []string) {
	f := fnv.New64a()
	fmt.Fprintf(f, "%s/%d", h.name, n)
	r := rand.New(rand.NewPCG(f.Sum64(), 2))
	at := "http://" + h.name
	for c := 2*n + 1; c <= 2*n+2 && c < h.pages; c++ {
		if c%7 == 0 {
			urls = append(urls, fmt.Sprintf("%s/moved/%d", at, c))
		} else {
			urls = append(urls, fmt.Sprintf("%s/p/%d", at, c))
		}
	}
	for range 3 {
		urls = append(urls, fmt.Sprintf("http://%s/p/%d", w.names[r.IntN(len(w.names))], r.IntN(h.pages)))
	}
	if n%5 == 0 {
		urls = append(urls, fmt.Sprintf("%s/closed/%d", at, n), fmt.Sprintf("%s/gone/%d", at, n))
	}
	return urls
}

// named lists what a URL's page names, if it has one.
func (w *world) named(url string) []string {
	u := weburl.FromCanonical(url)
	n, err := strconv.Atoi(strings.TrimPrefix(u.Path(), "/p/"))
	if u.Path() == "/" {
		n, err = 0, nil
	}
	if err != nil {
		return nil
	}
	return w.links(w.hosts[u.Hostname()], n)
}
