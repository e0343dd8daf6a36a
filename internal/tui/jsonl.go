package tui

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tiptoe/internal/crawl"
)

// ErrSinkClosed says that the reader of the JSON lines went away, as "head"
// does. It is no failure of the crawl.
var ErrSinkClosed = errors.New("the reader of the JSON lines closed it")

const (
	jsonBuffer = 64 << 10
	jsonFlush  = 200 * time.Millisecond
)

// JSON writes one page event a line. Lines reach the reader at most 200 ms
// after they were written; a reader that does not read makes Page wait.
type JSON struct {
	mu    sync.Mutex
	w     *bufio.Writer
	buf   bytes.Buffer // one line
	enc   *json.Encoder
	timer *time.Timer // armed while the buffer holds something
	armed bool
	err   error // the first failure
	told  bool  // and whether it was returned
	gone  chan struct{}
	done  bool
}

// NewJSON prepares a writer of JSON lines. Close it to flush the rest.
func NewJSON(w io.Writer) *JSON {
	j := &JSON{w: bufio.NewWriterSize(w, jsonBuffer), gone: make(chan struct{})}
	j.enc = json.NewEncoder(&j.buf)
	j.enc.SetEscapeHTML(false) // URLs are full of "&"
	return j
}

// Page writes an event. The first failure to write is returned once, as
// ErrSinkClosed if the reader went away; afterwards events are dropped.
func (j *JSON) Page(ev crawl.PageEvent) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || j.done {
		return j.report()
	}
	j.buf.Reset()
	if err := j.enc.Encode(ev); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if _, err := j.w.Write(escapeUnprintable(j.buf.Bytes())); err != nil {
		j.fail(err)
		return j.report()
	}
	if !j.armed && j.w.Buffered() > 0 {
		j.armed = true
		if j.timer == nil {
			j.timer = time.AfterFunc(jsonFlush, j.tick)
		} else {
			j.timer.Reset(jsonFlush)
		}
	}
	return nil
}

// Gone is closed when nothing can be written any more: there is no point in
// crawling on for a reader that left.
func (j *JSON) Gone() <-chan struct{} { return j.gone }

// Close flushes. It returns the first failure unless Page already did.
func (j *JSON) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	if !j.done && j.err == nil {
		if err := j.w.Flush(); err != nil {
			j.fail(err)
		}
	}
	j.done = true
	return j.report()
}

func (j *JSON) tick() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.armed = false
	if j.done || j.err != nil {
		return
	}
	if err := j.w.Flush(); err != nil {
		j.fail(err)
	}
}

func (j *JSON) fail(err error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		err = ErrSinkClosed
	}
	j.err = fmt.Errorf("write JSON lines: %w", err)
	close(j.gone)
}

func (j *JSON) report() error {
	if j.told {
		return nil
	}
	j.told = j.err != nil
	return j.err
}

// escapeUnprintable writes what encoding/json leaves as it is but a terminal
// might act on or hide (C1 controls, DEL, bidi and zero-width characters) as
// \u escapes. The value stays the same.
func escapeUnprintable(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if plainASCII(string(line)) {
		return append(line, '\n')
	}
	out := make([]byte, 0, len(line)+32)
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		switch {
		case unicode.IsPrint(r) && !invisible(r):
			out = append(out, line[:n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[n:]
	}
	return append(out, '\n')
}
