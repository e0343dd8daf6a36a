package acceptance

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/testenv"
)

// closer is a server that keeps connections and closes them after a random
// time in silence, close to the crawler's own pace, and sometimes just when
// the next request arrives: so again and again a request is written while the
// connection is being closed. It goes on reading after it closed its side, so
// it sees every request that was put on the wire.
type closer struct {
	addr  string
	pages int
	life  func() time.Duration // how long a connection may be silent

	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	heads    []string
	late     int // requests that came when the connection was closed
	conns    map[net.Conn]bool
}

func startCloser(t *testing.T, pages int, life func() time.Duration) *closer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &closer{addr: l.Addr().String(), pages: pages, life: life, listener: l, conns: map[net.Conn]bool{}}
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.conns[conn] = true
			c.mu.Unlock()
			c.wg.Go(func() { c.serve(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(c.stop)
	return c
}

func (c *closer) stop() {
	c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

func (c *closer) serve(conn *net.TCPConn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	open := true
	for n := 0; ; n++ {
		if open {
			conn.SetReadDeadline(time.Now().Add(c.life()))
		} else {
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		}
		req, err := http.ReadRequest(r)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() && open {
				conn.CloseWrite() // gone, as far as the client can see
				open = false
				continue
			}
			return
		}
		if open && n > 0 && rand.IntN(10) == 0 {
			conn.CloseWrite() // as if it had been closed a moment ago
			open = false
		}
		c.mu.Lock()
		c.heads = append(c.heads, req.URL.Path)
		if !open {
			c.late++
		}
		c.mu.Unlock()
		if !open {
			continue
		}
		status, body := "200 OK", c.page(req.URL.Path)
		if req.URL.Path == "/robots.txt" {
			status, body = "404 Not Found", ""
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
}

// page links to the next three, so that connections are used all the time.
func (c *closer) page(path string) string {
	var n int
	_, _ = fmt.Sscanf(path, "/p/%d", &n) // the home page is number 0
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><title>page %d</title>", n)
	for i := n*3 + 1; i <= n*3+3 && i < c.pages; i++ {
		fmt.Fprintf(&b, `<a href="/p/%d">%[1]d</a>`, i)
	}
	return b.String()
}

func Test_requests_on_connections_that_die_are_counted_and_not_repeated_in_secret(t *testing.T) {
	const pages, pace = 250, 20 * time.Millisecond
	server := startCloser(t, pages, func() time.Duration {
		return pace/2 + time.Duration(rand.Int64N(int64(pace*3/2)))
	})
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir, "crawl", "http://"+server.addr+"/", "--delay", pace.String(), "--per-host", "4", "--seeding", "none", "--retries", "10", "--quiet")
	if code := p.wait(2 * time.Minute); code != 0 {
		t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	server.stop()
	rows := requestsOf(t, dir)
	found := 0
	for u, page := range pagesOf(t, dir) {
		if page.Outcome.String() != "ok" {
			t.Errorf("%s ended with %s (%s)", u, page.Outcome, page.Error)
		}
		found++
	}
	t.Logf("%d pages, %d requests seen by the server over %d connections, %d of them too late; %d rows, %d sent",
		found, len(server.heads), len(server.conns), server.late, len(rows), sent(rows))
	if len(server.heads) != sent(rows) {
		t.Errorf("the server saw %d requests, the ledger has %d", len(server.heads), sent(rows))
	}
	if found != pages {
		t.Errorf("%d pages, want %d", found, pages)
	}
	if server.late == 0 {
		t.Error("no request met a connection that was being closed; this proves nothing")
	}
}

func Test_nginx_that_closes_connections_counts_as_many_requests_as_the_ledger(t *testing.T) {
	const root = "/usr/share/doc/python3-doc/html"
	testenv.NeedPath(t, root)
	server := startNginx(t, root, "keepalive_requests 7; keepalive_timeout 1s;")
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir, "crawl", server.origin+"/", "--delay", "0", "--per-host", "8", "--seeding", "none", "--scope", "host")
	if code := p.wait(2 * time.Minute); code != 0 {
		t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	rows, seen := requestsOf(t, dir), server.served()
	t.Logf("nginx counted %d requests, the ledger %d", len(seen), len(rows))
	if len(seen) != sent(rows) {
		t.Errorf("nginx saw %d requests, the ledger has %d, %d of them sent", len(seen), len(rows), sent(rows))
	}
}
