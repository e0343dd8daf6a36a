// Package fetch answers: what does this one address say, right now?
package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Request is one hop: one request on the wire, never more.
type Request struct {
	URL          weburl.URL
	Header       http.Header   // shared between requests; never modified
	AllowPrivate bool          // may connect to private and loopback addresses
	MaxBody      int64         // decoded bytes; 0 means the client's default
	Timeout      time.Duration // whole request with body; 0 means the client's default

	// OnWire is called at most once, when the request has been written to
	// the connection: the instant from which the next gap is counted.
	OnWire func(time.Time)
}

// Timing splits one request; parts that did not happen are zero.
type Timing struct {
	Start                                    time.Time
	Wire                                     time.Time // request written; zero if it never was
	DNS, Connect, TLS, TTFB, Transfer, Total time.Duration
	Reused                                   bool
}

// Response is an answer whose body is still to be read. Body is decoded
// (gzip, br, zstd, deflate), bounded by MaxBody while streaming, and fails
// with an *Error of outcome TooLarge, Timeout or Protocol. Close must be
// called; after it Timing and WireBytes are final.
type Response struct {
	Status  int
	Header  http.Header
	Proto   string
	Remote  netip.Addr
	Private bool // the address connected to is private, loopback or link-local
	Body    io.Reader

	closeFn func()
	timing  Timing
	wire    int64
}

// Error is a failed hop with its class.
type Error struct {
	Outcome outcome.Outcome
	Op      string // "dns", "connect", "tls", "headers", "body", ...
	Err     error
	Timing  Timing
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Doer is the seam: the crawl calls it, the simulation replaces it.
type Doer interface {
	Do(ctx context.Context, req *Request) (*Response, error)
}
