package fetch

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"tiptoe/internal/weburl"
)

// cheapServer answers every request on a connection with the same bytes, with
// as little work of its own as a server in this process can do.
func cheapServer(tb testing.TB, answer []byte) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 16<<10)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					// One write per request: the client does not pipeline.
					if bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
						if _, err := c.Write(answer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String() + "/page?x=1"
}

func BenchmarkGet20KB(b *testing.B) {
	page := bytes.Repeat([]byte("<a href=x>tiptoe</a>\n"), 1000)[:20_000]
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20000\r\nServer: cheap\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"), page...)
	u := weburl.FromCanonical(cheapServer(b, answer))
	c, err := New(Config{AllowPrivate: true})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	req := &Request{URL: u, Header: map[string][]string{"Accept": {"text/html"}}}
	buf := make([]byte, 0, 64<<10)
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		r, err := c.Do(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = ReadAll(r, buf); err != nil || len(buf) != 20_000 {
			b.Fatal(len(buf), err)
		}
		r.Close()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/1e3/float64(b.N), "cpu-µs/op")
}

// BenchmarkServerAlone is the part of BenchmarkGet20KB that belongs to the
// server and the sockets: the same bytes over a bare connection.
func BenchmarkServerAlone(b *testing.B) {
	answer := make([]byte, 20_100)
	u := weburl.FromCanonical(cheapServer(b, answer))
	c, err := net.Dial("tcp", u.HostKey())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, len(answer))
	start := cpuTime(b)
	for b.Loop() {
		if _, err := io.WriteString(c, "GET /page?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nAccept-Encoding: zstd, gzip, br\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-start)/1e3/float64(b.N), "cpu-µs/op")
}

// BenchmarkBareTransport is net/http's own client on the same page, without
// guard, watch, timing or caps: what the standard library costs by itself.
func BenchmarkBareTransport(b *testing.B) {
	page := bytes.Repeat([]byte("x"), 20_000)
	url := cheapServer(b, append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20000\r\nServer: cheap\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"), page...))
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	buf := make([]byte, 20_000)
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), "GET", url, nil)
		if err != nil {
			b.Fatal(err)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, buf); err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/1e3/float64(b.N), "cpu-µs/op")
}

func BenchmarkGet20KBGzip(b *testing.B) {
	var page bytes.Buffer
	for i := range 600 {
		fmt.Fprintf(&page, "<li><a href=/item/%d>thing number %d</a></li>\n", i, i*7919%1000)
	}
	gz := encode("gzip", page.Bytes())
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(gz))
	c, err := New(Config{AllowPrivate: true})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	req := &Request{URL: weburl.FromCanonical(cheapServer(b, append([]byte(head), gz...)))}
	buf := make([]byte, 0, 64<<10)
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		r, err := c.Do(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = ReadAll(r, buf); err != nil || len(buf) != page.Len() {
			b.Fatal(len(buf), err)
		}
		r.Close()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/1e3/float64(b.N), "cpu-µs/op")
}
