package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/robots"
	"tiptoe/internal/sitemap"
	"tiptoe/internal/weburl"
)

// Hop is what came of one request.
type Hop struct {
	Status   int
	Header   http.Header
	Body     []byte
	Cut      bool // the body was longer than its cap; Body is its beginning
	Private  bool
	Started  time.Time // on the wire; when it never got there, when it was granted
	Ended    time.Time
	Timing   fetch.Timing
	WireSize int64
	Size     int64
	Err      *fetch.Error

	Entries    []sitemap.Entry // of a sitemap, read while it streamed
	SitemapErr error
	Found      *found // of an outside index

	buf     *[]byte            // Body's memory, to be returned to the pool
	verdict politeness.Verdict // what the answer means for its URL
	asked   time.Time          // the server asked for quiet until then
}

// Outcome classifies the hop.
func (h *Hop) Outcome(now time.Time) outcome.Outcome {
	if h.Err != nil {
		return h.Err.Outcome
	}
	_, ra := fetch.RetryAfter(h.Header, now)
	o := outcome.FromStatus(h.Status, ra)
	if o == outcome.OK && h.Cut {
		return outcome.TooLarge
	}
	return o
}

// answer is what politeness wants to know of the hop.
func (h *Hop) answer(now time.Time, tries int) politeness.Answer {
	a := politeness.Answer{Outcome: h.Outcome(now), Status: h.Status, Started: h.Started, Tries: tries}
	if h.Err != nil {
		a.Stale = h.Err.Stale || h.Err.Local // nothing the host could help
		return a
	}
	a.Latency = h.Timing.TTFB
	if t, ok := fetch.RetryAfter(h.Header, now); ok && (h.Status == 429 || h.Status == 503) {
		a.RetryAfter = t
	}
	if t, ok := fetch.RateLimit(h.Header, now); ok {
		a.RateLimit = t
	}
	return a
}

// robotsBody and robotsTimeout are the limits of SPEC §6.
const (
	robotsBody     = 500 << 10
	robotsTimeout  = 3 * time.Second
	robotsHops     = 5
	sitemapBody    = 52_428_800 // the sitemap protocol's own limit
	sitemapTimeout = 2 * time.Minute
)

// hop makes the request of a permit. It blocks for as long as the answer
// takes; no lock and no other host waits for it. An answer that crashes the
// client or a decoder fails alone.
func (e *Engine) hop(ctx context.Context, r *Run, w *frontier.Work) (h *Hop) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a request crashed and its URL was set aside", "crawl", r.ID, "host", w.Permit.Group, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			h.Ended, h.Err = e.cfg.Now(), &fetch.Error{Outcome: outcome.Poison, Op: "request", Err: errors.New("the answer crashed the client")}
		}
	}()
	h = &Hop{Started: e.cfg.Now()}
	req := &fetch.Request{
		Header:  r.header,
		MaxBody: r.Spec.MaxBody,
		Timeout: r.Spec.Timeout,
	}
	// The log and the host's clocks must speak of the same instant, or the log
	// could not prove what the clocks did.
	var wire atomic.Pointer[time.Time]
	req.Gate = func() bool { return e.sched.Confirm(w.Permit, e.cfg.Now()) }
	req.OnWire = func(time.Time) {
		at := e.cfg.Now()
		wire.Store(&at)
		e.sched.OnWire(w.Permit, at)
	}
	var trust bool
	if w.Kind == frontier.Robots {
		req.URL = weburl.FromCanonical(w.Task.URL)
		req.MaxBody, req.Timeout = robotsBody+1, robotsTimeout
		trust = w.Task.TrustPrivate
	} else {
		req.URL = weburl.FromCanonical(w.Entry.URL)
		trust = w.Entry.TrustPrivate
		switch w.Entry.Kind {
		case frontier.KindSitemap:
			req.MaxBody, req.Timeout = sitemapBody, sitemapTimeout
		case frontier.KindSource:
			req.MaxBody, req.Timeout = sourceBody, sourceTimeout
		}
	}
	host := req.URL.HostKey()
	req.AllowPrivate = trust && !r.isPublic(host)
	if auth, ok := r.Spec.HostHeaders[req.URL.Origin()]; ok {
		req.Header = req.Header.Clone()
		req.Header.Set("Authorization", auth)
	}
	resp, err := e.cfg.Fetcher.Do(ctx, req)
	if err != nil {
		h.fail(err)
		h.onWire(wire.Load())
		h.Ended = e.cfg.Now()
		return h
	}
	defer resp.Close()
	h.Status, h.Header, h.Private = resp.Status, resp.Header, resp.Private
	if !resp.Private {
		r.notePublic(host)
	}
	switch streams := w.Kind == frontier.Fetch && resp.Status == http.StatusOK; {
	case streams && w.Entry.Kind == frontier.KindSitemap:
		e.readSitemap(r, &w.Entry, resp, h)
	case streams && w.Entry.Kind == frontier.KindSource:
		e.readSource(resp, h)
	default:
		e.readBody(resp, h)
	}
	resp.Close()
	h.Timing, h.WireSize = resp.Timing(), resp.WireBytes()
	h.onWire(wire.Load())
	h.Ended = e.cfg.Now()
	return h
}

// onWire notes when the request was written; nil if it never was.
func (h *Hop) onWire(at *time.Time) {
	if at == nil {
		return
	}
	h.Started = *at
	if h.Timing.Wire.IsZero() {
		h.Timing.Wire = *at
	}
}

func (h *Hop) fail(err error) {
	var fe *fetch.Error
	if !errors.As(err, &fe) {
		fe = &fetch.Error{Outcome: outcome.Protocol, Op: "fetch", Err: err}
	}
	h.Err, h.Timing = fe, fe.Timing
}

func (e *Engine) readBody(resp *fetch.Response, h *Hop) {
	h.buf = e.bufs.Get().(*[]byte)
	b, err := fetch.ReadAll(resp, (*h.buf)[:0])
	*h.buf = b
	h.Body, h.Size = b, int64(len(b))
	h.bodyError(err)
}

// bodyError keeps a body that was cut by its cap; any other failure fails the hop.
func (h *Hop) bodyError(err error) {
	if err == nil {
		return
	}
	var fe *fetch.Error
	if errors.As(err, &fe) && fe.Outcome == outcome.TooLarge {
		h.Cut = true
		return
	}
	h.fail(err)
}

// readSitemap parses while it downloads and stops both at the page budget: one
// new page more than it, so that the crawl knows that it left something out.
func (e *Engine) readSitemap(r *Run, en *frontier.Entry, resp *fetch.Response, h *Hop) {
	counted := &countingReader{r: resp.Body}
	base := weburl.NewBase(weburl.FromCanonical(en.URL))
	left, fresh := r.budgetLeft(), int64(0)
	_, h.SitemapErr = sitemap.Parse(counted, func(se sitemap.Entry) bool {
		h.Entries = append(h.Entries, se)
		u, err := base.Resolve(strings.TrimSpace(se.Loc))
		if err == nil && r.rules.Judge(u, 1).OK && !e.cfg.Store.Seen(en.Crawl, u.Fingerprint()) {
			fresh++
		}
		return fresh <= left
	})
	h.Size = counted.n
	if counted.err != nil && counted.err != io.EOF {
		h.bodyError(counted.err)
	}
}

type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (e *Engine) runOf(w *frontier.Work) *Run {
	if w.Kind == frontier.Robots {
		return e.run(w.Task.Crawl.ID)
	}
	return e.run(w.Entry.Crawl)
}

// Answer takes what came of a permit's request: the permit is released at
// once, then the answer is digested.
func (e *Engine) Answer(w *frontier.Work, h *Hop) *Record {
	r := e.runOf(w)
	v := e.release(r, w, h)
	if w.Kind == frontier.Robots {
		rec := &Record{run: r}
		rec.request(r, w, h)
		if h.Outcome(h.Ended) == outcome.Throttled {
			rec.evidence = append(rec.evidence, r.throttled(&frontier.Entry{URL: w.Task.URL}, h))
		}
		e.robotsAnswer(r, w, h)
		return rec
	}
	e.parse <- struct{}{}
	defer func() { <-e.parse }()
	return e.digest(r, w, h, v)
}

// Refuse takes a URL that robots.txt does not let us fetch.
func (e *Engine) Refuse(w *frontier.Work) *Record { return e.refuse(e.runOf(w), w, e.cfg.Now()) }

// release ends the permit with the hop's answer and logs what was learned.
func (e *Engine) release(r *Run, w *frontier.Work, h *Hop) politeness.Verdict {
	tries := int(w.Entry.Tries) + 1
	a := h.answer(h.Ended, tries)
	v := e.sched.Release(w.Permit, h.Ended, a)
	v.Retry = v.Retry && !(r.Spec.Once && w.Kind == frontier.Fetch)
	h.verdict, h.asked = v, a.RetryAfter
	if a.RateLimit.After(h.asked) {
		h.asked = a.RateLimit
	}
	if h.Status == http.StatusTooManyRequests {
		e.counts.HTTP429.Add(1)
	}
	e.meter(r, w, h)
	if v.Retry && w.Kind != frontier.Robots {
		e.counts.Retries.Add(1)
	}
	if v.Withheld > 0 {
		e.counts.ConcurrencyOverrides.Add(1)
	}
	if v.Raised || v.Reverted || v.Lowered || v.Parked {
		st := e.sched.Clocks(w.Permit.Group)
		if v.Raised || v.Reverted {
			e.log.Info("host throttled", "domain", w.Permit.Group, "delay", st.Learned, "error_streak", st.ErrorStreak)
		} else if v.Lowered {
			e.log.Debug("probing a shorter delay", "domain", w.Permit.Group, "delay", st.Learned, "safe", st.Safe)
		}
		if r.hooks.Throttled != nil && (v.Raised || v.Reverted || v.Parked) {
			r.hooks.Throttled(ThrottleEvent{Host: w.Permit.Group, Delay: st.Learned, DelayMS: st.Learned.Milliseconds(),
				ErrorStreak: st.ErrorStreak, Parked: v.Parked})
		}
		if e.cfg.Meter != nil && (v.Raised || v.Reverted) {
			e.cfg.Meter.Throttled()
		}
		if v.Parked {
			u := w.Entry.URL
			if w.Kind == frontier.Robots {
				u = w.Task.URL
			}
			e.log.Warn(fmt.Sprintf("[BLOCKED] Permanently skipping %s from failed host %s (%d consecutive failures)",
				u, w.Permit.Group, st.Failures))
		}
	}
	return v
}

// meter counts a request and gives a crawl up that a host will not have
// [RET-3].
func (e *Engine) meter(r *Run, w *frontier.Work, h *Hop) {
	o := h.Outcome(h.Ended)
	if e.cfg.Meter != nil {
		kind := "robots"
		if w.Kind == frontier.Fetch {
			kind = w.Entry.Kind.String()
		}
		e.cfg.Meter.Requested(kind, o, h.Ended.Sub(h.Started), h.WireSize)
	}
	if r.Spec.CancelAfter429s <= 0 {
		return
	}
	delay := e.sched.Clocks(w.Permit.Group).Learned
	r.mu.Lock()
	reason, cancel := r.throttles.Note(o, delay)
	r.mu.Unlock()
	if cancel {
		e.counts.Cancellations.Add(1)
		r.ask(stopRequest{status: ledger.Cancelled, reason: reason, grace: Grace})
	}
}

// robotsAnswer turns a hop for robots.txt into a copy for its origin, or
// follows its redirect.
func (e *Engine) robotsAnswer(r *Run, w *frontier.Work, h *Hop) {
	t := w.Task
	c := &frontier.RobotsCopy{Origin: t.Origin, Status: h.Status, FetchedAt: h.Ended}
	o := h.Outcome(h.Ended)
	switch {
	case o == outcome.Redirect:
		next, err := weburl.NewBase(weburl.FromCanonical(t.URL)).Resolve(h.Header.Get("Location"))
		if err == nil && t.Hops < robotsHops && next.String() != t.URL {
			t.URL, t.Hops = next.String(), t.Hops+1
			t.Group = e.cfg.GroupOf(next.HostKey())
			t.TrustPrivate = h.Private || r.isSeedHost(next.HostKey())
			e.sched.RobotsHop(t, h.Ended)
			return
		}
		c.Status = http.StatusNotFound // too many hops: as if there were none
		c.Error = "too many redirects"
	case o == outcome.Cancelled: // held back: ask again when the host is ready
		e.sched.RobotsHop(t, h.Ended)
		return
	case o == outcome.OK, o == outcome.TooLarge:
		c.Body = append([]byte(nil), h.Body[:min(len(h.Body), robotsBody)]...)
		c.File = robots.Parse(c.Body)
	case h.Err != nil:
		c.Unreachable, c.Failure, c.Error = true, o, h.Err.Error()
	default:
		if v := robots.Availability(h.Status, false, robots.RFC9309); v.Retry {
			c.Unreachable, c.Failure, c.Error = true, o, fmt.Sprintf("HTTP %d", h.Status)
		}
	}
	c.Expires = h.Ended.Add(robots.TTL(h.Header, h.Ended))
	if c.Unreachable && r.ctx.Err() == nil {
		e.log.Info("robots.txt cannot be read; trying again before any page", "url", t.URL, "because", c.Error)
	}
	e.sched.RobotsDone(t, c, h.Started, h.Ended)
}
