package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"tiptoe/internal/outcome"
)

// LESSONS: Go's HTTP client retries by itself; count what the server sees.

func TestADeadKeptAliveConnectionCostsOneRequestAndIsStale(t *testing.T) {
	for _, how := range []string{"close", "reset", "close while idle"} {
		t.Run(how, func(t *testing.T) {
			var requests atomic.Int32
			closed := make(chan struct{}, 16)
			base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
				for i := 0; ; i++ {
					if i == 1 && how == "close while idle" {
						c.Close()
						closed <- struct{}{}
						return
					}
					if _, err := readRequest(r); err != nil {
						return
					}
					requests.Add(1)
					if i == 1 {
						// The request has arrived; the answer never leaves.
						if how == "reset" {
							c.(*net.TCPConn).SetLinger(0)
						}
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			c := openClient(t)
			calls, stale := 0, 0
			for range 10 {
				calls++
				r, err := c.Do(t.Context(), &Request{URL: mustURL(t, base+"/")})
				if err == nil {
					if _, err := ReadAll(r, nil); err != nil {
						t.Fatal(err)
					}
					r.Close()
					if how == "close while idle" {
						<-closed
					}
					continue
				}
				e := wantError(t, err, outcome.Connect, "headers")
				if !e.Stale || !e.Timing.Reused {
					t.Fatalf("not stale: %v", err)
				}
				stale++
			}
			if how != "close while idle" && (stale != 5 || int(requests.Load()) != calls) {
				t.Fatalf("%d calls, %d stale, %d requests seen", calls, stale, requests.Load())
			}
			if int(requests.Load()) > calls {
				t.Fatalf("%d calls became %d requests", calls, requests.Load())
			}
		})
	}
}

func TestAFreshConnectionClosedWithoutAnAnswerIsTheHostsFault(t *testing.T) {
	var requests atomic.Int32
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil {
			requests.Add(1)
		}
	})
	_, _, err := get(t, openClient(t), base+"/")
	if e := wantError(t, err, outcome.Connect, "headers"); e.Stale || requests.Load() != 1 {
		t.Fatalf("%+v after %d requests", e, requests.Load())
	}
}

// h2Conn is one HTTP/2 connection of a server that does what the test says.
type h2Conn struct {
	*http2.Framer
	n int // which connection
}

func (c *h2Conn) answer(stream uint32, body string) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	c.WriteData(stream, true, []byte(body))
}

// h2Server calls onRequest for each HEADERS frame; false ends the connection.
// It counts requests, and DATA frames that clients send.
func h2Server(t *testing.T, onRequest func(c *h2Conn, stream uint32, nth int) bool) (c *Client, url string, requests, data *atomic.Int32) {
	requests, data = new(atomic.Int32), new(atomic.Int32)
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	t.Cleanup(cert.Close)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(nc, preface); err != nil {
					return
				}
				c := &h2Conn{http2.NewFramer(nc, nc), n}
				c.WriteSettings()
				for nth := 0; ; {
					f, err := c.ReadFrame()
					if err != nil {
						return
					}
					switch f := f.(type) {
					case *http2.SettingsFrame:
						if !f.IsAck() {
							c.WriteSettingsAck()
						}
					case *http2.PingFrame:
						if !f.IsAck() {
							c.WritePing(true, f.Data)
						}
					case *http2.DataFrame:
						data.Add(1)
					case *http2.HeadersFrame:
						if !f.StreamEnded() {
							t.Error("the request's headers do not end the stream")
						}
						requests.Add(1)
						if nth++; !onRequest(c, f.StreamID, nth) {
							return
						}
					}
				}
			})
		}
	})
	c = newClient(t, Config{AllowPrivate: true, InsecureTLS: true})
	t.Cleanup(func() { c.Close(); ln.Close(); wg.Wait() })
	return c, "https://" + ln.Addr().String() + "/", requests, data
}

func TestARefusedHTTP2StreamIsOneRequestAndOneFailure(t *testing.T) {
	c, url, requests, data := h2Server(t, func(c *h2Conn, stream uint32, nth int) bool {
		if nth == 1 {
			c.answer(stream, "ok")
		} else {
			c.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}
		return true
	})
	mustGet(t, c, url)
	for i := range 3 {
		_, _, err := get(t, c, url)
		if e := wantError(t, err, outcome.Connect, "headers"); e.Stale {
			t.Fatal("a refusal is the server's word, not a stale connection")
		}
		if n := requests.Load(); n != int32(2+i) {
			t.Fatalf("%d calls became %d requests", 2+i, n)
		}
	}
	if data.Load() != 0 {
		t.Fatalf("%d DATA frames for requests without a body", data.Load())
	}
}

func TestAnHTTP2GoAwayIsOneRequestAndTheNextOneGoesElsewhere(t *testing.T) {
	c, url, requests, _ := h2Server(t, func(c *h2Conn, stream uint32, nth int) bool {
		if c.n == 0 && nth == 2 {
			c.WriteGoAway(1, http2.ErrCodeNo, nil) // the second stream was not processed
			return true
		}
		c.answer(stream, fmt.Sprint("conn", c.n))
		return true
	})
	if _, body := mustGet(t, c, url); body != "conn0" {
		t.Fatal(body)
	}
	_, _, err := get(t, c, url)
	if e := wantError(t, err, outcome.Connect, "headers"); !e.Stale {
		t.Fatalf("want stale: %v", err)
	}
	if n := requests.Load(); n != 2 {
		t.Fatalf("2 calls became %d requests", n)
	}
	if _, body := mustGet(t, c, url); body != "conn1" || requests.Load() != 3 {
		t.Fatal(body, requests.Load())
	}
}

func TestAnHTTP2ConnectionThatDiesUnderARequestIsOneRequest(t *testing.T) {
	c, url, requests, _ := h2Server(t, func(c *h2Conn, stream uint32, nth int) bool {
		if nth == 2 {
			return false
		}
		c.answer(stream, "ok")
		return true
	})
	for i := range 3 {
		mustGet(t, c, url)
		_, _, err := get(t, c, url)
		if e := wantError(t, err, outcome.Connect, "headers"); !e.Stale {
			t.Fatalf("want stale: %v", err)
		}
		if n := requests.Load(); n != int32(2*i+2) {
			t.Fatalf("%d calls became %d requests", 2*i+2, n)
		}
	}
}

func TestAnHTTP2ProtocolErrorResetIsNotRepeated(t *testing.T) {
	c, url, requests, _ := h2Server(t, func(c *h2Conn, stream uint32, nth int) bool {
		c.WriteRSTStream(stream, http2.ErrCodeProtocol)
		return true
	})
	_, _, err := get(t, c, url)
	wantError(t, err, outcome.Protocol, "headers")
	if n := requests.Load(); n != 1 {
		t.Fatalf("one call became %d requests", n)
	}
}

func TestASilentHTTP2ConnectionIsNotOfferedAgain(t *testing.T) {
	c, url, _, _ := h2Server(t, func(c *h2Conn, stream uint32, nth int) bool {
		if c.n > 0 {
			c.answer(stream, "ok")
		}
		return true
	})
	_, err := c.Do(context.Background(), &Request{URL: mustURL(t, url), Timeout: 50 * time.Millisecond})
	wantError(t, err, outcome.Timeout, "headers")
	mustGet(t, c, url)
}
