package webfarm

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"net"
	"strconv"
	"strings"

	"tiptoe/internal/webfarm/books"
	"tiptoe/internal/webfarm/wire"
)

// Farm is a running simulated web.
type Farm struct {
	plan     *plan
	recorder *books.Recorder
	server   *wire.Server
	hosts    []*host
	sites    []*wire.Site
	byName   map[string]int // for Names: Host header to host
	control  *wire.Site
	addr     net.Addr
}

// Books are the farm's accounts with what only the farm knows: how many pages
// there are, and how many of them nobody was served.
type Books struct {
	books.Books
	Expected int64 `json:"expected"`
	Missing  int64 `json:"missing"`
}

// Start listens and serves until Close.
func Start(c Config) (*Farm, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("webfarm: %w", err)
	}
	listeners, err := listen(c)
	if err != nil {
		return nil, fmt.Errorf("webfarm: %w", err)
	}
	f := &Farm{
		plan:   &plan{Config: c, filler: newFiller(c.Seed)},
		addr:   listeners[0].Addr(),
		byName: map[string]int{},
	}
	var all []*books.Host
	for n := range c.Hosts {
		name := f.hostName(n, listeners)
		f.plan.origins = append(f.plan.origins, "http://"+name)
		f.byName[name] = n
		h := &host{farm: f, number: n, book: books.NewHost(name, c.Pages)}
		f.hosts = append(f.hosts, h)
		f.sites = append(f.sites, &wire.Site{Handler: h, Book: h.book})
		all = append(all, h.book)
	}
	f.control = &wire.Site{Handler: control{f}}
	f.recorder = books.NewRecorder(all...)
	f.server = wire.NewServer(f.recorder, f.find)
	for n, ln := range listeners {
		f.server.Go(ln, n)
	}
	return f, nil
}

// Addr is the address of the first listener.
func (f *Farm) Addr() string { return f.addr.String() }

// Seeds are the home pages of all hosts.
func (f *Farm) Seeds() []string {
	seeds := make([]string, len(f.plan.origins))
	for n, o := range f.plan.origins {
		seeds[n] = o + "/"
	}
	return seeds
}

// Resolve tells a client where the hosts are, as curl's --resolve does
// (host:port:address); it is empty if they can be reached as they are.
func (f *Farm) Resolve() []string {
	if f.plan.Placement != Names {
		return nil
	}
	ip, port, _ := net.SplitHostPort(f.Addr())
	return []string{"*:" + port + ":" + ip}
}

// URLs is what a complete crawl fetches with success, in a fixed order: all
// pages of all hosts. Redirects, robots.txt and sitemaps are not among them.
func (f *Farm) URLs() iter.Seq[string] {
	return func(yield func(string) bool) {
		var buf []byte
		for n := range f.hosts {
			for page := range f.plan.Pages {
				buf = append(buf[:0], f.plan.origins[n]...)
				if !yield(string(f.plan.appendPath(buf, n, page))) {
					return
				}
			}
		}
	}
}

// Missing lists up to limit URLs of pages that were never served.
func (f *Farm) Missing(limit int) []string {
	var out []string
	for n, h := range f.hosts {
		for page := range f.plan.Pages {
			if len(out) >= limit {
				return out
			}
			if h.book.Served(page) == 0 {
				out = append(out, f.plan.origins[n]+string(f.plan.appendPath(nil, n, page)))
			}
		}
	}
	return out
}

// Books closes the accounts as they stand.
func (f *Farm) Books() Books {
	b := Books{Books: f.recorder.Books(), Expected: int64(f.plan.Hosts) * int64(f.plan.Pages)}
	b.Missing = b.Expected - b.Pages
	return b
}

// Reset empties the books and refills the rate limiters.
func (f *Farm) Reset() {
	f.recorder.Reset()
	for _, h := range f.hosts {
		h.bucket.Reset()
	}
}

// Close stops serving and waits until everything has ended.
func (f *Farm) Close() { f.server.Close() }

func (f *Farm) find(r *wire.Request) *wire.Site {
	if bytes.HasPrefix(r.Target, []byte(controlPrefix)) {
		return f.control
	}
	if f.plan.Placement != Names {
		return f.sites[r.Listener]
	}
	if n, ok := f.byName[string(r.Host)]; ok {
		return f.sites[n]
	}
	// Host names have no case, and a client may send them as it likes.
	if n, ok := f.byName[strings.ToLower(string(r.Host))]; ok {
		return f.sites[n]
	}
	return nil
}

func (f *Farm) hostName(n int, listeners []net.Listener) string {
	if f.plan.Placement != Names {
		return listeners[n].Addr().String()
	}
	name := fmt.Sprintf(f.plan.NameFmt, n)
	if port := listeners[0].Addr().(*net.TCPAddr).Port; port != 80 {
		name += ":" + strconv.Itoa(port)
	}
	return name
}

// listen opens the listeners of a placement: one, or one per host.
func listen(c Config) ([]net.Listener, error) {
	ip, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", c.Listen, err)
	}
	switch c.Placement {
	case Ports:
		if port != "0" && c.Hosts > 1 {
			return nil, errors.New("placement ports needs port 0: every host gets its own")
		}
		return listenAll(c.Hosts, func(int, net.Listener) string { return net.JoinHostPort(ip, "0") })
	case Addresses:
		// The port that is free on the first address may be taken on
		// another; then a new draw helps, unless the port was asked for.
		for range 20 {
			var lns []net.Listener
			lns, err = listenAll(c.Hosts, func(n int, first net.Listener) string {
				at := port
				if first != nil {
					_, at, _ = net.SplitHostPort(first.Addr().String())
				}
				return fmt.Sprintf("127.%d.%d.1:%s", 1+n/250, 1+n%250, at)
			})
			if err == nil || port != "0" {
				return lns, err
			}
		}
		return nil, err
	}
	return listenAll(1, func(int, net.Listener) string { return c.Listen })
}

func listenAll(hosts int, addr func(n int, first net.Listener) string) ([]net.Listener, error) {
	var lns []net.Listener
	var first net.Listener
	for n := range hosts {
		ln, err := net.Listen("tcp", addr(n, first))
		if err != nil {
			for _, ln := range lns {
				ln.Close()
			}
			return nil, err
		}
		if first == nil {
			first = ln
		}
		lns = append(lns, ln)
	}
	return lns, nil
}
