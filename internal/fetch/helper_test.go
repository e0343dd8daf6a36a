package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

func mustURL(tb testing.TB, s string) weburl.URL {
	tb.Helper()
	if _, err := splitTarget(weburl.FromCanonical(s)); err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return weburl.FromCanonical(s)
}

func newClient(tb testing.TB, cfg Config) *Client {
	tb.Helper()
	c, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// openClient may connect to loopback, where the tests' servers are.
func openClient(tb testing.TB) *Client { return newClient(tb, Config{AllowPrivate: true}) }

// get reads a whole answer.
func get(tb testing.TB, c *Client, url string) (*Response, string, error) {
	tb.Helper()
	r, err := c.Do(context.Background(), &Request{URL: mustURL(tb, url)})
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	b, err := ReadAll(r, nil)
	return r, string(b), err
}

func mustGet(tb testing.TB, c *Client, url string) (*Response, string) {
	tb.Helper()
	r, body, err := get(tb, c, url)
	if err != nil {
		tb.Fatalf("get %s: %v", url, err)
	}
	return r, body
}

// wantError checks the class of a failure and returns it.
func wantError(tb testing.TB, err error, o outcome.Outcome, op string) *Error {
	tb.Helper()
	var e *Error
	if !errors.As(err, &e) {
		tb.Fatalf("want a failed hop, got %v", err)
	}
	if e.Outcome != o || e.Op != op {
		tb.Fatalf("want %s in %s, got %s in %s: %v", o, op, e.Outcome, e.Op, err)
	}
	if e.Timing.Start.IsZero() || e.Timing.Total <= 0 {
		tb.Fatalf("the failure has no timing: %+v", e.Timing)
	}
	return e
}

// rawServer gives each accepted connection to serve, which owns it. It waits
// for all of them at the end of the test.
func rawServer(tb testing.TB, serve func(n int, c net.Conn, r *bufio.Reader)) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	tb.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + ln.Addr().String()
}

// readRequest reads one request's head and returns it.
func readRequest(r *bufio.Reader) (*http.Request, error) { return http.ReadRequest(r) }

// answerWith serves fixed bytes, one connection a request.
func answerWith(tb testing.TB, answer string) string {
	return rawServer(tb, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil {
			io.WriteString(c, answer)
		}
	})
}

// serveTLS runs a handler behind TLS with HTTP/2, and returns a client that
// trusts it.
func serveTLS(tb testing.TB, h http.Handler, cfg Config) (*Client, string) {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = discardLog()
	s.StartTLS()
	tb.Cleanup(s.Close)
	cfg.AllowPrivate = true
	cfg.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return newClient(tb, cfg), s.URL
}

func fromString(s string) weburl.URL { return weburl.FromCanonical(s) }

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
