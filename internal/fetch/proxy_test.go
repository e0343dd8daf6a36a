package fetch

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

// httpProxy is a small proxy that knows one password. Every target is the
// same backend, whatever its name: the client must not resolve names.
func httpProxy(t *testing.T, password, backend string) (addr string, seen *atomic.Pointer[string]) {
	seen = new(atomic.Pointer[string])
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			first := line
			auth := ""
			for line != "\r\n" {
				if line, err = r.ReadString('\n'); err != nil {
					return
				}
				if v, ok := strings.CutPrefix(line, "Proxy-Authorization: Basic "); ok {
					b, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(v))
					auth = string(b)
				}
			}
			seen.Store(&first)
			if auth != password {
				io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			if !strings.HasPrefix(first, "CONNECT ") {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied")
				continue
			}
			tunnel(c, r, backend)
			return
		}
	})
	return strings.TrimPrefix(base, "http://"), seen
}

func tunnel(c net.Conn, r *bufio.Reader, backend string) {
	up, err := net.Dial("tcp", backend)
	if err != nil {
		io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer up.Close()
	io.WriteString(c, "HTTP/1.1 200 Connected\r\n\r\n")
	pipeBoth(c, r, up)
}

func pipeBoth(c net.Conn, r io.Reader, up net.Conn) {
	done := make(chan struct{})
	go func() { defer close(done); io.Copy(up, r); up.Close() }()
	io.Copy(c, up)
	c.Close()
	<-done
}

func TestAProxyCarriesPlainAndEncryptedRequests(t *testing.T) {
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "tunnelled "+r.Proto) }))
	backend.EnableHTTP2 = true
	backend.StartTLS()
	t.Cleanup(backend.Close)
	addr, seen := httpProxy(t, "user:secret", backend.Listener.Addr().String())
	c := newClient(t, Config{
		Proxy: "http://user:secret@" + addr, RootCAs: backend.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	})
	for i := range 2 {
		r, body := mustGet(t, c, "http://nowhere.example/a|b?q")
		if body != "proxied" || *seen.Load() != "GET http://nowhere.example/a|b?q HTTP/1.1\r\n" {
			t.Fatalf("%q, %q", body, *seen.Load())
		}
		if r.Remote.IsValid() || r.Private || r.Timing().Reused != (i == 1) {
			t.Fatalf("%+v", r)
		}
	}
	if _, body := mustGet(t, c, "https://example.com/x"); body != "tunnelled HTTP/2.0" || *seen.Load() != "CONNECT example.com:443 HTTP/1.1\r\n" {
		t.Fatalf("%q, %q", body, *seen.Load())
	}
}

func TestBehindAProxyTheGuardStillJudgesLiterals(t *testing.T) {
	addr, seen := httpProxy(t, "", "")
	c := newClient(t, Config{Proxy: "http://" + addr})
	for _, u := range []string{"http://127.0.0.1/", "http://10.0.0.1/", "https://[::1]/", "http://localhost/", "http://x.localhost./", "http://169.254.169.254/"} {
		_, _, err := get(t, c, u)
		wantError(t, err, outcome.Guard, "guard")
	}
	if seen.Load() != nil {
		t.Fatalf("the proxy heard %q", *seen.Load())
	}
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, "http://10.0.0.1/"), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestProxyFailuresNeverPrintItsCredentials(t *testing.T) {
	addr, _ := httpProxy(t, "user:right", "")
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	dead := ln.Addr().String()
	ln.Close()
	for _, proxy := range []string{
		"http://user:hunter2@" + addr, "http://user:hunter2@" + dead, "socks5://user:hunter2@" + dead, "https://user:hunter2@" + addr,
		"http://user:hunter2@no-such-proxy.invalid:1",
	} {
		c := newClient(t, Config{Proxy: proxy, TLSTimeout: 50 * time.Millisecond, Resolver: resolverFunc(
			func() ([]netip.Addr, time.Duration, error) { return nil, 0, ErrNoHost })})
		for _, target := range []string{"http://a.example/", "https://a.example/"} {
			_, _, err := get(t, c, target)
			e := wantError(t, err, outcome.Connect, "proxy")
			for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%v", e.Unwrap())} {
				if strings.Contains(text, "hunter2") {
					t.Errorf("%s", text)
				}
			}
		}
	}
	for _, bad := range []string{"http://user:hunter2@host:port", "ftp://user:hunter2@host", "http://user:hunter2@", "://hunter2", "http://user:hunt\x7fer2@h"} {
		if _, err := New(Config{Proxy: bad}); err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hunt\\x7f") {
			t.Errorf("%v", err)
		}
	}
}

func TestASOCKSProxyIsSpokenTo(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "via socks "+r.Host) }))
	t.Cleanup(backend.Close)
	asked := make(chan string, 1)
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		head := make([]byte, 2)
		io.ReadFull(r, head)
		io.ReadFull(r, make([]byte, head[1]))
		c.Write([]byte{5, 0}) // no authentication
		req := make([]byte, 5)
		io.ReadFull(r, req)
		name := make([]byte, int(req[4])+2)
		io.ReadFull(r, name)
		asked <- fmt.Sprintf("%s:%d", name[:len(name)-2], binary.BigEndian.Uint16(name[len(name)-2:]))
		c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		up, err := net.Dial("tcp", backend.Listener.Addr().String())
		if err != nil {
			return
		}
		defer up.Close()
		pipeBoth(c, r, up)
	})
	c := newClient(t, Config{Proxy: strings.Replace(base, "http:", "socks5:", 1)})
	if _, body := mustGet(t, c, "http://a.example/"); body != "via socks a.example" {
		t.Fatal(body)
	}
	if name := <-asked; name != "a.example:80" {
		t.Fatal(name)
	}
}

func TestTheEnvironmentIsReadOnlyWhenAsked(t *testing.T) {
	addr, seen := httpProxy(t, "", "")
	t.Setenv("HTTP_PROXY", "http://"+addr)
	t.Setenv("NO_PROXY", "direct.example")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "direct") }))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	o, _ := ParseResolve("*:" + port + ":127.0.0.1")
	for _, tt := range []struct {
		env  bool
		host string
		want string
	}{{false, "a.example", "direct"}, {true, "a.example", "proxied"}, {true, "direct.example", "direct"}} {
		c := newClient(t, Config{ProxyFromEnv: tt.env, Resolve: []Override{o}})
		if _, body := mustGet(t, c, "http://"+tt.host+":"+port+"/"); body != tt.want {
			t.Errorf("%+v: %s", tt, body)
		}
	}
	if seen.Load() == nil {
		t.Error("the proxy of the environment was not used")
	}
}
