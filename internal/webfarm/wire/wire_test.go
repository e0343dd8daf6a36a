package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tiptoe/internal/webfarm/books"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with what it understood.
type echo struct{ delay time.Duration }

func (e echo) Serve(r *Request, a *Answer) {
	a.Type = "text/plain"
	a.Delay = e.delay
	a.Entry.Kind, a.Entry.Page = books.Page, 0
	fmt.Fprintf(a, "%s %s %s %s?%s", r.Method, r.Host, r.Target, r.Path(), r.Query())
}

func start(t *testing.T, h Handler) (addr string, book *books.Host, rec *books.Recorder, s *Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	book = books.NewHost("test", 1)
	rec = books.NewRecorder(book)
	site := &Site{Handler: h, Book: book}
	s = NewServer(rec, func(r *Request) *Site {
		if string(r.Host) == "unknown.test" {
			return nil
		}
		return site
	})
	s.Go(ln, 0)
	t.Cleanup(s.Close)
	return ln.Addr().String(), book, rec, s
}

// talk sends raw bytes and returns all answers until the server closes.
func talk(t *testing.T, addr, sent string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	out, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	addr, _, rec, _ := start(t, echo{})
	out := talk(t, addr, "GET /a?x=1 HTTP/1.1\r\nHost: one.test\r\n\r\n"+
		"POST /b HTTP/1.1\r\nhost:two.test\r\nContent-Length: 5\r\n\r\nhello"+
		"GET http://three.test/c HTTP/1.1\r\nHost: ignored\r\n\r\n"+
		"GET /d HTTP/1.1\r\nHost: four.test\r\nConnection: close\r\n\r\n"+
		"GET /never HTTP/1.1\r\nHost: five.test\r\n\r\n")
	in := bufio.NewReader(strings.NewReader(out))
	for _, want := range []string{
		"GET one.test /a?x=1 /a?x=1",
		"POST two.test /b /b?",
		"GET three.test /c /c?",
		"GET four.test /d /d?",
	} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("answered after Connection: close: %q", rest)
	}
	if b := rec.Books(); b.Requests != 4 || b.Malformed != 0 {
		t.Errorf("books %+v", b)
	}
}

func TestAHeadThatArrivesByteByByteIsUnderstood(t *testing.T) {
	addr, _, _, _ := start(t, echo{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, b := range []byte("GET /slow HTTP/1.1\r\nHost: x.test\r\nX-Long: " + strings.Repeat("y", 3000) + "\r\n\r\n") {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "GET x.test /slow /slow?" {
		t.Errorf("got %q", body)
	}
}

func TestWhatIsNotHTTPIsRefusedAndTheConnectionClosed(t *testing.T) {
	addr, _, rec, _ := start(t, echo{})
	for _, c := range []struct {
		name, sent string
		status     int
	}{
		{"no version", "GET /\r\n\r\n", 400},
		{"a future version", "GET / HTTP/2.0\r\n\r\n", 400},
		{"no target", "GET  HTTP/1.1\r\n\r\n", 400},
		{"a space in the target", "GET /a b HTTP/1.1\r\n\r\n", 400},
		{"an asterisk", "OPTIONS * HTTP/1.1\r\n\r\n", 400},
		{"a header without colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", 400},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{"a bare line feed", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
		{"a length that is no number", "GET / HTTP/1.1\r\nContent-Length: ten\r\n\r\n", 400},
		{"a huge body", "POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", 413},
		{"a chunked body", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
		{"an unknown host", "GET / HTTP/1.1\r\nHost: unknown.test\r\n\r\n", 421},
	} {
		before := rec.Books().Malformed
		out := talk(t, addr, c.sent)
		if !strings.HasPrefix(out, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(out, "\r\nConnection: close\r\n") {
			t.Errorf("%s: got %q, want %d", c.name, out, c.status)
		}
		if n := rec.Books().Malformed - before; n != 1 {
			t.Errorf("%s: counted %d times", c.name, n)
		}
	}
	if b := rec.Books(); b.Requests != 0 {
		t.Errorf("%d requests booked to a host", b.Requests)
	}
}

func TestAHeadWithoutEndIsRefusedAtItsBound(t *testing.T) {
	addr, _, _, _ := start(t, echo{})
	// Exactly the bound, so that nothing unread is left that would turn the
	// close into a reset and eat the answer.
	out := talk(t, addr, "GET / HTTP/1.1\r\nX: "+strings.Repeat("a", MaxHead-len("GET / HTTP/1.1\r\nX: ")))
	if !strings.HasPrefix(out, "HTTP/1.1 431 ") {
		t.Errorf("got %q", out)
	}
}

func TestHEADTellsTheLengthAndSendsNothing(t *testing.T) {
	addr, _, rec, _ := start(t, echo{})
	out := talk(t, addr, "HEAD / HTTP/1.0\r\nHost: a\r\n\r\n")
	head, body, _ := strings.Cut(out, "\r\n\r\n")
	if !strings.Contains(head, "Content-Length: 11") || body != "" {
		t.Errorf("got %q", out)
	}
	if b := rec.Books(); b.Bytes != 0 {
		t.Errorf("booked %d bytes", b.Bytes)
	}
}

type large struct{}

func (large) Serve(_ *Request, a *Answer) {
	a.Status = 418
	a.Header = "X-Wide: " + strings.Repeat("w", headroom) + "\r\n"
	a.Append(func(dst []byte) []byte { return append(dst, bytes.Repeat([]byte("b"), 200<<10)...) })
}

func TestAHeadWiderThanItsRoomAndALongBodyArriveWhole(t *testing.T) {
	addr, _, _, _ := start(t, large{})
	resp, err := http.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(body) != 200<<10 || resp.StatusCode != 418 || len(resp.Header.Get("X-Wide")) != headroom {
		t.Errorf("status %d, %d bytes, %v", resp.StatusCode, len(body), err)
	}
}

func TestCloseWakesDelayedAnswersAndWaits(t *testing.T) {
	addr, _, rec, s := start(t, echo{delay: time.Hour})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for rec.Books().Requests == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	s.Close()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("an answer was sent after Close")
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still listening after Close")
	}
}

func TestAKeptConnectionAllocatesNothingPerRequest(t *testing.T) {
	var r Request
	head := []byte("GET /a HTTP/1.1\r\nHost: one.test\r\nUser-Agent: tiptoe\r\nAccept-Encoding: gzip\r\n\r\n")
	var a Answer
	a.reset()
	a.seal(false, false)
	n := testing.AllocsPerRun(100, func() {
		if n, err := parse(head, &r); n != len(head) || err != nil {
			t.Fatal(n, err)
		}
		a.reset()
		a.Write(head)
		a.seal(false, false)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Add([]byte("GET http://a/b?c HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("\r\n\r\n"))
	f.Add([]byte("GET http:///x HTTP/1.1\r\n\r\n"))
	f.Add([]byte(" / HTTP/1.1\r\n:\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Request
		n, err := parse(in, &r)
		if err != nil || n == 0 {
			return
		}
		if n > len(in) || !bytes.HasSuffix(in[:n], headEnd) {
			t.Fatalf("head of %d bytes in %q", n, in)
		}
		if len(r.Method) == 0 || r.Target[0] != '/' || bytes.ContainsAny(r.Target, " \r\n") || r.bodyLen < 0 || r.bodyLen > maxRequestBody {
			t.Fatalf("accepted %+v", r)
		}
	})
}
