package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
	"unicode"

	"tiptoe/internal/outcome"
)

// reason is a short sentence for people with the error it stands for.
type reason struct {
	text string
	err  error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.err }

// deadline is a limit of ours that passed. An empty op means whatever the hop
// was doing then.
type deadline struct {
	op, what string
	after    time.Duration
}

func (d *deadline) Error() string   { return fmt.Sprintf("%s within %s", d.what, d.after) }
func (d *deadline) Is(t error) bool { return t == context.DeadlineExceeded }

type tooLargeError struct {
	what  string
	limit int64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s larger than %d bytes", e.what, e.limit)
}

var (
	errClosed         = errors.New("closed")
	errDone           = errors.New("done")
	errUnowned        = errors.New("connection asked for outside a hop")
	errConnectTimeout = &reason{"connect timed out", context.DeadlineExceeded}
	errTooSlow        = &reason{"the body came too slowly", context.DeadlineExceeded}
	errRawTooLarge    = errors.New("larger than the cap")
)

// streamError has the shape that net/http's own HTTP/2 stream error offers to
// errors.As; the bundled type itself has no exported name.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("HTTP/2 stream error %d", e.Code) }

const h2RefusedStream = 0x7 // RFC 9113, section 7

// reject is a failure before the hop began.
func (h *hop) reject(o outcome.Outcome, op string, err error) *Error {
	h.resp.timing.Total = time.Duration(h.since())
	return &Error{Outcome: o, Op: op, Err: err, Timing: h.resp.timing}
}

// fail classifies an error and ends the hop with it.
func (h *hop) fail(op string, err error) *Error {
	e := h.classify(op, err)
	h.finish(e)
	return e
}

// failAs ends the hop with a failure whose class is known.
func (h *hop) failAs(o outcome.Outcome, op string, err error) *Error {
	e := &Error{Outcome: o, Op: op, Err: err}
	h.finish(e)
	return e
}

// finish ends the hop. A connection shared by HTTP/2 streams outlives one
// stream's failure, except a silence: a peer that vanished looks just so, and
// the next request must not wait for it too.
func (h *hop) finish(e *Error) {
	keep := h.conn != nil && h.conn.h2 && e.Outcome != outcome.Timeout && !e.Stale
	h.endBody(keep)
	e.Timing = h.resp.timing
}

func (h *hop) classify(op string, err error) *Error {
	if h.ctx.Err() != nil {
		cause := context.Cause(h.ctx)
		var d *deadline
		switch {
		case errors.As(cause, &d):
			if d.op != "" {
				op = d.op
			}
			return &Error{Outcome: outcome.Timeout, Op: op, Err: d}
		case cause == errTooSlow:
			return &Error{Outcome: outcome.Timeout, Op: "body", Err: errTooSlow}
		}
		return &Error{Outcome: outcome.Cancelled, Op: op, Err: &reason{"cancelled", cause}}
	}
	var guard *guardError
	if errors.As(err, &guard) {
		return &Error{Outcome: outcome.Guard, Op: "guard", Err: guard}
	}
	var oe *net.OpError
	if op == "proxy" || errors.As(err, &oe) && oe.Op == "proxyconnect" {
		_, text := describe(err)
		return &Error{Outcome: outcome.Connect, Op: "proxy", Err: &reason{text, err}}
	}
	switch op {
	case "dns":
		if errors.Is(err, ErrNoHost) {
			err = ErrNoHost
		}
		return &Error{Outcome: outcome.DNS, Op: op, Err: &reason{short(err), err}}
	case "tls":
		if text, ok := describeTLS(err); ok {
			return &Error{Outcome: outcome.TLS, Op: op, Err: &reason{text, err}}
		}
	case "headers":
		if e := h.classifyHeaders(err); e != nil {
			return e
		}
	}
	o, text := describe(err)
	if op == "tls" && o == outcome.Protocol {
		o = outcome.TLS
	}
	return &Error{Outcome: o, Op: op, Err: &reason{text, err}, Local: isLocal(err)}
}

// classifyHeaders knows what only the wait for the headers can tell.
func (h *hop) classifyHeaders(err error) *Error {
	var se streamError
	isStream := errors.As(err, &se)
	answered := h.firstByte.Load() != 0
	switch {
	case isStream && se.Code == h2RefusedStream:
		return &Error{Outcome: outcome.Connect, Op: "headers", Err: &reason{"the server refused the HTTP/2 stream", err}}
	case isStream && se.Cause != nil && strings.Contains(se.Cause.Error(), "header list"), h.headerFlood(err):
		return &Error{Outcome: outcome.TooLarge, Op: "headers", Err: &reason{
			(&tooLargeError{"headers", h.client.cfg.MaxHeaderBytes}).Error(), err}}
	case isStream || answered:
		return nil
	case h.resp.timing.Reused:
		return &Error{Outcome: outcome.Connect, Op: "headers", Stale: true,
			Err: &reason{"the kept-alive connection was closed", err}}
	case errors.Is(err, io.EOF), h.closedSilent(err):
		return &Error{Outcome: outcome.Connect, Op: "headers", Err: &reason{"connection closed without an answer", err}}
	}
	return nil
}

// closedSilent tells a connection that ended before net/http had bound the
// request to it. net/http reports that with an error of no type; a peer that
// never said a word has not broken HTTP. (Under TLS it has said a few: those of
// the handshake.)
func (h *hop) closedSilent(err error) bool {
	o, _ := describe(err)
	quiet := h.conn.wire.read.Load() == 0 || strings.HasPrefix(h.conn.key, "https:")
	return o == outcome.Protocol && !h.conn.h2 && quiet
}

// headerFlood tells an answer whose headers were cut at the cap from other
// broken ones. net/http has no type for it; the bytes that came without
// completing the headers tell. (On HTTP/2 other streams' bytes count as well,
// so that a server that breaks the protocol amid large bodies may be called
// too large; both are failures of the answer and end alike.)
func (h *hop) headerFlood(err error) bool {
	if o, _ := describe(err); o != outcome.Protocol || errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	limit := h.client.cfg.MaxHeaderBytes
	if h.conn.h2 {
		limit /= 2 // compressed, and given up once the cap is out of reach
	}
	return h.conn.wire.read.Load()-h.readAtUse >= limit
}

// describe classifies errors of the network by type; what is left came from a
// peer that does not keep to HTTP.
func describe(err error) (outcome.Outcome, string) {
	var errno syscall.Errno
	var ne net.Error
	switch {
	case errors.As(err, &errno):
		switch errno {
		case syscall.ECONNREFUSED:
			return outcome.Connect, "connection refused"
		case syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED:
			return outcome.Connect, "connection reset"
		case syscall.EHOSTUNREACH, syscall.EHOSTDOWN:
			return outcome.Connect, "host unreachable"
		case syscall.ENETUNREACH, syscall.ENETDOWN:
			return outcome.Connect, "network unreachable"
		case syscall.ETIMEDOUT:
			return outcome.Timeout, "connection timed out"
		}
		return outcome.Connect, errno.Error()
	case errors.Is(err, errConnectTimeout):
		return outcome.Timeout, errConnectTimeout.text
	case errors.As(err, &ne) && ne.Timeout():
		return outcome.Timeout, "timed out"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return outcome.Protocol, "the answer was cut short"
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return outcome.Connect, "connection closed"
	}
	var dnsErr *net.DNSError
	if errors.As(err, &dnsErr) || errors.Is(err, ErrNoHost) {
		return outcome.DNS, "no such host"
	}
	return outcome.Protocol, short(err)
}

// isLocal tells this machine's own shortages from the host's failures.
func isLocal(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func describeTLS(err error) (string, bool) {
	var (
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     *net.OpError // crypto/tls reports alerts so
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		const day = "2006-01-02"
		if time.Now().Before(invalid.Cert.NotBefore) {
			return "certificate not valid before " + invalid.Cert.NotBefore.UTC().Format(day), true
		}
		return "certificate expired on " + invalid.Cert.NotAfter.UTC().Format(day), true
	case errors.As(err, &authority):
		return "certificate signed by an unknown authority", true
	case errors.As(err, &hostname):
		return "certificate is not for " + short(errors.New(hostname.Host)), true
	case errors.As(err, &verify), errors.As(err, &invalid):
		return "certificate not valid: " + short(err), true
	case errors.As(err, &record):
		return "the server does not speak TLS", true
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "handshake refused: " + short(alert.Err), true
	case errors.As(err, &alert) && alert.Op == "local error":
		return "handshake failed: " + short(alert.Err), true
	}
	return "", false
}

// short makes an error's text fit for one line of a log: no library prefix,
// no control characters, no more than 200 bytes of what a stranger sent.
func short(err error) string {
	s := err.Error()
	for _, p := range []string{"net/http: ", "http: ", "http2: ", "tls: "} {
		s = strings.TrimPrefix(s, p)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '.'
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
