// Package export answers: how do the results leave tiptoe?
//
// As JSON lines (everything, for programs), as CSV (for spreadsheets) or as
// sitemaps (the pages of a site that search engines should know). Each
// format is one function that reads pages from the ledger and writes as it
// reads: memory does not grow with the number of pages.
//
// # Guarantees
//
// Field names, their order and their units are stable; fields may be added at
// the end. What is not known is null (JSON) or an empty cell (CSV), never
// zero. No credentials of a URL are written. Output is valid UTF-8, and no
// format can drive a terminal that shows it: control characters and those
// that turn the direction of text are escaped in JSON (the value stays what
// it was) and removed in CSV. A CSV cell that a spreadsheet would take for a
// formula begins with an apostrophe.
//
// Sitemaps hold only pages that were fetched as HTML, may be indexed, and are
// their own canonical; they are split at 50,000 URLs and at 50 MB, and appear
// under their names only when they are whole.
//
// # Errors
//
// A reader that goes away (| head) is ErrClosedPipe, which a caller ends
// quietly on. Any other error leaves an output that ends in the middle; what
// was written until then is right.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"syscall"

	"tiptoe/internal/ledger"
)

// ErrClosedPipe says that nobody reads the output any more.
var ErrClosedPipe = errors.New("the reader of the output has gone")

// Source is where pages come from.
type Source interface {
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
}

// bufferSize is how much output is collected before a write.
const bufferSize = 64 << 10

// output wraps an error of the writer, so that the caller can tell a reader
// that went away from a disk that is full.
func output(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("%w: %w", ErrClosedPipe, err)
	}
	return fmt.Errorf("write export: %w", err)
}

// publicURL is a URL without user name and password. Canonical URLs have
// none; what pages say of themselves may.
func publicURL(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return s
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return s
	}
	return scheme + "://" + rest[at+1:]
}
