package wire

import (
	"net/http"
	"strconv"
	"time"

	"tiptoe/internal/webfarm/books"
)

// headroom is kept free in front of the body, so that the head can be put
// there once the body's length is known and both leave with one write.
const headroom = 1 << 10

// Answer is filled by a Handler. Status 200 and the type text/html are the
// defaults; Entry.Bytes is filled by the server.
type Answer struct {
	Status int
	Type   string        // Content-Type
	Header string        // further header lines, each ended by CRLF
	Delay  time.Duration // before the answer is sent
	Entry  books.Entry

	buf  []byte // headroom, then the body
	head []byte // kept for its room
}

// HTML is the default content type.
const HTML = "text/html; charset=utf-8"

func (a *Answer) reset() {
	if cap(a.buf) < headroom {
		a.buf = make([]byte, headroom, headroom+32<<10)
	}
	*a = Answer{Status: http.StatusOK, Type: HTML, Entry: books.Entry{Page: -1}, buf: a.buf[:headroom], head: a.head}
}

// Write appends to the body.
func (a *Answer) Write(p []byte) (int, error) {
	a.buf = append(a.buf, p...)
	return len(p), nil
}

// WriteString appends to the body.
func (a *Answer) WriteString(s string) (int, error) {
	a.buf = append(a.buf, s...)
	return len(s), nil
}

// Append lets f append to the body; f must only append.
func (a *Answer) Append(f func(dst []byte) []byte) { a.buf = f(a.buf) }

// Body returns what was written so far.
func (a *Answer) Body() []byte { return a.buf[headroom:] }

// seal puts the head in front of the body and returns the bytes to send. A
// head that does not fit the headroom costs a copy.
func (a *Answer) seal(noBody, last bool) []byte {
	h := append(a.head[:0], "HTTP/1.1 "...)
	h = strconv.AppendInt(h, int64(a.Status), 10)
	h = append(h, ' ')
	h = append(h, http.StatusText(a.Status)...)
	h = append(h, "\r\nContent-Type: "...)
	h = append(h, a.Type...)
	h = append(h, "\r\nContent-Length: "...)
	h = strconv.AppendInt(h, int64(len(a.buf)-headroom), 10)
	h = append(h, "\r\n"...)
	h = append(h, a.Header...)
	if last {
		h = append(h, "Connection: close\r\n"...)
	}
	h = append(h, "\r\n"...)
	a.head = h
	body := a.buf
	if noBody {
		body = body[:headroom]
	}
	if len(h) > headroom {
		return append(h, body[headroom:]...)
	}
	at := headroom - len(h)
	copy(body[at:], h)
	return body[at:]
}
