package fetch

import (
	"errors"
	"io"
	"net/http"
	"time"

	"tiptoe/internal/outcome"
)

const (
	// largeBody is where a body begins to count against the budget of large
	// bodies in flight.
	largeBody = 1 << 20
	// rawSlack is how far the bytes on the wire may exceed the decoded cap:
	// a coding can grow what does not compress, by far less than this, and a
	// stream that decodes to nothing for ever must end somewhere.
	rawSlack = 64 << 10
	// What Close reads to save the connection: a short rest that is already
	// here costs less than a new connection.
	drainBytes = 32 << 10
	drainTime  = 100 * time.Millisecond
)

// bodyState is the part of a hop that reads the body.
type bodyState struct {
	rc       io.ReadCloser // net/http's body
	rawErr   error         // first failure of rc, before a decoder reworded it
	rawEOF   bool          // rc reached its end
	chain    *chain        // nil for an uncoded body
	coding   string
	bodyErr  error // sticky result of Read
	maxBody  int64
	decoded  int64
	weight   int64 // taken from the budget
	identity int64 // declared length of an uncoded body, or -1
	closed   bool
}

// openBody prepares reading. What is wrong with the body's labels is the
// first Read's error: status and headers are still worth having.
func (h *hop) openBody(res *http.Response) {
	h.identity = -1
	codings, err := parseCodings(res.Header["Content-Encoding"])
	if err != nil {
		h.bodyErr = h.failAs(outcome.Protocol, "body", err)
		return
	}
	if len(codings) == 0 {
		h.identity = res.ContentLength
	} else {
		h.coding = codings[0]
		h.chain = h.client.decoders.open((*rawBody)(h), codings, h.maxBody+rawSlack)
	}
	if res.ContentLength > h.maxBody+rawSlack || h.identity > h.maxBody {
		h.bodyErr = h.tooLarge()
	}
}

// Read is Response.Body.
func (h *hop) Read(p []byte) (int, error) {
	if h.bodyErr != nil {
		return 0, h.bodyErr
	}
	if h.closed {
		return 0, errClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	// One byte beyond the cap is asked for, to tell a body that ends there
	// from one that goes on.
	if room := h.maxBody - h.decoded; int64(len(p)) > room+1 {
		p = p[:room+1]
	}
	var n int
	var err error
	if h.chain != nil {
		n, err = h.chain.Read(p)
	} else {
		n, err = (*rawBody)(h).Read(p)
	}
	h.decoded += int64(n)
	h.resp.wire = h.raw.Load()
	if h.decoded > h.maxBody {
		n -= int(h.decoded - h.maxBody)
		h.bodyErr = h.tooLarge()
		return n, h.bodyErr
	}
	switch {
	case err == io.EOF:
		h.bodyErr = io.EOF
		h.endBody(h.chain == nil || h.drain(drainBytes))
	case err != nil:
		h.bodyErr = h.bodyFailure(err)
	case h.decoded > largeBody && h.weight == 0:
		h.bodyErr = h.takeBudget()
	}
	return n, h.bodyErr
}

func (h *hop) tooLarge() error {
	return h.failAs(outcome.TooLarge, "body", &tooLargeError{"body", h.maxBody})
}

func (h *hop) bodyFailure(err error) *Error {
	switch {
	case errors.Is(h.rawErr, errRawTooLarge), errors.Is(err, errRawTooLarge):
		return h.failAs(outcome.TooLarge, "body", &tooLargeError{"body", h.maxBody})
	case h.rawErr != nil:
		return h.fail("body", h.rawErr)
	}
	return h.failAs(outcome.Protocol, "body", &reason{"the body is not valid " + h.coding, err})
}

// takeBudget takes the whole share at once, the only time this hop asks, so
// that two large bodies can never wait for each other. The host is not to
// blame for the wait: its clocks stand still.
func (h *hop) takeBudget() error {
	w := h.maxBody
	if h.identity > 0 {
		w = h.identity
	}
	w = min(w, h.client.cfg.BodyBytesInFlight)
	if !h.client.budget.TryAcquire(w) {
		began := h.since()
		h.enter(phasePaused)
		err := h.client.budget.Acquire(h.ctx, w)
		h.paused.Add(h.since() - began)
		h.enter(phaseBody)
		if err != nil {
			return h.fail("body", err)
		}
	}
	h.weight = w
	h.client.held.Add(w)
	return nil
}

// endBody is reached when no more of the body will be read.
func (h *hop) endBody(healthy bool) {
	if h.chain != nil {
		h.client.decoders.release(h.chain)
		h.chain = nil
	}
	h.resp.wire = h.raw.Load()
	if h.rc != nil {
		h.rc.Close()
	}
	h.end(healthy)
}

// close is Response.Close.
func (h *hop) close() {
	if h.closed {
		return
	}
	h.closed = true
	if h.phase.Load() != phaseDone {
		h.endBody(h.conn.h2 || h.worthDraining() && h.drain(drainBytes))
	}
	if h.weight > 0 {
		h.client.budget.Release(h.weight)
		h.client.held.Add(-h.weight)
		h.weight = 0
	}
}

func (h *hop) worthDraining() bool {
	cl := h.resp.ContentLength
	return h.bodyErr == nil && (cl < 0 || cl-h.raw.Load() <= drainBytes)
}

// drain reads the rest of the body if it is short, and says whether it
// reached its end.
func (h *hop) drain(limit int) bool {
	if h.rawEOF {
		return true
	}
	timer := time.AfterFunc(drainTime, func() { h.cancel(errDone) })
	defer timer.Stop()
	var buf [4 << 10]byte
	for limit > 0 {
		n, err := h.rc.Read(buf[:min(limit, len(buf))])
		h.raw.Add(int64(n))
		if limit -= n; err != nil {
			return err == io.EOF
		}
	}
	return false
}

// rawBody is a hop's body before decoding.
type rawBody hop

func (b *rawBody) Read(p []byte) (int, error) {
	if b.rawErr != nil {
		return 0, b.rawErr
	}
	if b.rawEOF {
		return 0, io.EOF
	}
	h := (*hop)(b)
	began := h.since()
	h.mark.Store(began)
	n, err := h.rc.Read(p)
	h.mark.Store(0)
	if h.client.cfg.MinRate > 0 {
		h.waited.Add(h.since() - began)
	}
	if total := h.raw.Add(int64(n)); err == nil && total > h.maxBody+rawSlack {
		err = errRawTooLarge
	}
	if err != nil {
		if h.rawEOF = err == io.EOF; !h.rawEOF {
			h.rawErr = err
		}
	}
	return n, err
}

// ReadAll reads the body into buf's memory, which it grows if it must, and
// returns the filled slice. What was read before a failure is returned with
// it. It does not close the response.
func ReadAll(resp *Response, buf []byte) ([]byte, error) {
	buf = buf[:0]
	if resp.Body == nil {
		return buf, nil
	}
	// One byte more than declared, so that the end is seen without growing.
	// The length is a stranger's word: believe a megabyte of it at most.
	if want := min(resp.ContentLength+1, largeBody); want > int64(cap(buf)) {
		buf = make([]byte, 0, want)
	}
	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), max(2*cap(buf), 16<<10))
			copy(grown, buf)
			buf = grown
		}
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
