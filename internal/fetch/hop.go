package fetch

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tiptoe/internal/outcome"
)

// phase is where a hop is, for the watch.
type phase = int32

const (
	phaseConnect phase = iota
	phaseHeaders
	phaseBody
	phasePaused // waiting for our own memory budget: no clock of the host runs
	phaseDone
)

// hop is one request from Do to Close. The caller's goroutine owns it; the
// fields that the watch and net/http's goroutines touch are atomic. Times in
// them are nanoseconds since start, zero for "not yet".
type hop struct {
	resp     Response
	client   *Client
	onWireFn func(time.Time)
	start    time.Time
	limit    time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	trace  httptrace.ClientTrace

	phase     atomic.Int32
	mark      atomic.Int64 // start of the header wait, or of the read under way
	paused    atomic.Int64 // total time in phasePaused
	writing   atomic.Bool  // handed to the connection, though perhaps not yet back from it
	wireAt    atomic.Int64
	firstByte atomic.Int64
	raw       atomic.Int64 // body bytes received
	waited    atomic.Int64 // time spent in body reads; kept when MinRate is set

	conn      *conn
	readAtUse int64 // conn.wire.read when this hop took the connection
	header    http.Header
	bodyState
}

// begin starts the clocks. One timer watches every deadline of the hop.
func (h *hop) begin(ctx context.Context, req *Request) {
	cfg := &h.client.cfg
	h.limit, h.maxBody = cfg.Timeout, cfg.MaxBody
	if req.Timeout > 0 {
		h.limit = req.Timeout
	}
	if req.MaxBody > 0 {
		h.maxBody = req.MaxBody
	}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	first := min(h.limit, cfg.HeaderTimeout, cfg.IdleReadTimeout)
	if cfg.MinRate > 0 {
		first = min(first, cfg.MinRateGrace)
	}
	// Set in two steps: the watch uses h.timer and may run at once.
	h.timer = time.AfterFunc(time.Hour, h.watch)
	h.timer.Reset(first)
}

func (h *hop) since() int64 { return max(1, int64(time.Since(h.start))) }

func (h *hop) enter(p phase) {
	h.mark.Store(0)
	if p == phaseHeaders {
		h.mark.Store(h.since())
	}
	h.phase.Store(p)
}

// watch runs when the timer fires: it cancels the hop if a deadline has
// passed, and otherwise sets the timer to the next. The timer is never set
// further ahead than the idle-read deadline, so a read that begins to hang
// between two firings is still found in time.
func (h *hop) watch() {
	cfg := &h.client.cfg
	p, now := h.phase.Load(), time.Duration(h.since())
	if p == phaseDone {
		return
	}
	next := cfg.IdleReadTimeout
	if p != phasePaused {
		left := h.limit + time.Duration(h.paused.Load()) - now
		if left <= 0 {
			h.cancel(&deadline{"", "no complete answer", h.limit})
			return
		}
		next = min(next, left)
	}
	mark := time.Duration(h.mark.Load())
	switch {
	case p == phaseHeaders && mark > 0:
		left := mark + cfg.HeaderTimeout - now
		if left <= 0 {
			h.cancel(&deadline{"headers", "no response headers", cfg.HeaderTimeout})
			return
		}
		next = min(next, left)
	case p == phaseBody && mark > 0:
		left := mark + cfg.IdleReadTimeout - now
		if left <= 0 {
			h.cancel(&deadline{"body", "no byte of the body", cfg.IdleReadTimeout})
			return
		}
		next = min(next, left)
	}
	if cfg.MinRate > 0 && p == phaseBody {
		if h.tooSlow(mark, now) {
			h.cancel(errTooSlow)
			return
		}
		next = min(next, max(cfg.MinRateGrace/4, 10*time.Millisecond))
	}
	h.timer.Reset(next)
}

// tooSlow judges the mean rate over the time the caller really waited.
func (h *hop) tooSlow(mark, now time.Duration) bool {
	waited := time.Duration(h.waited.Load())
	if mark > 0 {
		waited += now - mark
	}
	cfg := &h.client.cfg
	return waited >= cfg.MinRateGrace && float64(h.raw.Load()) < float64(cfg.MinRate)*waited.Seconds()
}

// traced returns the request's context with the hooks that this hop needs.
func (h *hop) traced() context.Context {
	h.trace.GotFirstResponseByte = h.onFirstByte
	if h.conn.h2 {
		// HTTP/2 shares its connection, so the stream's own hook tells.
		h.trace.WroteRequest = func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				h.onWire()
			}
		}
	} else {
		h.conn.wire.owner.Store(h)
	}
	h.readAtUse = h.conn.wire.read.Load()
	return httptrace.WithClientTrace(h.ctx, &h.trace)
}

func (h *hop) onFirstByte() { h.firstByte.CompareAndSwap(0, h.since()) }

func (h *hop) onWire() {
	at := h.since()
	if h.wireAt.CompareAndSwap(0, at) && h.onWireFn != nil {
		h.onWireFn(h.start.Add(time.Duration(at)))
	}
}

func (h *hop) addCookies(cookies []*http.Cookie) {
	pairs := slices.Clone(h.header["Cookie"])
	for _, ck := range cookies {
		pairs = append(pairs, ck.Name+"="+ck.Value)
	}
	if len(pairs) > 0 {
		h.header["Cookie"] = []string{strings.Join(pairs, "; ")}
	}
}

// answer turns response headers into a Response.
func (h *hop) answer(res *http.Response, proxied bool) (*Response, error) {
	h.onFirstByte()
	h.rc = res.Body
	if proxied && res.StatusCode == http.StatusProxyAuthRequired {
		return nil, h.failAs(outcome.Connect, "proxy", &reason{"the proxy wants other credentials", nil})
	}
	if res.StatusCode < 200 || res.StatusCode > 999 {
		return nil, h.failAs(outcome.Protocol, "headers", &reason{"unexpected status " + res.Status, nil})
	}
	h.setTiming()
	r := &h.resp
	r.Status, r.Header, r.Proto = res.StatusCode, res.Header, res.Proto
	r.Remote, r.Private = h.conn.remote, h.conn.private
	r.ContentLength = res.ContentLength
	r.Body, r.closeFn = h, h.close
	h.enter(phaseBody)
	if res.Body == http.NoBody {
		h.bodyErr = io.EOF
		h.endBody(true)
		return r, nil
	}
	h.openBody(res)
	return r, nil
}

// setTiming writes down what is known of the split so far.
func (h *hop) setTiming() {
	tm, now := &h.resp.timing, time.Duration(h.since())
	wire, first := time.Duration(h.wireAt.Load()), time.Duration(h.firstByte.Load())
	if wire == 0 && h.writing.Load() {
		wire = now
	}
	if wire > 0 {
		tm.Wire = h.start.Add(wire)
	}
	if first > 0 {
		// The answer can be here before the write has returned.
		tm.TTFB = max(1, first-wire)
		tm.Transfer = now - first
	}
	tm.Total = now
}

// end stops the clocks and gives the connection back. It is the one place
// where a connection leaves its hop.
func (h *hop) end(healthy bool) {
	if h.phase.Swap(phaseDone) == phaseDone {
		return
	}
	h.timer.Stop()
	h.setTiming()
	c := h.conn
	h.conn = nil
	if c == nil {
		h.cancel(errDone)
		return
	}
	c.wire.owner.Store(nil)
	if !c.h2 {
		healthy = healthy && c.cc.Available() > 0
		if healthy {
			// The exchange is complete, so nobody reads the request any
			// more. On HTTP/2 a hostile server could answer while the
			// headers are still being encoded; there the map is left alone.
			clear(h.header)
			h.client.headers.Put(h.header)
		}
	}
	h.cancel(errDone)
	h.client.pool.put(c, healthy)
}
