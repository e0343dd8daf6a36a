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

	// Gate is asked once, when a connection is ready and before a byte is
	// sent; false calls the request off with the outcome Cancelled. May be nil.
	Gate func() bool

	// OnWire is called at most once, when the request has been written to
	// the connection: the instant from which the next gap is counted. It may
	// be called from another goroutine, and after a failed Do.
	OnWire func(time.Time)
}

// Timing splits one request; parts that did not happen are zero. TTFB counts
// from the written request to the first byte of the answer.
type Timing struct {
	Start                                    time.Time
	Wire                                     time.Time // request written; zero if it never was
	DNS, Connect, TLS, TTFB, Transfer, Total time.Duration
	Reused                                   bool
}

// Response is an answer whose body is still to be read. Body is decoded
// (gzip, br, zstd, deflate), bounded by MaxBody while streaming, and fails
// with an *Error of outcome TooLarge, Timeout, Connect, Protocol or Cancelled.
// Close must be called; after it Timing and WireBytes are final.
//
// A Response may also be built as a literal, by a Doer that simulates the
// network; see SetTiming.
type Response struct {
	Status  int
	Header  http.Header
	Proto   string
	Remote  netip.Addr // zero behind a proxy
	Private bool       // the address connected to is private, loopback or link-local
	Body    io.Reader

	// ContentLength is the declared length of the body before decoding, or
	// -1. It is a hint from a stranger.
	ContentLength int64

	closeFn func()
	timing  Timing
	wire    int64
}

// Close ends the hop: the connection goes back to the pool if the body was
// read to its end (or what is left is short and already here), and is closed
// otherwise. The body's share of the memory budget is returned, so a caller
// that wants the budget to cover its parsing closes after parsing. Close may
// be called more than once.
func (r *Response) Close() {
	if r.closeFn != nil {
		r.closeFn()
		r.closeFn = nil
	}
}

// Timing returns the split so far; final after Close.
func (r *Response) Timing() Timing { return r.timing }

// WireBytes returns the body bytes received so far, before decoding; final
// after Close.
func (r *Response) WireBytes() int64 { return r.wire }

// SetTiming gives a response built as a literal its timing, its bytes on the
// wire and what Close does (may be nil).
func (r *Response) SetTiming(t Timing, wireBytes int64, onClose func()) {
	r.timing, r.wire, r.closeFn = t, wireBytes, onClose
}

// Error is a failed hop with its class.
type Error struct {
	Outcome outcome.Outcome
	Op      string // "request", "guard", "dns", "connect", "proxy", "tls", "headers", "body"
	Err     error
	Timing  Timing

	// Stale says that a kept-alive connection turned out to be dead before
	// any byte of the answer: no fault of the host, and worth another try
	// with a new permit.
	Stale bool

	// Local says that this machine ran short of something (files, ports,
	// memory): no fault of the host either.
	Local bool
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Doer is the seam: the crawl calls it, the simulation replaces it.
type Doer interface {
	Do(ctx context.Context, req *Request) (*Response, error)
}
