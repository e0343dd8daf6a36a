// Package report answers: what did the crawl find, in words and tables?
//
// It stands behind `tiptoe pages` (which pages, by status, outcome, host,
// speed, type, depth or a part of the URL) and `tiptoe links` (which URLs are
// broken or redirect, and which pages link to them), as a table for people or
// as JSON lines for programs.
//
// # Guarantees
//
// Whatever came from a page or a URL passes through Clean before it is
// written, so that no title can drive a terminal. Tables have fixed columns
// with the URL last, so they are written as the pages are read: memory does
// not grow with their number. A list of broken URLs is put together in
// windows of linkWindow URLs, each at the price of one pass over the links.
// Unknown is "-" in a table and null in JSON, never zero.
//
// "Broken" means that somebody who follows the link gets nothing: not found,
// gone, refused, failed, unreachable, or lost in redirects. Throttled is not
// broken (the page is fine, we were too fast), nor is what the server denies
// to crawlers, nor what was never asked for.
//
// # Flags
//
// Query is the flags of `tiptoe pages` as they were typed. Its Filter turns
// them into a ledger filter, and its errors name the flag and say what would
// have been right.
//
// The package reads and writes nothing but what it is given, and keeps
// nothing: a crash loses nothing.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/ledger"
)

// Clean makes a text from a stranger safe to show on one line: no escape
// sequences, control characters, marks of direction or other invisible
// characters. A text wider than max terminal cells is cut and ends in an
// ellipsis; max 0 is no bound.
func Clean(s string, max int) string { return ledger.Printable(s, max) }

// Options say how a report is written.
type Options struct {
	JSON    bool // one object a line instead of a table
	Width   int  // of the terminal, in cells; 0 cuts nothing
	Sources int  // linking pages to name for each URL; 0 names all
}

// PageSource is where pages come from.
type PageSource interface {
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
}

// printer keeps the first error of a writer.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// object writes one JSON line.
func (p *printer) object(v any) {
	if p.err != nil {
		return
	}
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	p.err = enc.Encode(v)
}

// room is what a line of the given width leaves behind a prefix; 0 is no
// bound. A terminal too narrow for the table still shows some of the URL.
func room(width, prefix int) int {
	if width <= 0 {
		return 0
	}
	return max(width-prefix, 20)
}

func status(code int) string {
	if code == 0 {
		return "-"
	}
	return strconv.Itoa(code)
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func size(n int64, known bool) string {
	if !known {
		return "-"
	}
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1024, 0
	for v >= 1023.95 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

// pad fills a cell by the cells it takes, not by its bytes.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-ledger.Cells(s)))
}

func padLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-ledger.Cells(s))) + s
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// orNull is a cleaned text for JSON, nil if there is none.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	s = Clean(s, 0)
	return &s
}

func numberOrNull[T int | int64](n T, known bool) *T {
	if !known {
		return nil
	}
	return &n
}
