package sitemap

import (
	"bytes"
	"fmt"
	"io"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

const (
	windowSize = 64 << 10
	// minRead keeps a stream that drips byte by byte from being scanned
	// again for every byte.
	minRead = 4 << 10
	maxIdle = 100 // reads without a byte or an error
)

// window is the part of the stream that is in memory: buf[pos:end].
type window struct {
	r        io.Reader
	buf      []byte
	pos, end int
	err      error // the reader's last word; io.EOF at a clean end
	limit    int64 // of total
	total    int64 // decoded bytes read
	cut      bool  // limit was reached

	dropped int64 // bytes before buf[0]
	lines   int   // line feeds before buf[0]
}

// fill drops what was consumed and reads more. It reports whether the window
// grew.
func (w *window) fill() bool {
	if w.err != nil {
		return false
	}
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
	if w.pos > 0 {
		w.lines += bytes.Count(w.buf[:w.pos], []byte{'\n'})
		w.dropped += int64(w.pos)
		w.end = copy(w.buf, w.buf[w.pos:w.end])
		w.pos = 0
	}
	free := w.buf[w.end:]
	if left := w.limit - w.total; int64(len(free)) > left {
		free = free[:left]
		w.cut = left == 0
	}
	if w.cut {
		w.err = io.EOF
	}
	if len(free) == 0 {
		return false
	}
	n := 0
	for idle := 0; n < min(minRead, len(free)) && w.err == nil; {
		var m int
		m, w.err = w.r.Read(free[n:])
		n += m
		if m > 0 {
			idle = 0
		} else if idle++; idle >= maxIdle && w.err == nil {
			w.err = io.ErrNoProgress
		}
	}
	w.end += n
	w.total += int64(n)
	return n > 0
}

// need reports whether n more bytes are in the window, filling it if not.
func (w *window) need(n int) bool {
	for w.end-w.pos < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

func (w *window) bytes() []byte { return w.buf[w.pos:w.end] }
func (w *window) at() byte      { return w.buf[w.pos] }
func (w *window) full() bool    { return w.end-w.pos == len(w.buf) }

// rest is the stream from here on.
func (w *window) rest() io.Reader {
	head := bytes.Clone(w.bytes())
	tail := w.r
	if w.err != nil {
		tail = failed{w.err}
	}
	return io.MultiReader(bytes.NewReader(head), tail)
}

// failed is a reader that has only its error left.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

func (w *window) skipSpace() {
	for w.need(1) && isSpace(w.at()) {
		w.pos++
	}
}

// find returns the offset, from pos, of the end of the first sep, filling as
// needed; ok is false when the stream ends or the window is full before it.
func (w *window) find(sep string) (n int, ok bool) {
	from := 0
	for {
		if k := bytes.Index(w.bytes()[from:], []byte(sep)); k >= 0 {
			return from + k + len(sep), true
		}
		from = max(0, w.end-w.pos-len(sep)+1)
		if w.full() || !w.fill() {
			return 0, false
		}
	}
}

// skipPast consumes up to and with sep, however far it is.
func (w *window) skipPast(sep string) bool {
	for {
		if n, ok := w.find(sep); ok {
			w.pos += n
			return true
		}
		if !w.full() {
			w.pos = w.end
			return false
		}
		w.pos = w.end - len(sep) + 1
	}
}

// fault says where the parse stands.
func (w *window) fault(format string, args ...any) error {
	line := w.lines + 1 + bytes.Count(w.buf[:w.pos], []byte{'\n'})
	return fmt.Errorf("line %d, byte %d: %w", line, w.dropped+int64(w.pos), fmt.Errorf(format, args...))
}

// eof says why the stream ended here.
func (w *window) eof(inside string) error {
	if w.err != nil && w.err != io.EOF {
		return w.fault("read: %w", w.err)
	}
	return w.fault("ends inside %s", inside)
}

// decodeCharset looks for a byte order mark and an XML declaration, and has
// the rest of the stream decoded if it is not UTF-8.
func (w *window) decodeCharset() {
	w.need(minRead)
	head := w.bytes()
	var enc encoding.Encoding
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		w.pos += 3
		return
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		enc = unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)
	case bytes.HasPrefix(head, []byte("<?xml")):
		label := declaredEncoding(head)
		if label == "" {
			return
		}
		var name string
		enc, name = charset.Lookup(label)
		if name == "utf-8" || name == "utf-16le" || name == "utf-16be" { // it was readable, so it is not UTF-16
			return
		}
	}
	if enc == nil {
		return
	}
	*w = window{r: enc.NewDecoder().Reader(w.rest()), limit: w.limit, buf: w.buf[:cap(w.buf)]}
}

func declaredEncoding(b []byte) string {
	decl, _, ok := bytes.Cut(b[:min(len(b), 512)], []byte("?>"))
	if !ok {
		return ""
	}
	v, _ := attribute(decl, "encoding")
	return string(v)
}
