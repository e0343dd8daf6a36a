package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

func TestAPageArrivesWithStatusHeaderBodyAndTiming(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Test", "yes")
		w.WriteHeader(404)
		io.WriteString(w, "gone fishing")
	}))
	t.Cleanup(s.Close)
	c := openClient(t)
	var calls atomic.Int32
	var wire time.Time
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/a"), OnWire: func(at time.Time) { calls.Add(1); wire = at }})
	if err != nil {
		t.Fatal(err)
	}
	body, err := ReadAll(r, nil)
	r.Close()
	r.Close()
	if err != nil || string(body) != "gone fishing" {
		t.Fatalf("body %q, %v", body, err)
	}
	if r.Status != 404 || r.Header.Get("X-Test") != "yes" || r.Proto != "HTTP/1.1" || r.WireBytes() != 12 {
		t.Fatalf("%+v", r)
	}
	if !r.Private || r.Remote.String() != "127.0.0.1" {
		t.Fatalf("remote %v, private %v", r.Remote, r.Private)
	}
	tm := r.Timing()
	if calls.Load() != 1 || !tm.Wire.Equal(wire) || tm.Reused || tm.Connect <= 0 || tm.TTFB <= 0 || tm.Total < tm.TTFB+tm.Connect {
		t.Fatalf("%d calls, timing %+v", calls.Load(), tm)
	}
	_, _ = mustGet(t, c, s.URL+"/b")
	r2, _ := mustGet(t, c, s.URL+"/c")
	if tm := r2.Timing(); !tm.Reused || tm.Connect != 0 || tm.DNS != 0 {
		t.Fatalf("second request: %+v", tm)
	}
}

func TestTheURLFetchedIsTheURLFoundByteForByte(t *testing.T) {
	got := make(chan string, 1)
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			got <- line
			for line != "\r\n" {
				if line, err = r.ReadString('\n'); err != nil {
					return
				}
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := openClient(t)
	for _, uri := range []string{
		"/", "/?", "/a?b=c", "/%zz%", "/a|b^c", "/%2F%2f/x", "//double//slash", "//d?", "/[x]?[y]", "/a;b=c,d'e", "/?q=%", "/x?a=//b",
	} {
		mustGet(t, c, base+uri)
		if line := <-got; line != "GET "+uri+" HTTP/1.1\r\n" {
			t.Errorf("%s went out as %q", uri, line)
		}
	}
}

func TestARequestHasNoBodyAndOnlyTheHeadersMeant(t *testing.T) {
	heads := make(chan string, 1)
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		var head strings.Builder
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if head.WriteString(line); line == "\r\n" {
				break
			}
		}
		heads <- head.String()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	c := newClient(t, Config{AllowPrivate: true, UserAgent: "tiptoe/test"})
	header := http.Header{"Accept": {"text/html"}}
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, base+"/x"), Header: header})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	want := "GET /x HTTP/1.1\r\nHost: " + strings.TrimPrefix(base, "http://") +
		"\r\nUser-Agent: tiptoe/test\r\nAccept: text/html\r\nAccept-Encoding: zstd, gzip, br\r\n\r\n"
	if got := <-heads; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if len(header) != 1 {
		t.Fatalf("the caller's header was changed: %v", header)
	}
}

func TestARedirectIsAnAnswerAndKeepsItsConnection(t *testing.T) {
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := openClient(t)
	for range 5 {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/")})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != 302 || r.Header.Get("Location") != "/elsewhere" {
			t.Fatalf("%d %v", r.Status, r.Header)
		}
		r.Close() // unread
	}
	if n := conns.Load(); n != 1 {
		t.Fatalf("%d connections for five unread redirects", n)
	}
}

func TestHTTP2IsSpokenOverTLSAndOneConnectionServesAll(t *testing.T) {
	var conns atomic.Int32
	started, release := make(chan struct{}, 8), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			started <- struct{}{}
			<-release
		}
		fmt.Fprint(w, r.Proto, r.ContentLength, len(r.TransferEncoding))
	}))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, Config{AllowPrivate: true, RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	var wires atomic.Int32
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/"), OnWire: func(time.Time) { wires.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	body, err := ReadAll(r, nil)
	r.Close()
	if err != nil || string(body) != "HTTP/2.00 0" || r.Proto != "HTTP/2.0" {
		t.Fatalf("%q %v %s", body, err, r.Proto)
	}
	if tm := r.Timing(); tm.TLS <= 0 || tm.Wire.IsZero() || wires.Load() != 1 {
		t.Fatalf("timing %+v, %d wires", tm, wires.Load())
	}
	done := make(chan error, 4)
	for range 4 {
		go func() {
			_, _, err := get(t, c, s.URL+"/slow")
			done <- err
		}()
	}
	for range 4 {
		<-started
	}
	close(release)
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

func TestHTTP2CanBeSwitchedOff(t *testing.T) {
	c, url := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }),
		Config{DisableHTTP2: true})
	if r, body := mustGet(t, c, url); body != "HTTP/1.1" || r.Timing().TLS <= 0 {
		t.Fatalf("%s %+v", body, r.Timing())
	}
}

func TestCookiesAreKeptOnlyWhenAsked(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "7", Path: "/"})
		io.WriteString(w, r.Header.Get("Cookie"))
	}))
	t.Cleanup(s.Close)
	c := openClient(t)
	mustGet(t, c, s.URL+"/")
	if _, body := mustGet(t, c, s.URL+"/"); body != "" {
		t.Fatalf("a cookie went back: %q", body)
	}
	jar, _ := cookiejar.New(nil)
	c = newClient(t, Config{AllowPrivate: true, Cookies: jar})
	mustGet(t, c, s.URL+"/")
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/"), Header: http.Header{"Cookie": {"own=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if body, _ := ReadAll(r, nil); string(body) != "own=1; id=7" {
		t.Fatalf("cookies %q", body)
	}
}

func TestBadURLsAndCancelledContextsNeverReachTheNetwork(t *testing.T) {
	c := newClient(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, io.EOF
	}})
	for _, u := range []string{"", "ftp://a/", "http://", "http://a@b/", "https:///x"} {
		_, err := c.Do(t.Context(), &Request{URL: fromString(u)})
		wantError(t, err, outcome.Protocol, "request")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Do(ctx, &Request{URL: fromString("http://203.0.114.1/")})
	wantError(t, err, outcome.Cancelled, "request")
}

func TestAMalformedConfigNamesItsKey(t *testing.T) {
	for key, cfg := range map[string]Config{
		"ConnectTimeout": {ConnectTimeout: -1},
		"MaxBody":        {MaxBody: -1},
		"MaxIdle":        {MaxIdle: -1},
		"ProxyFromEnv":   {Proxy: "http://p:1", ProxyFromEnv: true},
		"proxy":          {Proxy: "gopher://p:1"},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://a/", "https://[::1]:8/x?y#z", "http://a:80//b?", "http://a?q", "https://a/%zz|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tg, err := splitTarget(fromString(s))
		if err != nil {
			return
		}
		if !strings.HasPrefix(s, tg.origin) || tg.name == "" || tg.port == "" || tg.uri[0] != '/' || strings.ContainsAny(tg.host, "/?#@") {
			t.Fatalf("%+v", tg)
		}
		if got := tg.requestURL(true).RequestURI(); got != tg.scheme+"://"+tg.host+tg.uri {
			t.Fatalf("absolute %q of %+v", got, tg)
		}
		// A path that begins with two slashes passes through net/url, which
		// re-encodes what it finds odd.
		if got := tg.requestURL(false).RequestURI(); !strings.HasPrefix(tg.uri, "//") && got != tg.uri {
			t.Fatalf("%q of %+v", got, tg)
		}
	})
}
