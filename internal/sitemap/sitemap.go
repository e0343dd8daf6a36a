// Package sitemap answers: which URLs does this sitemap name?
//
// Parse reads a stream and hands out entries as they come: XML sitemaps and
// sitemap indexes (sitemaps.org), RSS 0.9x, 1.0 and 2.0, Atom, and plain text
// with one URL a line; gzipped or not, found out by looking at the bytes and
// never by the file's name or type. It is pure but for the reader it is given.
//
// Guarantees:
//   - When the callback returns false nothing more is read: a crawl with a
//     budget of fifty pages does not download a sitemap of fifty thousand.
//   - Memory is bounded by one window, whatever the stream holds. Decoded bytes
//     and entries are bounded by MaxBytes and MaxEntries; reaching one ends the
//     parse without error, and Info.Cut says which.
//   - No entity is expanded but the predefined, numeric and HTML ones, nothing
//     outside the stream is loaded, and gzip inside gzip is not opened.
//   - Malformed input yields what could be read and an error that says where
//     it went wrong first. Only what is no sitemap at all (an HTML error page,
//     JSON, an unknown root) yields ErrNotSitemap, and then no entry.
//
// The sitemaps protocol allows 50,000 URLs a file. More are delivered, and
// Info.Entries shows it. Entries are as written: Loc has its entities decoded
// and blanks trimmed, but may be relative (feeds) or out of scope, and the same
// URL may come twice.
//
// After the root element's end nothing is read, so trailing rubbish does no
// harm. Parse keeps no state between calls; a crash loses nothing here.
package sitemap

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	// ProtocolEntries is the number of URLs the protocol allows in one file.
	ProtocolEntries = 50_000
	// MaxEntries is the number after which Parse stops.
	MaxEntries = 200_000
	// MaxBytes is the decoded size after which Parse stops: the protocol's
	// own limit.
	MaxBytes = 50 << 20

	maxLoc = 8 << 10 // a longer URL is skipped; the protocol allows 2,048 characters
)

// ErrNotSitemap means that the stream is something else.
var ErrNotSitemap = errors.New("not a sitemap")

// Entry is one URL a sitemap names.
type Entry struct {
	Loc       string
	LastMod   time.Time // UTC; zero if absent or unreadable
	Index     bool      // Loc is itself a sitemap
	Alternate bool      // Loc is another language's version of the entry around it
	Lang      string    // hreflang of an alternate
}

// Format is what a stream turned out to be.
type Format uint8

const (
	Unknown Format = iota
	URLSet
	Index
	RSS
	Atom
	Text
)

var formatNames = [...]string{"unknown", "urlset", "sitemapindex", "rss", "atom", "text"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return "unknown"
}

// Info is what is known when Parse returns, with or without an error.
type Info struct {
	Format  Format
	Gzip    bool
	Bytes   int64  // decoded bytes read, at most MaxBytes
	Entries int    // handed out
	Skipped int    // without a usable URL
	Stopped bool   // the callback returned false
	Cut     string // "entries" or "bytes" when a limit ended it, else empty
}

// errStop ends a parse that went well.
var errStop = errors.New("stop")

// Parse reads r and calls fn for each entry, until fn returns false.
func Parse(r io.Reader, fn func(Entry) bool) (Info, error) {
	p := &parser{fn: fn}
	err := p.parse(r)
	p.info.Bytes = p.win.total
	if p.info.Cut == "" && p.win.cut {
		p.info.Cut = "bytes"
		if !errors.Is(err, ErrNotSitemap) {
			err = nil // the stream was good as far as it was read
		}
	}
	if err == nil || errors.Is(err, errStop) {
		err = p.first
	}
	return p.info, err
}

type parser struct {
	fn    func(Entry) bool
	info  Info
	win   window
	first error // the first fault that did not end the parse
	xml   document
}

func (p *parser) parse(r io.Reader) error {
	w := &p.win
	w.r = r
	w.limit = MaxBytes
	if w.need(2) && w.buf[0] == 0x1f && w.buf[1] == 0x8b {
		p.info.Gzip = true
		gz, err := gzip.NewReader(w.rest())
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		defer gz.Close()
		*w = window{r: gz, limit: MaxBytes, buf: w.buf[:cap(w.buf)]}
	}
	w.decodeCharset()
	w.skipSpace()
	switch {
	case !w.need(1):
		if w.err != nil && w.err != io.EOF {
			return w.fault("read: %w", w.err)
		}
		return fmt.Errorf("%w: empty", ErrNotSitemap)
	case w.at() == '<':
		return p.parseXML()
	}
	return p.parseText()
}

// emit hands out one entry.
func (p *parser) emit(e Entry) error {
	p.info.Entries++
	if !p.fn(e) {
		p.info.Stopped = true
		return errStop
	}
	if p.info.Entries >= MaxEntries {
		p.info.Cut = "entries"
		return errStop
	}
	return nil
}

// note keeps the first fault and lets the parse go on.
func (p *parser) note(err error) {
	if p.first == nil {
		p.first = err
	}
}
