package demo

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*Web, *http.Client) {
	t.Helper()
	w, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, r := range w.Resolve() {
		name, ip := r[:strings.LastIndexByte(r, ':')], r[strings.LastIndexByte(r, ':')+1:]
		_, port, err := net.SplitHostPort(name)
		if err != nil {
			t.Fatalf("resolve entry %q: %v", r, err)
		}
		where[name] = net.JoinHostPort(ip, port)
	}
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		to, ok := where[addr]
		if !ok {
			return nil, errors.New(addr + " is not resolved")
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		w.Close()
	})
	return w, &http.Client{Transport: tr}
}

func get(t *testing.T, c *http.Client, u string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest("GET", u, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Without the client above the transport, which refuses a Location it
	// cannot parse even when it shall not follow it.
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Request = req
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func (w *Web) site(t *testing.T, name string) *site {
	t.Helper()
	for _, s := range w.sites {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no site %s", name)
	return nil
}

func TestADozenHostsEachWithASeedAnAddressAndAReason(t *testing.T) {
	w, _ := start(t)
	hosts := w.Describe()
	if len(hosts) != 12 || len(w.Seeds()) != 12 || len(w.Resolve()) != 12 {
		t.Fatalf("%d hosts, %d seeds, %d addresses", len(hosts), len(w.Seeds()), len(w.Resolve()))
	}
	for n, h := range hosts {
		if h.Shows == "" || w.Seeds()[n] != "http://"+h.Name+"/" || !strings.HasSuffix(w.Resolve()[n], ":127.0.0.1") {
			t.Errorf("%+v, %s, %s", h, w.Seeds()[n], w.Resolve()[n])
		}
	}
}

// TestEveryPageIsReachedAndEveryLinkMeant walks the links as written, without
// sockets: a page nobody can reach, or a link that is broken by accident,
// is a mistake of the demo's author.
func TestEveryPageIsReachedAndEveryLinkMeant(t *testing.T) {
	w, _ := start(t)
	sites := map[string]*site{}
	for _, s := range w.sites {
		sites[w.host(s.name)] = s
	}
	reached := map[string]bool{}
	var queue []string
	for _, u := range w.Seeds() {
		reached[u] = true
		queue = append(queue, u)
	}
	for _, m := range regexp.MustCompile(`<loc>(.*)</loc>`).FindAllSubmatch(w.site(t, "blog").pages["/sitemap.xml"].body, -1) {
		reached[string(m[1])] = true
		queue = append(queue, string(m[1]))
	}
	broken := 0
	for ; len(queue) > 0; queue = queue[1:] {
		base, _ := url.Parse(queue[0])
		s := sites[base.Host]
		if s == nil {
			continue // the dead host
		}
		p := s.pages[base.RequestURI()]
		if p == nil && s.dynamic != nil {
			continue // the calendar has no end; it has a test of its own
		}
		if p == nil {
			broken++
			continue
		}
		hrefs := []string{p.location}
		for _, l := range p.links {
			hrefs = append(hrefs, l.href)
		}
		hrefs = append(hrefs, anchors(t, p)...)
		for _, h := range hrefs {
			u, err := base.Parse(h)
			if h == "" || err != nil || u.Scheme != "http" || u.Hostname() == "" {
				continue
			}
			u.Fragment = ""
			if !reached[u.String()] {
				reached[u.String()] = true
				queue = append(queue, u.String())
			}
		}
	}
	if broken != 6 { // five in the attic, one shelf of the shop
		t.Errorf("%d broken links, want the 6 that are meant", broken)
	}
	for _, s := range w.sites {
		for path := range s.pages {
			if path != "/sitemap.xml" && !reached[w.at(s.name, path)] {
				t.Errorf("%s%s cannot be reached", s.name, path)
			}
		}
	}
}

// anchors reads the links of a page that brings its own bytes.
func anchors(t *testing.T, p *page) (out []string) {
	if p.body == nil || !strings.HasPrefix(p.contentType, "text/html") {
		return nil
	}
	r, err := charset.NewReader(bytes.NewReader(p.body), p.contentType)
	if err != nil && len(p.body) > 0 {
		t.Error(err)
	}
	if len(p.body) == 0 {
		return nil
	}
	doc, err := html.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Data == "a" {
			out = append(out, n.Attr[0].Val)
		}
	}
	return out
}

func TestAPoliteCrawlTakesAboutAMinute(t *testing.T) {
	w, _ := start(t)
	var longest time.Duration
	for _, s := range w.sites {
		gap := 350 * time.Millisecond // mean of 200 to 500
		if strings.Contains(s.robots, "Crawl-delay: 2") {
			gap = 2 * time.Second
		}
		if s.rate.PerSecond > 0 {
			gap = 2 * time.Second // one a second, some time lost outside
		}
		took := time.Duration(len(s.pages)+1) * max(gap, s.delay/2)
		if took > 60*time.Second {
			t.Errorf("%s takes %v", s.name, took)
		}
		longest = max(longest, took)
	}
	if longest < 40*time.Second {
		t.Errorf("the demo is over after %v", longest)
	}
}

func TestNobodyIsAtHomeOnTheDeadHost(t *testing.T) {
	w, c := start(t)
	_, err := c.Get(w.at("dead", "/visit"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
}

func TestTheBakeryCountsAndTheBooksKnowWhoPushed(t *testing.T) {
	w, c := start(t)
	u := w.at("busy", "/")
	for range 4 {
		if resp, _ := get(t, c, u); resp.StatusCode != 200 {
			t.Fatalf("status %d within the burst", resp.StatusCode)
		}
	}
	resp, _ := get(t, c, u)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3" {
		t.Errorf("status %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	b := w.Books()
	if b.Throttled != 1 || b.Pages != 1 || b.Duplicates != 3 {
		t.Errorf("books %+v", b.Counts)
	}
}

func TestTheTheatreRecoversExceptForItsTrapdoor(t *testing.T) {
	w, c := start(t)
	for path, want := range map[string][]int{
		"/acts/overture":                {200},
		"/acts/interval":                {503, 200, 200},
		"/acts/reconciliation":          {503, 503, 200},
		"/trapdoor":                     {500, 500, 500},
		"/acts/a-play-never-performed":  {404},
		"/acts/a-duel-with-umbrellas":   {200},
		"/acts/storm-painted":           {200},
		"/acts/the-letter-arrives?x=no": {404},
	} {
		var got []int
		for range want {
			resp, _ := get(t, c, w.at("flaky", path))
			got = append(got, resp.StatusCode)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s answered %v, want %v", path, got, want)
		}
	}
}

func TestTheRingRoadHasNoExitAndTheChainHas(t *testing.T) {
	w, c := start(t)
	follow := func(path string) (string, int) {
		at := w.at("moved", path)
		for hop := range 20 {
			resp, _ := get(t, c, at)
			if resp.StatusCode/100 != 3 {
				return at, hop
			}
			next, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
			if err != nil {
				return "nowhere", hop
			}
			at = next.String()
		}
		return "never", 20
	}
	for _, f := range []struct {
		from, to string
		hops     int
	}{
		{"/number-1", w.at("moved", "/number-5"), 4},
		{"/ring/north", "never", 20},
		{"/mirror", "never", 20},
		{"/relative", w.at("moved", "/garden"), 1},
		{"/corner-shop", w.at("shop", "/about"), 1},
		{"/nowhere", "nowhere", 0},
		{"/long/0", w.at("moved", "/long/14"), 14},
	} {
		if to, hops := follow(f.from); to != f.to || hops != f.hops {
			t.Errorf("%s ended at %s after %d hops, want %s after %d", f.from, to, hops, f.to, f.hops)
		}
	}
}

func TestTheCalendarGoesOnAndOn(t *testing.T) {
	at := "/calendar/2026/11"
	for range 500 {
		p := month(at)
		if p == nil {
			t.Fatalf("%s is not there", at)
		}
		at = p.links[1].href
	}
	if at != "/calendar/2068/07" {
		t.Errorf("500 months later it is %s", at)
	}
	for _, none := range []string{"/calendar/", "/calendar/2026", "/calendar/2026/13", "/calendar/2026/1", "/calendar/0/01", "/calendar/2026/01?view=moon", "/x/2026/01"} {
		if month(none) != nil {
			t.Errorf("%s is there", none)
		}
	}
}

func TestTheSnailTakesItsTimeAndTheMuseumIsWatched(t *testing.T) {
	w, c := start(t)
	began := time.Now()
	get(t, c, w.at("snail", "/"))
	if took := time.Since(began); took < 800*time.Millisecond {
		t.Errorf("the snail took %v", took)
	}
	get(t, c, w.at("museum", "/storeroom/crate-3"))
	get(t, c, w.at("museum", "/storeroom/open-day"))
	if b := w.Books(); b.Closed != 1 {
		t.Errorf("%d visits to closed rooms, want 1", b.Closed)
	}
	if resp, _ := get(t, c, w.at("attic", "/robots.txt")); resp.StatusCode != 404 {
		t.Errorf("the attic's robots.txt answered %d", resp.StatusCode)
	}
	if _, body := get(t, c, w.at("patient", "/robots.txt")); !strings.Contains(string(body), "Crawl-delay: 2\n") {
		t.Errorf("the tea garden asks %q", body)
	}
}

func TestHostsAreKnownByTheirFirstLabelSoABrowserFindsThem(t *testing.T) {
	w, _ := start(t)
	req, _ := http.NewRequest("GET", "http://127.0.0.1:"+w.port+"/", nil)
	req.Host = "Shop.localhost:" + w.port
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if !strings.Contains(string(body), "<title>Good evening · The Lantern Shop</title>") {
		t.Errorf("got %s", body)
	}
}

func TestBooksInOtherAlphabetsCanBeRead(t *testing.T) {
	w, c := start(t)
	for path, title := range map[string]string{
		"/latin": "Crème brûlée für Anfänger", "/kana": "雨の日の散歩", "/cyrillic": "Письмо с маяка",
		"/central": "Žluťoučký kůň", "/wide": "Two Bytes a Letter",
	} {
		resp, body := get(t, c, w.at("library", path))
		if bytes.Contains(body, []byte(title)) {
			t.Errorf("%s is plain UTF-8", path)
		}
		r, err := charset.NewReader(bytes.NewReader(body), resp.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		if !strings.Contains(string(text), "<title>"+title+"</title>") {
			t.Errorf("%s reads %q", path, text)
		}
	}
	_, picture := get(t, c, w.at("library", "/stamp.png"))
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
	_, doc := get(t, c, w.at("library", "/catalogue.pdf"))
	m := regexp.MustCompile(`startxref\n(\d+)\n`).FindSubmatch(doc)
	if m == nil {
		t.Fatalf("no PDF: %s", doc)
	}
	if at, _ := strconv.Atoi(string(m[1])); !bytes.HasPrefix(doc[at:], []byte("xref\n0 6\n")) {
		t.Errorf("the table of the PDF is not at %d", at)
	}
}

func TestTheDemoEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	w.Close() // returns when everything has ended, whoever began it
	w.Close()
	if _, err := net.Dial("tcp", "127.0.0.1:"+w.port); err == nil {
		t.Error("still listening")
	}
}
