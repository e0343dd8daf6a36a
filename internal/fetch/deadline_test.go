package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/outcome"
)

// fixedResolver knows every name under one set of addresses.
type fixedResolver struct {
	addrs []netip.Addr
	calls atomic.Int32
}

func (r *fixedResolver) Resolve(context.Context, string) ([]netip.Addr, time.Duration, error) {
	r.calls.Add(1)
	return r.addrs, time.Hour, nil
}

func public(addrs ...string) *fixedResolver {
	r := &fixedResolver{}
	for _, a := range addrs {
		r.addrs = append(r.addrs, netip.MustParseAddr(a))
	}
	return r
}

// inBubble runs a client in virtual time against a server at the other end of
// pipes. serve owns its connection.
func inBubble(t *testing.T, cfg Config, serve func(c net.Conn, r *bufio.Reader), test func(t *testing.T, c *Client)) {
	synctest.Test(t, func(t *testing.T) {
		var servers sync.WaitGroup
		cfg.Resolver = public("93.184.215.14")
		if cfg.Dial == nil {
			cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				servers.Go(func() {
					defer theirs.Close()
					serve(theirs, bufio.NewReader(theirs))
				})
				return ours, nil
			}
		}
		c := newClient(t, cfg)
		test(t, c)
		c.Close()
		servers.Wait()
	})
}

// hang waits until the other end goes away.
func hang(c net.Conn) { io.Copy(io.Discard, c) }

func TestEachDeadlineFiresAtItsTimeAndNamesItsPhase(t *testing.T) {
	const page = "http://a.example/"
	okHead := "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
	tests := []struct {
		name  string
		cfg   Config
		url   string
		serve func(c net.Conn, r *bufio.Reader)
		op    string
		after time.Duration
	}{
		{"no TLS handshake", Config{TLSTimeout: 7 * time.Second}, "https://a.example/",
			func(c net.Conn, r *bufio.Reader) { hang(c) }, "tls", 7 * time.Second},
		{"no headers", Config{HeaderTimeout: 8 * time.Second}, page,
			func(c net.Conn, r *bufio.Reader) { readRequest(r); hang(c) }, "headers", 8 * time.Second},
		{"half the headers", Config{HeaderTimeout: 8 * time.Second}, page,
			func(c net.Conn, r *bufio.Reader) {
				readRequest(r)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nX-")
				hang(c)
			}, "headers", 8 * time.Second},
		{"body stalls at once", Config{}, page,
			func(c net.Conn, r *bufio.Reader) { readRequest(r); io.WriteString(c, okHead); hang(c) }, "body", 15 * time.Second},
		{"body stalls after a while", Config{IdleReadTimeout: 5 * time.Second}, page,
			func(c net.Conn, r *bufio.Reader) {
				readRequest(r)
				io.WriteString(c, okHead)
				for range 4 {
					time.Sleep(4 * time.Second)
					io.WriteString(c, "x")
				}
				hang(c)
			}, "body", 21 * time.Second},
		{"body trickles", Config{}, page,
			func(c net.Conn, r *bufio.Reader) {
				readRequest(r)
				io.WriteString(c, okHead)
				for {
					time.Sleep(time.Second)
					if _, err := io.WriteString(c, "x"); err != nil {
						return
					}
				}
			}, "body", 30 * time.Second},
		{"headers trickle", Config{HeaderTimeout: 20 * time.Second, Timeout: 12 * time.Second}, page,
			func(c net.Conn, r *bufio.Reader) {
				readRequest(r)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: ")
				for {
					time.Sleep(time.Second)
					if _, err := io.WriteString(c, "x"); err != nil {
						return
					}
				}
			}, "headers", 12 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.cfg, tt.serve, func(t *testing.T, c *Client) {
				start := time.Now()
				_, _, err := get(t, c, tt.url)
				wantError(t, err, outcome.Timeout, tt.op)
				if took := time.Since(start); took < tt.after || took > tt.after+time.Microsecond {
					t.Fatalf("cut after %v, want %v", took, tt.after)
				}
			})
		})
	}
}

func TestAMinimumRateCutsATrickleEarlier(t *testing.T) {
	trickle := func(perSecond int) func(c net.Conn, r *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			readRequest(r)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", perSecond*12)
			for range 12 {
				time.Sleep(time.Second)
				if _, err := io.WriteString(c, strings.Repeat("x", perSecond)); err != nil {
					return
				}
			}
		}
	}
	cfg := Config{MinRate: 100}
	inBubble(t, cfg, trickle(10), func(t *testing.T, c *Client) {
		start := time.Now()
		_, _, err := get(t, c, "http://a.example/")
		wantError(t, err, outcome.Timeout, "body")
		if took := time.Since(start); took < 5*time.Second || took > 8*time.Second {
			t.Fatalf("cut after %v", took)
		}
	})
	inBubble(t, cfg, trickle(200), func(t *testing.T, c *Client) {
		if _, body := mustGet(t, c, "http://a.example/"); len(body) != 2400 {
			t.Fatal(len(body))
		}
	})
}

func TestASlowReaderIsNotTheHostsFault(t *testing.T) {
	serve := func(c net.Conn, r *bufio.Reader) {
		readRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
		io.WriteString(c, "cd")
		hang(c)
	}
	inBubble(t, Config{IdleReadTimeout: 3 * time.Second, MinRate: 1000, MinRateGrace: time.Second}, serve, func(t *testing.T, c *Client) {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, "http://a.example/")})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for range 4 {
			time.Sleep(5 * time.Second)
			if _, err := io.ReadFull(r.Body, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestConnectHasOneDeadlineOverAllAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		c := newClient(t, Config{
			Resolver: public("1.1.1.1", "1.1.1.2", "1.1.1.3"),
			Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
				tried++
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		start := time.Now()
		_, _, err := get(t, c, "http://a.example/")
		wantError(t, err, outcome.Timeout, "connect")
		if took := time.Since(start); took != DefaultConnectTimeout || tried != 3 {
			t.Fatalf("%d addresses in %v", tried, took)
		}
		c.Close()
	})
}

func TestAnAddressThatWorkedIsTriedFirstNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []string
		c := newClient(t, Config{
			Resolver: public("1.1.1.1", "1.1.1.2"),
			Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
				tried = append(tried, addr)
				if addr == "1.1.1.1:80" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					readRequest(bufio.NewReader(theirs))
					io.WriteString(theirs, "HTTP/1.0 200 OK\r\n\r\nhi")
				}()
				return ours, nil
			},
		})
		mustGet(t, c, "http://a.example/")
		mustGet(t, c, "http://a.example/")
		if got := strings.Join(tried, " "); got != "1.1.1.1:80 1.1.1.2:80 1.1.1.2:80" {
			t.Fatal(got)
		}
		c.Close()
	})
}

func TestACancelledContextEndsEveryPhaseAtOnce(t *testing.T) {
	phases := map[string]func(c net.Conn, r *bufio.Reader){
		"headers": func(c net.Conn, r *bufio.Reader) { readRequest(r); hang(c) },
		"body": func(c net.Conn, r *bufio.Reader) {
			readRequest(r)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
			hang(c)
		},
		"tls": func(c net.Conn, r *bufio.Reader) { hang(c) },
	}
	for op, serve := range phases {
		t.Run(op, func(t *testing.T) {
			inBubble(t, Config{}, serve, func(t *testing.T, c *Client) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(2*time.Second, cancel)
				start := time.Now()
				url := "http://a.example/"
				if op == "tls" {
					url = "https://a.example/"
				}
				r, err := c.Do(ctx, &Request{URL: mustURL(t, url)})
				if err == nil {
					_, err = ReadAll(r, nil)
					r.Close()
				}
				wantError(t, err, outcome.Cancelled, op)
				if took := time.Since(start); took != 2*time.Second {
					t.Fatalf("ended after %v", took)
				}
			})
		})
	}
}

func TestTheCallersOwnDeadlineIsACancelNotATimeout(t *testing.T) {
	serve := func(c net.Conn, r *bufio.Reader) { readRequest(r); hang(c) }
	inBubble(t, Config{}, serve, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, &Request{URL: mustURL(t, "http://a.example/")})
		e := wantError(t, err, outcome.Cancelled, "headers")
		if !errors.Is(e, context.DeadlineExceeded) {
			t.Fatalf("the cause is lost: %v", e)
		}
	})
}

func TestClosingAnUnreadBodyWaitsOnlyMoments(t *testing.T) {
	serve := func(c net.Conn, r *bufio.Reader) {
		readRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		hang(c)
	}
	inBubble(t, Config{}, serve, func(t *testing.T, c *Client) {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, "http://a.example/")})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r.Close()
		if took := time.Since(start); took > drainTime {
			t.Fatalf("close took %v", took)
		}
	})
}

func TestIdleConnectionsAreClosedInTimeAndInNumber(t *testing.T) {
	var open atomic.Int32
	serve := func(c net.Conn, r *bufio.Reader) {
		open.Add(1)
		defer open.Add(-1)
		for {
			if _, err := readRequest(r); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
	inBubble(t, Config{MaxIdle: 3, MaxIdlePerHost: 2}, serve, func(t *testing.T, c *Client) {
		for i := range 5 {
			mustGet(t, c, fmt.Sprintf("http://h%d.example/", i))
		}
		synctest.Wait()
		if n := open.Load(); n != 3 {
			t.Fatalf("%d idle connections over all hosts", n)
		}
		var held []*Response
		for range 4 {
			r, err := c.Do(t.Context(), &Request{URL: mustURL(t, "http://one.example/")})
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, r)
		}
		for _, r := range held {
			r.Close()
		}
		synctest.Wait()
		c.pool.mu.Lock()
		n := len(c.pool.hosts["http://one.example"])
		c.pool.mu.Unlock()
		if n != 2 {
			t.Fatalf("%d idle connections to one host", n)
		}
		time.Sleep(DefaultIdleTimeout)
		synctest.Wait()
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		if n := open.Load(); n != 0 || c.pool.nIdle != 0 || len(c.pool.hosts) != 0 {
			t.Fatalf("%d connections outlived their time", n)
		}
	})
}

func TestLargeBodiesWaitForTheBudgetWithoutDeadlock(t *testing.T) {
	const size = 3 << 20
	serve := func(c net.Conn, r *bufio.Reader) {
		readRequest(r)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		chunk := make([]byte, 64<<10)
		for range size / len(chunk) {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}
	// Room for one body at a time. Each holder keeps it longer than a whole
	// request may take, so a waiter passes only if its clocks stand still.
	inBubble(t, Config{BodyBytesInFlight: 4 << 20, Timeout: 10 * time.Second}, serve, func(t *testing.T, c *Client) {
		var holding, most atomic.Int32
		done := make(chan error)
		for range 4 {
			go func() {
				r, err := c.Do(context.Background(), &Request{URL: mustURL(t, "http://a.example/")})
				if err != nil {
					done <- err
					return
				}
				b, err := ReadAll(r, nil)
				if err == nil && len(b) != size {
					err = fmt.Errorf("%d bytes", len(b))
				}
				most.Store(max(most.Load(), holding.Add(1)))
				time.Sleep(12 * time.Second)
				holding.Add(-1)
				r.Close()
				done <- err
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if most.Load() != 1 {
			t.Fatalf("%d large bodies at once", most.Load())
		}
	})
}
