package acceptance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// A machine for tests has no public web. So the crawl runs here with name
// look-ups and dialling replaced, behind the guard where it has said yes: a
// public address is "connected" to a server of ours, and every address that
// was dialled is written down.

// somewhere is a public address, which is never really dialled.
const somewhere = "93.184.216.34"

// world is a web in which names have addresses of any kind.
type world struct {
	t     *testing.T
	site  http.HandlerFunc
	names func(host string, asked int) []string

	server *httptest.Server
	mu     sync.Mutex
	asked  map[string]int
	dialed []string // addresses, without port
}

func (w *world) Resolve(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
	w.mu.Lock()
	n := w.asked[host]
	w.asked[host]++
	w.mu.Unlock()
	var addrs []netip.Addr
	for _, s := range w.names(host, n) {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	if addrs == nil {
		return nil, 0, fetch.ErrNoHost
	}
	return addrs, time.Second, nil
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ip, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.dialed = append(w.dialed, ip)
	w.mu.Unlock()
	if ip != somewhere && !strings.HasPrefix(ip, "127.") {
		return nil, errors.New("no such machine")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, w.server.Listener.Addr().String())
}

// crawl runs the engine in this process, from ledger to dial, and returns the
// pages and where it went.
func (w *world) crawl(change func(*fetch.Config, *crawl.Spec), seeds ...string) (pages map[string]ledger.Page, dialed []string) {
	t := w.t
	t.Helper()
	w.asked = map[string]int{}
	w.server = httptest.NewServer(w.site)
	t.Cleanup(w.server.Close)
	cfg := fetch.Config{Resolver: w, Dial: w.dial, Timeout: 10 * time.Second}
	spec := crawl.Spec{Seeds: seeds, UserAgent: "tiptoe-test", PerHost: 4, Depth: -1, Scope: "any", Seeding: []string{"sitemap"},
		RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxBody: 1 << 20, Timeout: 10 * time.Second, MaxRedirects: 10}
	if change != nil {
		change(&cfg, &spec)
	}
	dir := t.TempDir()
	store, err := pebblestore.Open(filepath.Join(dir, app.FrontierDir), pebblestore.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	book, err := sqlite.Open(filepath.Join(dir, app.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	client, err := fetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	engine := crawl.New(crawl.Config{Store: store, Ledger: book, Fetcher: client, Log: slog.New(slog.DiscardHandler), Now: app.Clock(), Rand: rand.Float64})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := engine.Start(ctx, spec, crawl.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	sum, err := run.Supervise(ctx)
	cancel()
	if err := errors.Join(err, <-ended); err != nil || sum.Status != ledger.Completed {
		t.Fatalf("the crawl ended %s (%s): %v", sum.Status, sum.Reason, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.dialed)
	return pagesOf(t, dir), slices.Compact(w.dialed)
}

// inside are ways to say "your own machine" or "your own network".
var inside = []string{
	"http://127.0.0.1:9/secret", "http://127.1:9/short", "http://2130706433:9/number", "http://0x7f000001:9/hex", "http://0177.0.0.1:9/octal",
	"http://[::1]:9/six", "http://[::ffff:127.0.0.1]:9/mapped", "http://[64:ff9b::7f00:1]:9/nat64", "http://[2002:7f00:1::]:9/6to4",
	"http://localhost:9/name", "http://0.0.0.0:9/zero", "http://10.0.0.1/ten", "http://172.16.0.1/b", "http://192.168.0.1/c",
	"http://100.64.0.1/carrier", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/link", "http://[fc00::1]/unique",
	"http://inside.example/", "https://inside.example/tls",
}

// publicSite leads inside in every way a site can.
func publicSite(w http.ResponseWriter, r *http.Request) {
	var n int
	switch {
	case r.Host == "robots-inside.example" && r.URL.Path == "/robots.txt":
		http.Redirect(w, r, "http://127.0.0.1:9/robots.txt", http.StatusFound)
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: /no\nSitemap: http://site.example/map.xml\nSitemap: http://127.0.0.1:9/map.xml\nSitemap: http://inside.example/map.xml\n")
	case r.URL.Path == "/map.xml":
		fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, u := range inside {
			fmt.Fprintf(w, "<url><loc>%s?from=sitemap</loc></url>", u)
		}
		fmt.Fprint(w, "</urlset>")
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Link", `<http://127.0.0.1:9/link-header>; rel="next"`)
		fmt.Fprint(w, `<!doctype html><link rel="canonical" href="http://127.0.0.1:9/canonical"><meta http-equiv="refresh" content="9;url=http://127.0.0.1:9/refresh">`,
			`<iframe src="http://127.0.0.1:9/frame"></iframe><a href="http://robots-inside.example/">r</a><a href="http://both.example/">b</a>`)
		for i, u := range inside {
			fmt.Fprintf(w, `<a href="%s">x</a><a href="/to/%d">y</a>`, u, i)
		}
	case strings.HasPrefix(r.URL.Path, "/to/"):
		if _, err := fmt.Sscanf(r.URL.Path, "/to/%d", &n); err == nil && n < len(inside) {
			http.Redirect(w, r, inside[n]+"?from=redirect", http.StatusFound)
		}
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>a page</title>")
	}
}

func publicNames(host string, _ int) []string {
	switch host {
	case "localhost":
		return []string{"127.0.0.1"}
	case "inside.example":
		return []string{"10.1.2.3"}
	case "both.example":
		return []string{"10.1.2.3", somewhere}
	}
	return []string{somewhere}
}

func Test_a_public_site_cannot_send_the_crawl_into_private_addresses(t *testing.T) {
	w := &world{t: t, site: publicSite, names: publicNames}
	pages, dialed := w.crawl(nil, "http://site.example/")
	if !slices.Equal(dialed, []string{somewhere}) {
		t.Errorf("connected to %v; only %s is public", dialed, somewhere)
	}
	var want []string
	for _, u := range inside {
		want = append(want, u, u+"?from=redirect", u+"?from=sitemap")
	}
	for _, name := range []string{"link-header", "canonical", "refresh", "frame", "map.xml"} {
		want = append(want, "http://127.0.0.1:9/"+name)
	}
	for _, raw := range want {
		u, err := weburl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := pages[u.String()]; !ok || p.Outcome != outcome.Guard {
			t.Errorf("%s: row %t, outcome %s (%s), want refused_by_guard", raw, ok, p.Outcome, p.Error)
		}
	}
	for u, o := range map[string]outcome.Outcome{"http://site.example/": outcome.OK, "http://site.example/to/0": outcome.Redirect, "http://both.example/": outcome.OK} {
		if pages[u].Outcome != o {
			t.Errorf("%s ended with %s (%s), want %s", u, pages[u].Outcome, pages[u].Error, o)
		}
	}
	t.Logf("%d URLs lead inside; rows: %s", len(want), tally(pages))
}

// Or the test above would also pass if nobody had tried.
func Test_the_guard_and_nothing_else_keeps_the_crawl_out(t *testing.T) {
	w := &world{t: t, site: publicSite, names: publicNames}
	_, dialed := w.crawl(func(c *fetch.Config, s *crawl.Spec) { c.AllowPrivate = true }, "http://site.example/")
	for _, ip := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "10.1.2.3"} {
		if !slices.Contains(dialed, ip) {
			t.Errorf("with the guard off %s was not dialled, only %v", ip, dialed)
		}
	}
}

func Test_a_private_host_that_the_user_typed_is_crawled_with_its_private_links(t *testing.T) {
	w := &world{t: t, names: func(host string, _ int) []string { return []string{"127.0.0.1"} }}
	w.site = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, `<a href="/two">2</a><a href="http://wiki.intranet.example/">w</a><a href="http://127.0.0.2/">a</a>`)
	}
	pages, _ := w.crawl(func(_ *fetch.Config, s *crawl.Spec) { s.Seeding = nil }, "http://intranet.example/")
	for _, u := range []string{"http://intranet.example/", "http://intranet.example/two", "http://wiki.intranet.example/", "http://127.0.0.2/"} {
		if pages[u].Outcome != outcome.OK {
			t.Errorf("%s ended with %s (%s)", u, pages[u].Outcome, pages[u].Error)
		}
	}
}

func Test_a_name_that_was_public_is_not_followed_when_it_turns_private(t *testing.T) {
	w := &world{t: t}
	w.names = func(host string, asked int) []string {
		if host == "rebind.example" && asked > 0 {
			return []string{"127.0.0.1"}
		}
		return []string{somewhere}
	}
	// Each connection is for one request, and the look-up of another name
	// takes the only place in the cache.
	w.site = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		rw.Header().Set("Content-Type", "text/html")
		switch r.Host + r.URL.Path {
		case "rebind.example/":
			fmt.Fprint(rw, `<a href="http://other.example/">o</a>`)
		case "other.example/":
			fmt.Fprint(rw, `<a href="http://rebind.example/second">s</a>`)
		default:
			http.NotFound(rw, r)
		}
	}
	pages, dialed := w.crawl(func(c *fetch.Config, s *crawl.Spec) { c.DNSCacheSize = 1; s.Seeding = nil }, "http://rebind.example/")
	if w.asked["rebind.example"] < 2 {
		t.Fatalf("the name was looked up %d times; it had no chance to turn", w.asked["rebind.example"])
	}
	if p := pages["http://rebind.example/second"]; p.Outcome != outcome.Guard {
		t.Errorf("ended with %s (%s), want refused_by_guard", p.Outcome, p.Error)
	}
	if !slices.Equal(dialed, []string{somewhere}) {
		t.Errorf("connected to %v", dialed)
	}
}
