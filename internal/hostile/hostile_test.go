package hostile

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proof shows that a started server misbehaves as its case says.
type proof func(t *testing.T, s *Server)

func TestEveryCaseMisbehavesAsNamed(t *testing.T) {
	// Sizes that make the point without the wait.
	sizes := map[string]Options{
		"gzip-bomb": {Count: 2}, "brotli-bomb": {Count: 2}, "zstd-bomb": {Count: 2}, "sitemap-bomb": {Count: 2},
		"trickling-body": {Interval: time.Millisecond}, "header-trickle": {Interval: time.Millisecond}, "tls-trickle": {Interval: time.Millisecond},
		"many-links": {Count: 5000},
	}
	names := map[string]bool{}
	for _, c := range All() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		if c.What == "" {
			t.Errorf("%s does not say what it does", c.Name)
		}
		t.Run(c.Name, func(t *testing.T) {
			prove := proofs[c.Name]
			if prove == nil {
				t.Fatal("no proof that this case misbehaves")
			}
			prove(t, c.Start(t, sizes[c.Name]))
		})
	}
	if len(names) < 30 {
		t.Errorf("%d cases, want at least 30", len(names))
	}
	for name := range proofs {
		if !names[name] {
			t.Errorf("proof of %s, which is no case", name)
		}
	}
}

// exchange is one raw request and what came back.
type exchange struct {
	raw  []byte // bounded by limit
	err  error  // how reading ended; nil at an orderly end
	head string
	body []byte
}

const limit = 4 << 20

// get sends a request and reads until the other side is done, or the limit.
func get(t *testing.T, s *Server) exchange {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", u.RequestURI(), u.Host); err != nil {
		t.Fatal(err)
	}
	var x exchange
	x.raw, x.err = io.ReadAll(io.LimitReader(c, limit))
	head, body, _ := bytes.Cut(x.raw, []byte("\r\n\r\n"))
	x.head, x.body = string(head), body
	return x
}

// getHTTP is get, read as HTTP.
func getHTTP(t *testing.T, s *Server) (*http.Response, []byte, error) {
	t.Helper()
	x := get(t, s)
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(x.raw)), nil)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r, body, err
}

func hasHead(want ...string) proof {
	return func(t *testing.T, s *Server) {
		x := get(t, s)
		for _, w := range want {
			if !strings.Contains(x.head, w) {
				t.Errorf("want %q in the head:\n%.300s", w, x.head)
			}
		}
		if n := s.Requests(); n != 1 {
			t.Errorf("%d requests counted, want 1", n)
		}
	}
}

// decodesTo proves a bomb: small on the wire, many MiB decoded.
func decodesTo(mib int, decode func(io.Reader) (io.Reader, error)) proof {
	return func(t *testing.T, s *Server) {
		_, body, err := getHTTP(t, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decode(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil || n < int64(mib)<<20 || n < 500*int64(len(body)) {
			t.Errorf("%d bytes decode to %d, %v", len(body), n, err)
		}
	}
}

func decodesToPage(decode func(io.Reader) (io.Reader, error)) proof {
	return func(t *testing.T, s *Server) {
		_, body, err := getHTTP(t, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decode(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != page {
			t.Errorf("decoded %q, %v", got, err)
		}
	}
}

func gunzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// cannotDecode proves that a declared gzip body is not one.
func cannotDecode(t *testing.T, s *Server) {
	_, body, err := getHTTP(t, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gunzip(bytes.NewReader(body))
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if err == nil {
		t.Error("the body decodes")
	}
}

// notHTTPAtAll proves that net/http refuses the answer or its body.
func notHTTPAtAll(t *testing.T, s *Server) {
	if r, _, err := getHTTP(t, s); err == nil {
		t.Errorf("read as a good answer: %s", r.Status)
	}
	if s.Requests() != 1 {
		t.Errorf("%d requests counted, want 1", s.Requests())
	}
}

// larger proves that at least n bytes arrive.
func larger(n int) proof {
	return func(t *testing.T, s *Server) {
		if x := get(t, s); len(x.raw) < n {
			t.Errorf("%d bytes, want at least %d", len(x.raw), n)
		}
	}
}

// contains proves that the body has the texts in it.
func contains(texts ...string) proof {
	return func(t *testing.T, s *Server) {
		_, body, err := getHTTP(t, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range texts {
			if !bytes.Contains(body, []byte(w)) {
				t.Errorf("want %q in %.200q", w, body)
			}
		}
	}
}

// unfinished proves that after a while bytes have arrived (or none, if least
// is 0), and that the answer is not complete.
func unfinished(least, most int) proof {
	return func(t *testing.T, s *Server) {
		u, _ := url.Parse(s.URL)
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host)
		if least > 0 {
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.ReadFull(c, make([]byte, least)); err != nil {
				t.Fatal(err)
			}
		}
		c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
		n, err := io.Copy(io.Discard, c)
		if !errors.Is(err, syscall.ETIMEDOUT) && !isTimeout(err) || int(n) > most {
			t.Errorf("%d more bytes, then %v; want silence or a trickle", n, err)
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// location proves where a redirect leads.
func location(want ...string) proof {
	return func(t *testing.T, s *Server) {
		r, _, err := getHTTP(t, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Values("Location"); r.StatusCode != 302 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s to %q, want 302 to %q", r.Status, got, want)
		}
	}
}

// hops follows redirects by hand.
func hops(t *testing.T, s *Server, most int) (visited []string, last *http.Response) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	at := s.URL
	for range most {
		req, _ := http.NewRequest("GET", at, nil)
		r, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		visited, last = append(visited, req.URL.RequestURI()), r
		next, err := r.Location()
		if err != nil {
			break
		}
		at = next.String()
	}
	return visited, last
}

// handshake proves how a client that trusts the roots (or nobody) fails.
func handshake(roots func(*Server) *x509.CertPool, want string) proof {
	return func(t *testing.T, s *Server) {
		u, _ := url.Parse(s.URL)
		if u.Scheme != "https" {
			t.Fatalf("the URL is %s, want https", s.URL)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		d := tls.Dialer{Config: &tls.Config{RootCAs: roots(s)}}
		c, err := d.DialContext(ctx, "tcp", u.Host)
		if err == nil {
			c.Close()
			t.Fatal("the handshake succeeded")
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func nobody(*Server) *x509.CertPool   { return x509.NewCertPool() }
func itself(s *Server) *x509.CertPool { return s.Roots }
func zstdReader(r io.Reader) (io.Reader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
func brotliReader(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }
func zlibReader(r io.Reader) (io.Reader, error)   { return zlib.NewReader(r) }
func flateReader(r io.Reader) (io.Reader, error)  { return flate.NewReader(r), nil }
