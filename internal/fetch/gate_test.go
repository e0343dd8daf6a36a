package fetch

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

func TestARequestWhoseGateIsShutIsNeverSent(t *testing.T) {
	var seen atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	t.Cleanup(s.Close)
	c := openClient(t)
	ask := func(open bool) (asked int, err error) {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/"), Gate: func() bool { asked++; return open }})
		if err == nil {
			r.Close()
		}
		return asked, err
	}
	for range 2 { // on a new connection, then beside a kept one
		asked, err := ask(false)
		var e *Error
		if !errors.As(err, &e) || e.Outcome != outcome.Cancelled || !e.Timing.Wire.IsZero() || asked != 1 {
			t.Fatalf("asked %d times: %v, wire %v", asked, err, e.Timing.Wire)
		}
		before := seen.Load()
		if asked, err := ask(true); err != nil || asked != 1 {
			t.Fatalf("asked %d times: %v", asked, err)
		}
		if n := seen.Load() - before; n != 1 {
			t.Fatalf("the server saw %d requests, want 1", n)
		}
	}
}

// The gate holds the request until net/http has seen the other side hang up.
func TestAConnectionThatEndsBeforeTheRequestIsAConnectError(t *testing.T) {
	silent := func(int, net.Conn, *bufio.Reader) {}
	cert := httptest.NewTLSServer(nil)
	t.Cleanup(cert.Close)
	handshake := func(_ int, c net.Conn, _ *bufio.Reader) {
		tls.Server(c, &tls.Config{Certificates: cert.TLS.Certificates}).Handshake()
	}
	banner := func(_ int, c net.Conn, _ *bufio.Reader) { io.WriteString(c, "220 mail.example ESMTP\r\n") }
	for name, c := range map[string]struct {
		serve  func(int, net.Conn, *bufio.Reader)
		scheme string
		want   outcome.Outcome
	}{
		"silent":    {silent, "http", outcome.Connect},
		"under TLS": {handshake, "https", outcome.Connect},
		"banner":    {banner, "http", outcome.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			hungUp := make(chan struct{})
			base := rawServer(t, func(n int, conn net.Conn, r *bufio.Reader) {
				defer close(hungUp)
				c.serve(n, conn, r)
				conn.Close()
			})
			client := newClient(t, Config{AllowPrivate: true, InsecureTLS: true})
			_, err := client.Do(t.Context(), &Request{URL: mustURL(t, c.scheme+base[len("http"):]+"/"), Gate: func() bool {
				<-hungUp
				time.Sleep(20 * time.Millisecond) // net/http says nothing when it notices
				return true
			}})
			wantError(t, err, c.want, "headers")
		})
	}
}
