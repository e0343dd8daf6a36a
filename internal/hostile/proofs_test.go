package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

var proofs = map[string]proof{
	"gzip-bomb":   decodesTo(2, gunzip),
	"brotli-bomb": decodesTo(2, brotliReader),
	"zstd-bomb":   decodesTo(2, zstdReader),
	"sitemap-bomb": func(t *testing.T, s *Server) {
		decodesTo(2, gunzip)(t, s)
		if !strings.HasSuffix(s.URL, ".xml.gz") {
			t.Errorf("URL %s", s.URL)
		}
	},
	"deflate-zlib":      decodesToPage(zlibReader),
	"deflate-raw":       decodesToPage(flateReader),
	"encoding-lie":      cannotDecode,
	"gzip-truncated":    cannotDecode,
	"gzip-bad-checksum": cannotDecode,
	"encoding-unknown":  hasHead("Content-Encoding: sdch-nine"),
	"encoding-many":     hasHead("gzip, gzip, gzip, gzip, gzip, gzip"),
	"double-gzip": decodesToPage(func(r io.Reader) (io.Reader, error) {
		once, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return gzip.NewReader(once)
	}),

	"endless-body":   larger(limit),
	"trickling-body": unfinished(100, 200),
	"stalled-body":   unfinished(100, 200),
	"never-answers":  unfinished(0, 0),
	"header-trickle": unfinished(30, 200),

	"reset-mid-body": func(t *testing.T, s *Server) {
		if x := get(t, s); x.err == nil || !strings.Contains(x.err.Error(), "reset") || len(x.body) == 0 {
			t.Errorf("%d bytes, then %v; want a page's part and a reset", len(x.body), x.err)
		}
	},
	"reset-on-request": func(t *testing.T, s *Server) {
		if x := get(t, s); x.err == nil || len(x.raw) > 0 || s.Requests() != 1 {
			t.Errorf("%d bytes, then %v, %d requests", len(x.raw), x.err, s.Requests())
		}
	},
	"close-on-accept": func(t *testing.T, s *Server) {
		u, _ := url.Parse(s.URL)
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read %d, %v", n, err)
		}
	},
	"closes-idle": func(t *testing.T, s *Server) {
		x := get(t, s)
		if !strings.Contains(x.head, "Connection: keep-alive") || string(x.body) != page || x.err != nil {
			t.Errorf("got %q %v", x.raw, x.err)
		}
	},
	"speaks-idle": func(t *testing.T, s *Server) {
		u, _ := url.Parse(s.URL)
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		said := bufio.NewReader(c)
		res, err := http.ReadResponse(said, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != page || err != nil {
			t.Errorf("got %q %v", body, err)
		}
		if more, err := said.ReadString('\n'); !strings.Contains(more, "buy more") {
			t.Errorf("then %q %v", more, err)
		}
	},
	"closes-on-reuse":      hiddenRetry,
	"http2-goaway":         refusesStreams(http2.FrameGoAway),
	"http2-refused-stream": refusesStreams(http2.FrameRSTStream),

	"giant-header": func(t *testing.T, s *Server) {
		if x := get(t, s); len(x.head) < 2<<20 {
			t.Errorf("a head of %d bytes", len(x.head))
		}
	},
	"header-flood":  countInHead("X-Field-", 100_000),
	"cookie-flood":  countInHead("Set-Cookie: ", 2_000),
	"interim-flood": countInAll("HTTP/1.1 103 ", 10_000),

	"length-too-long":   notHTTPAtAll,
	"length-twice":      notHTTPAtAll,
	"length-negative":   notHTTPAtAll,
	"length-huge":       notHTTPAtAll,
	"length-and-chunks": notHTTPAtAll,
	"length-too-short": func(t *testing.T, s *Server) {
		if x := get(t, s); !strings.Contains(x.head, "Content-Length: 10") || len(x.body) <= 10 {
			t.Errorf("%q with a body of %d bytes", x.head, len(x.body))
		}
	},
	"chunked-garbage": notHTTPAtAll,
	"chunked-huge":    notHTTPAtAll,
	"chunked-overhead": func(t *testing.T, s *Server) {
		if _, body, err := getHTTP(t, s); err == nil || len(body)*100 > limit {
			t.Errorf("%d bytes of body in %d on the wire, %v", len(body), limit, err)
		}
	},

	"http09":          notHTTPAtAll,
	"binary-rubbish":  notHTTPAtAll,
	"empty-answer":    notHTTPAtAll,
	"header-rubbish":  notHTTPAtAll,
	"status-rubbish":  notHTTPAtAll,
	"header-unending": notHTTPAtAll,
	"status-999":      hasHead("HTTP/1.1 999 "),
	"no-content-with-body": func(t *testing.T, s *Server) {
		if x := get(t, s); !strings.HasPrefix(x.head, "HTTP/1.1 204 ") || string(x.body) != page {
			t.Errorf("got %q", x.raw)
		}
	},
	"not-modified-unasked": hasHead("HTTP/1.1 304 "),
	"switching-protocols":  hasHead("HTTP/1.1 101 "),

	"redirect-loop": func(t *testing.T, s *Server) {
		if v, _ := hops(t, s, 6); !slices.Equal(v, []string{"/", "/there", "/", "/there", "/", "/there"}) || s.Requests() != 6 {
			t.Errorf("visited %q, %d requests", v, s.Requests())
		}
	},
	"redirect-self": func(t *testing.T, s *Server) {
		if v, _ := hops(t, s, 3); !slices.Equal(v, []string{"/", "/", "/"}) {
			t.Errorf("visited %q", v)
		}
	},
	"redirect-chain": func(t *testing.T, s *Server) {
		v, last := hops(t, s, 100)
		if len(v) != 51 || last.StatusCode != 200 || len(slices.Compact(slices.Sorted(slices.Values(v)))) != 51 {
			t.Errorf("%d hops, the last %s", len(v), last.Status)
		}
	},
	"redirect-to-loopback":        location("http://127.0.0.1:9/secret"),
	"redirect-to-short-loopback":  location("http://127.1:9/secret"),
	"redirect-to-number":          location("http://2130706433:9/secret"),
	"redirect-to-mapped-loopback": location("http://[::ffff:127.0.0.1]:9/secret"),
	"redirect-to-private":         location("http://10.0.0.1/secret"),
	"redirect-to-metadata":        location("http://169.254.169.254/latest/meta-data/"),
	"redirect-to-file":            location("file:///etc/passwd"),
	"redirect-to-javascript":      location("javascript:alert(1)"),
	"redirect-to-data":            location("data:text/html,<a href=/x>x</a>"),
	"location-missing":            location(),
	"location-empty":              location(""),
	"location-many":               location("/one", "/two"),
	"location-garbage": func(t *testing.T, s *Server) {
		x := get(t, s)
		_, value, _ := strings.Cut(x.head, "Location: ")
		value, _, _ = strings.Cut(value, "\r\n")
		if u, err := url.Parse(value); err == nil || value == "" {
			t.Errorf("%q is the URL %v", value, u)
		}
	},

	"wrong-charset":   contains("M\xfcnchen", "<meta charset=windows-31j>"),
	"unknown-charset": hasHead("charset=x-klingon"),
	"hostile-title":   contains("\x1b]0;owned\x07", "=HYPERLINK(", "&lt;script&gt;", "\u202e"),
	"nul-bytes":       contains("hr\x00ef", "/t\x00wo"),
	"type-lie":        contains("\x7fELF"),
	"type-garbage":    hasHead("Content-Type: text//html;;charset"),
	"deep-html": func(t *testing.T, s *Server) {
		_, body, err := getHTTP(t, s)
		if n := bytes.Count(body, []byte("<div>")); err != nil || n != 100_000 || !bytes.HasSuffix(body, []byte("bottom</a>")) {
			t.Errorf("%d levels, %v", n, err)
		}
	},
	"many-links": func(t *testing.T, s *Server) {
		_, body, err := getHTTP(t, s)
		if n := bytes.Count(body, []byte("<a href=")); err != nil || n != 5000 {
			t.Errorf("%d links, %v", n, err)
		}
	},
	"calendar": func(t *testing.T, s *Server) {
		contains(`href="/?month=1"`, `view=list`)(t, s)
		s.URL += "?month=41"
		contains(`href="/?month=42"`)(t, s)
	},

	"retry-after-garbage":  hasHead("429", "Retry-After: soon; maybe"),
	"retry-after-negative": hasHead("429", "Retry-After: -3600"),
	"retry-after-huge":     hasHead("429", "Retry-After: 99999999999999"),
	"retry-after-past":     hasHead("429", "Retry-After: Sun, 06 Nov 1994"),
	"retry-after-date": func(t *testing.T, s *Server) {
		r, _, err := getHTTP(t, s)
		if err != nil {
			t.Fatal(err)
		}
		at, err := http.ParseTime(r.Header.Get("Retry-After"))
		if d := time.Until(at); err != nil || d < time.Minute || d > 3*time.Minute {
			t.Errorf("Retry-After %q, %v", r.Header.Get("Retry-After"), err)
		}
	},

	"robots-endless": larger(limit),
	"robots-redirects": func(t *testing.T, s *Server) {
		if v, last := hops(t, s, 100); len(v) != 6 || last.StatusCode != 200 {
			t.Errorf("%d hops, the last %s", len(v), last.Status)
		}
	},
	"robots-html":  contains("<!doctype html>", "User-agent: nobody"),
	"robots-down":  hasHead("503"),
	"sitemap-loop": contains("/sitemap.xml</loc>", "<sitemapindex"),
	"sitemap-entities": func(t *testing.T, s *Server) {
		contains("<!ENTITY e12 ", "<loc>&e12;</loc>")(t, s)
	},

	"self-signed": handshake(nobody, "unknown authority"),
	"expired":     handshake(itself, "expired"),
	"wrong-name":  handshake(itself, "192.0.2.1"),
	"tls-rubbish": handshake(nobody, "does not look like a TLS handshake"),
	"tls-trickle": handshake(nobody, "deadline exceeded"),
	"tls-silence": handshake(nobody, "deadline exceeded"),
}

// hiddenRetry proves that net/http, asked twice, put more than two requests on
// the wire: the very thing permits must be compared with.
func hiddenRetry(t *testing.T, s *Server) {
	tr := &http.Transport{MaxIdleConnsPerHost: 1}
	defer tr.CloseIdleConnections()
	for range 2 {
		req, _ := http.NewRequest("GET", s.URL, nil)
		r, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if n := s.Requests(); n != 3 {
		t.Errorf("two calls made %d requests, want 3", n)
	}
	if s.Conns() != 2 {
		t.Errorf("%d connections, want 2", s.Conns())
	}
}

// refusesStreams proves that a request is counted and refused with the frame.
func refusesStreams(want http2.FrameType) proof {
	return func(t *testing.T, s *Server) {
		u, _ := url.Parse(s.URL)
		c, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: s.Roots, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(c, http2.ClientPreface)
		f := http2.NewFramer(c, c)
		f.WriteSettings()
		var head bytes.Buffer
		enc := hpack.NewEncoder(&head)
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", u.Host}, {":path", "/h2"}} {
			enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: true})
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if frame.Header().Type == want {
				break
			}
		}
		if got := s.Seen(); !slices.Equal(got, []string{"GET /h2"}) {
			t.Errorf("seen %q", got)
		}
	}
}

func countInHead(text string, want int) proof {
	return func(t *testing.T, s *Server) {
		if n := strings.Count(get(t, s).head, text); n != want {
			t.Errorf("%d times %q, want %d", n, text, want)
		}
	}
}

func countInAll(text string, want int) proof {
	return func(t *testing.T, s *Server) {
		if n := bytes.Count(get(t, s).raw, []byte(text)); n != want {
			t.Errorf("%d times %q, want %d", n, text, want)
		}
	}
}

func TestRobotsAndSitemapAreLeftAloneUnlessTheyAreTheCase(t *testing.T) {
	for _, name := range []string{"endless-body", "never-answers", "http09"} {
		s := Start(t, name)
		s.URL = strings.TrimSuffix(s.URL, "/") + "/robots.txt"
		if r, _, err := getHTTP(t, s); err != nil || r.StatusCode != 404 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if got := fmt.Sprint(s.Seen()); got != "[GET /robots.txt]" {
			t.Errorf("%s: seen %s", name, got)
		}
	}
	for _, name := range []string{"robots-down", "sitemap-bomb"} {
		s := Start(t, name)
		u, _ := url.Parse(s.URL)
		s.URL = "http://" + u.Host + "/page"
		if r, body, err := getHTTP(t, s); err != nil || r.StatusCode != 200 || string(body) != page {
			t.Errorf("%s: the page does not work: %v %v", name, r, err)
		}
	}
}

func TestServersAreBoundedInBytesAndTime(t *testing.T) {
	s := StartWith(t, "endless-body", Options{Bytes: 1 << 20})
	if x := get(t, s); len(x.raw) > 1<<20 || len(x.raw) < 1<<19 {
		t.Errorf("%d bytes, want about a MiB", len(x.raw))
	}
	s = StartWith(t, "never-answers", Options{Life: 50 * time.Millisecond})
	if x := get(t, s); len(x.raw) > 0 || isTimeout(x.err) {
		t.Errorf("%d bytes, %v; want the connection closed", len(x.raw), x.err)
	}
}
