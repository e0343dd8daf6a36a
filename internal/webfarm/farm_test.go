package webfarm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB, c Config) *Farm {
	t.Helper()
	f, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// client reaches the hosts of f by name and follows no redirects.
func client(t testing.TB, f *Farm) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	if f.plan.Placement == Names {
		tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, f.Addr())
		}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func get(t testing.TB, c *http.Client, u string) (int, http.Header, string) {
	t.Helper()
	resp, err := c.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// links returns where the anchors of a page lead, fragments removed.
func links(t testing.TB, base, body string) []string {
	t.Helper()
	b, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for z := html.NewTokenizer(strings.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken:
			tok := z.Token()
			if tok.Data != "a" {
				continue
			}
			u, err := b.Parse(tok.Attr[0].Val)
			if err != nil {
				t.Fatal(err)
			}
			u.Fragment = ""
			out = append(out, u.String())
		}
	}
}

// walk crawls breadth first from seeds, retrying 503, and returns what was
// answered with 200.
func walk(t testing.TB, c *http.Client, seeds ...string) map[string]bool {
	t.Helper()
	seen, ok := map[string]bool{}, map[string]bool{}
	queue := seeds
	for _, s := range seeds {
		seen[s] = true
	}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		status, head, body := get(t, c, u)
		var found []string
		switch status {
		case 200:
			ok[u] = true
			found = links(t, u, body)
		case 301:
			to, err := url.Parse(u)
			if err == nil {
				to, err = to.Parse(head.Get("Location"))
			}
			if err != nil {
				t.Fatal(err)
			}
			found = []string{to.String()}
		case 503:
			queue = append(queue, u)
		default:
			t.Fatalf("%s answered %d", u, status)
		}
		for _, l := range found {
			if !seen[l] && !strings.Contains(l, closedPrefix) {
				seen[l] = true
				queue = append(queue, l)
			}
		}
	}
	return ok
}

func TestEveryPageIsReachedFromTheHomePageOnEveryPlacement(t *testing.T) {
	for _, c := range []Config{
		{Hosts: 1, Pages: 300, Links: 12},
		{Hosts: 1, Pages: 30, Links: 1},
		{Hosts: 4, Pages: 60, Placement: Names, CrossHost: 0.3, Redirects: 0.2, Errors: 0.2, ClosedLinks: true},
		{Hosts: 3, Pages: 40, Placement: Addresses, CrossHost: 0.5},
		{Hosts: 3, Pages: 40, Placement: Ports, Redirects: 1},
	} {
		t.Run(fmt.Sprintf("%s %d", c.Placement, c.Pages), func(t *testing.T) {
			f := start(t, c)
			got := walk(t, client(t, f), f.Seeds()...)
			want := slices.Collect(f.URLs())
			for _, u := range want {
				if !got[u] {
					t.Errorf("%s was not reached", u)
				}
				delete(got, u)
			}
			for u := range got {
				t.Errorf("%s is not among the expected URLs", u)
			}
			b := f.Books()
			if b.Pages != int64(len(want)) || b.Duplicates != 0 || b.Missing != 0 || b.MaxInFlight != 1 || b.NotFound != 0 || b.Closed != 0 {
				t.Errorf("books %+v", b)
			}
			if c.Redirects > 0 && b.Redirects == 0 || c.Errors > 0 && b.Failed == 0 {
				t.Errorf("%d redirects, %d failures", b.Redirects, b.Failed)
			}
			if m := f.Missing(5); len(m) != 0 {
				t.Errorf("missing %v", m)
			}
		})
	}
}

func TestTheSameSeedIsTheSameWebAndAnotherSeedAnother(t *testing.T) {
	whole := func(seed uint64) string {
		c, err := Config{Seed: seed, Hosts: 2, Pages: 50, Placement: Names, CrossHost: 0.2, Redirects: 0.1}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		p := &plan{Config: c, origins: []string{"http://a.test", "http://b.test"}, filler: newFiller(seed)}
		var out []byte
		for h := range 2 {
			for page := range 50 {
				out = p.appendPath(append(out, '\n'), h, page)
				out = p.appendPage(out, h, page)
			}
		}
		return string(out)
	}
	first, second := whole(7), whole(7)
	if first != second {
		t.Error("one seed gave two webs")
	}
	if first == whole(8) {
		t.Error("two seeds gave one web")
	}
}

func TestPagesAreValidHTMLOfTheWantedSizeWithTheWantedLinks(t *testing.T) {
	f := start(t, Config{Pages: 60, Links: 60, PageSize: 20 << 10})
	c := client(t, f)
	href := regexp.MustCompile(`href="(http|/|\.\./|[a-z])[^"#]*(#?)`)
	styles := map[string]int{}
	for u := range f.URLs() {
		status, head, body := get(t, c, u)
		if status != 200 || head.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%s: %d %v", u, status, head)
		}
		if len(body) != 20<<10 {
			t.Fatalf("%s has %d bytes", u, len(body))
		}
		if n := len(links(t, u, body)); n != 60 {
			t.Fatalf("%s has %d links", u, n)
		}
		if !strings.Contains(body, "<title>") || !strings.HasSuffix(body, "</html>\n") {
			t.Fatalf("%s is no page: %s", u, body)
		}
		for _, m := range href.FindAllStringSubmatch(body, -1) {
			styles[m[1][:1]+m[2]]++
		}
	}
	for _, s := range []string{"h", "/", "/#", "."} {
		if styles[s] == 0 {
			t.Errorf("no link is written as %q: %v", s, styles)
		}
	}
}

func TestOnlyTheExactSpellingOfAURLIsAPage(t *testing.T) {
	f := start(t, Config{Pages: 12, Redirects: 0.5})
	c := client(t, f)
	urls := slices.Collect(f.URLs())
	for _, u := range []string{
		urls[3] + "?a=1", urls[3] + "/", strings.Replace(urls[3], "-3.", "-03.", 1), strings.Replace(urls[3], "-3.", "-4.", 1),
		strings.ToUpper(urls[3][len(f.Seeds()[0])-1:]), "/go/99", "/go/x", "/sitemap.xml", "/nothing-1000.html",
	} {
		if u[0] == '/' {
			u = f.Seeds()[0] + u[1:]
		}
		if status, _, _ := get(t, c, u); status != 404 {
			t.Errorf("%s answered %d", u, status)
		}
	}
	if b := f.Books(); b.Pages != 0 || b.NotFound != 9 {
		t.Errorf("books %+v", b.Counts)
	}
}

func TestARateLimitReallyLimits(t *testing.T) {
	var b Bucket
	l := RateLimit{PerSecond: 10, Burst: 3}
	granted := 0
	for at := time.Duration(0); at < 10*time.Second; at += time.Millisecond {
		if ok, wait := b.Take(at, l); ok {
			granted++
		} else if wait != 0 {
			t.Fatalf("asked to wait %v without Retry-After", wait)
		}
	}
	// The burst, and then ten a second for ten seconds.
	if granted < 101 || granted > 103 {
		t.Errorf("granted %d of 10000, want 3 + 99", granted)
	}
}

func TestRetryAfterRunsToItsEndWhoeverAsksEarly(t *testing.T) {
	var b Bucket
	l := RateLimit{PerSecond: 100, Burst: 1, RetryAfter: 1500 * time.Millisecond}
	if ok, _ := b.Take(0, l); !ok {
		t.Fatal("the first was refused")
	}
	for _, s := range []struct {
		at   time.Duration
		ok   bool
		wait time.Duration
	}{
		{1 * time.Millisecond, false, 2 * time.Second},
		{500 * time.Millisecond, false, 2 * time.Second},
		{1500 * time.Millisecond, false, 1 * time.Second},
		{2 * time.Second, false, 1 * time.Second},
		{2001 * time.Millisecond, true, 0},
	} {
		if ok, wait := b.Take(s.at, l); ok != s.ok || wait != s.wait {
			t.Errorf("at %v: %v, %v; want %v, %v", s.at, ok, wait, s.ok, s.wait)
		}
	}
	b.Reset()
	if ok, _ := b.Take(0, l); !ok {
		t.Error("refused after a reset")
	}
}

func TestAThrottledRequestIsBookedWithItsBlock(t *testing.T) {
	f := start(t, Config{Pages: 10, Rate: RateLimit{PerSecond: 0.001, Burst: 2, RetryAfter: time.Hour}})
	c := client(t, f)
	for range 2 {
		if status, _, _ := get(t, c, f.Seeds()[0]); status != 200 {
			t.Fatalf("status %d within the burst", status)
		}
	}
	status, head, _ := get(t, c, f.Seeds()[0])
	if status != 429 || head.Get("Retry-After") != "3600" {
		t.Fatalf("status %d, Retry-After %q", status, head.Get("Retry-After"))
	}
	time.Sleep(30 * time.Millisecond) // beyond books.Grace: now it is a breach
	get(t, c, f.Seeds()[0])
	b := f.Books()
	if b.Throttled != 2 || b.DuringBlock != 1 || b.Pages != 1 || b.Duplicates != 1 {
		t.Errorf("books %+v", b.Counts)
	}
}

func TestBooksAreCorrectUnderConcurrency(t *testing.T) {
	f := start(t, Config{Hosts: 3, Pages: 100, Placement: Names, Latency: 2 * time.Millisecond, Jitter: time.Millisecond})
	c := client(t, f)
	urls := slices.Collect(f.URLs())
	const workers = 8
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n, u := range urls {
				if n%3 == 0 {
					resp, err := c.Get(u)
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
	b := f.Books()
	if b.Requests != workers*100 || b.Pages != 100 || b.Duplicates != (workers-1)*100 || b.Missing != 200 {
		t.Errorf("books %+v", b)
	}
	if b.MaxInFlight < 2 || b.MaxInFlight > workers {
		t.Errorf("%d in flight, want 2 to %d", b.MaxInFlight, workers)
	}
	if m := f.Missing(7); len(m) != 7 || m[0] != urls[1] {
		t.Errorf("missing %v", m)
	}
}

func TestRobotsAndSitemapsSayWhatWasConfigured(t *testing.T) {
	f := start(t, Config{Pages: perSitemap + 2, CrawlDelay: "1.5", Sitemap: true})
	c := client(t, f)
	home := f.Seeds()[0]
	_, _, robots := get(t, c, home+"robots.txt")
	if want := "User-agent: *\nDisallow: /closed/\nCrawl-delay: 1.5\nSitemap: " + home + "sitemap.xml\n"; robots != want {
		t.Errorf("robots.txt is %q, want %q", robots, want)
	}
	_, _, index := get(t, c, home+"sitemap.xml")
	locs := func(xml string) (out []string) {
		for line := range strings.Lines(xml) {
			if _, rest, ok := strings.Cut(line, "<loc>"); ok {
				loc, _, _ := strings.Cut(rest, "</loc>")
				out = append(out, loc)
			}
		}
		return out
	}
	var listed []string
	for _, file := range locs(index) {
		_, _, body := get(t, c, file)
		listed = append(listed, locs(body)...)
	}
	if !slices.Equal(listed, slices.Collect(f.URLs())) {
		t.Errorf("sitemaps list %d URLs", len(listed))
	}
	if status, _, _ := get(t, c, home+"sitemap-2.xml"); status != 404 {
		t.Errorf("a third sitemap answered %d", status)
	}
	get(t, c, home+"closed/1")
	if b := f.Books(); b.Robots != 1 || b.Sitemaps != 3 || b.Closed != 1 || b.NotFound != 1 {
		t.Errorf("books %+v", b.Counts)
	}

	own := start(t, Config{RobotsTxt: "User-agent: *\nDisallow: /\n"})
	if _, _, body := get(t, client(t, own), own.Seeds()[0]+"robots.txt"); body != "User-agent: *\nDisallow: /\n" {
		t.Errorf("robots.txt is %q", body)
	}
	none := start(t, Config{NoRobots: true})
	if status, _, _ := get(t, client(t, none), none.Seeds()[0]+"robots.txt"); status != 404 {
		t.Errorf("robots.txt answered %d", status)
	}
}

func TestTheControlPagesAreNotBooked(t *testing.T) {
	f := start(t, Config{Pages: 3, Placement: Names})
	c := client(t, f)
	get(t, c, f.Seeds()[0])
	at := "http://" + f.Addr()
	_, _, body := get(t, c, at+"/-/books")
	var b Books
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	if b.Requests != 1 || b.Pages != 1 || b.Expected != 3 || b.Missing != 2 || len(b.Hosts) != 1 {
		t.Errorf("books %+v", b)
	}
	if _, _, body := get(t, c, at+"/-/urls"); body != strings.Join(slices.Collect(f.URLs()), "\n")+"\n" {
		t.Errorf("urls %q", body)
	}
	if status, _, _ := get(t, c, at+"/-/reset"); status != 405 {
		t.Errorf("a GET emptied the books: %d", status)
	}
	resp, err := c.Post(at+"/-/reset", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if b := f.Books(); resp.StatusCode != 200 || b.Requests != 0 || b.Missing != 3 {
		t.Errorf("after reset %d: %+v", resp.StatusCode, b)
	}
}

func TestAMalformedConfigIsRefusedWithItsReason(t *testing.T) {
	for _, c := range []struct {
		config Config
		reason string
	}{
		{Config{Hosts: 2, Placement: OneAddress}, "room for one host"},
		{Config{Hosts: 2, NameFmt: "same.test"}, "tell hosts apart"},
		{Config{Placement: "moon"}, "unknown placement"},
		{Config{Pages: -1}, "negative"},
		{Config{Links: 2, Fanout: 3}, "fanout"},
		{Config{Errors: 1.5}, "share of errors"},
		{Config{Latency: -1}, "latency"},
		{Config{Listen: "nowhere"}, "nowhere"},
		{Config{Hosts: 2, Placement: Ports, Listen: "127.0.0.1:8099"}, "port 0"},
	} {
		f, err := Start(c.config)
		if err == nil {
			f.Close()
			t.Errorf("%+v was accepted", c.config)
		} else if !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%v does not say %q", err, c.reason)
		}
	}
}

func FuzzAPathIsAPageOnlyIfTheFarmWritesItSo(f *testing.F) {
	c, err := Config{Pages: 2000}.withDefaults()
	if err != nil {
		f.Fatal(err)
	}
	p := &plan{Config: c}
	f.Add("/")
	f.Add("/news/a-b-1.html")
	f.Add(string(p.appendPath(nil, 0, 1999)))
	f.Add("/-99999999999999999999.html")
	f.Fuzz(func(t *testing.T, path string) {
		if path == "" || path[0] != '/' {
			return // the parser lets nothing else through
		}
		page, ok := p.page(0, []byte(path))
		if ok && (page >= 2000 || string(p.appendPath(nil, 0, page)) != path) {
			t.Fatalf("%q is page %d", path, page)
		}
	})
}

// BenchmarkPage is the making of one page without the sending.
func BenchmarkPage(b *testing.B) {
	c, err := Config{Pages: 20000, Links: 60, PageSize: 20 << 10}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	p := &plan{Config: c, origins: []string{"http://127.0.0.1:8080"}, filler: newFiller(1)}
	buf := make([]byte, 0, 32<<10)
	b.SetBytes(20 << 10)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		buf = p.appendPage(buf[:0], 0, n%20000)
	}
}

// BenchmarkRequest is one request over a kept connection with a client that
// does next to nothing; both sides are in the figure.
func BenchmarkRequest(b *testing.B) {
	f := start(b, Config{Pages: 20000, Links: 60, PageSize: 20 << 10})
	c, err := net.Dial("tcp", f.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 64<<10)
	var req []byte
	b.SetBytes(20 << 10)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		req = append(req[:0], "GET "...)
		req = f.plan.appendPath(req, 0, n%20000)
		req = append(req, " HTTP/1.1\r\nHost: a\r\n\r\n"...)
		if _, err := c.Write(req); err != nil {
			b.Fatal(err)
		}
		for got, want := 0, -1; want < 0 || got < want; {
			k, err := c.Read(buf[got:])
			if err != nil {
				b.Fatal(err)
			}
			got += k
			if i := bytes.Index(buf[:min(got, 512)], []byte("\r\n\r\n")); i >= 0 {
				want = i + 4 + 20<<10
			}
		}
	}
}
