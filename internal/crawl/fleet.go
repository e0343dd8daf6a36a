package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// Fleet is what an engine needs of the others when many processes work on the
// same crawls. A process alone has none.
//
// Every worker runs the same steps over the groups it has leased. One of them
// supervises a crawl: it alone decides that it has ended, from what all of
// them report (Shared). The others have joined it.
type Fleet interface {
	Worker() string                                     // this process's name, new at each start
	Bits() uint16                                       // tells its permits from the others'
	Ahead() (by, give time.Duration)                    // how far the store's clock is ahead of ours, and how far off that may be
	Held(group string) bool                             // a lease is safe to act on right now
	Supervising(ctx context.Context, crawl int64) error // this process is about to open it: returns when it works for it no more
	Abandoned(crawl int64)                              // it was to be supervised here, and cannot be opened
	Opened(r *Run)                                      // a crawl that this process supervises is open
	Yielded(r *Run)                                     // another process supervises it now; this one stays a worker of it
	Hold(r *Run, cut bool)                              // nobody may begin a request for it; cut: nor end one
	Trouble(what string)                                // a store does not answer; empty: it does again
	Waiting() string                                    // why nothing is fetched; empty while all is well
	Ended(ctx context.Context, r *Run) error            // it is over: returns when nobody works for it, or it is yielded
}

// Shared is a crawl as all workers together see it.
type Shared struct {
	At       time.Time
	Workers  int
	Pending  int64 // URLs that are not done
	Settled  bool  // Pending was true at one instant, and nothing has moved since the look before
	Parked   int64
	InHand   int64
	InFlight int64 // of what is in hand, requests on the wire
	Retrying int64
	Spent    int64 // pages taken from the budget
	Unused   int64 // of those, pages that nobody has used yet
	Tally          // of all, those included that have left
	Classes  [6]int64
	Rate     float64
	Pictures []Picture // of the other workers
}

// Tally is what was counted of a crawl, or of a part of it.
type Tally struct {
	ledger.Counters
	Outcomes map[outcome.Outcome]int64 `json:"outcomes,omitempty"`
}

// Add counts what o has counted, too.
func (t *Tally) Add(o *Tally) {
	t.Counters.Add(&o.Counters)
	all := make(map[outcome.Outcome]int64, len(t.Outcomes)+len(o.Outcomes))
	maps.Copy(all, t.Outcomes)
	for what, n := range o.Outcomes {
		all[what] += n
	}
	t.Outcomes = all
}

// Without takes off what o has counted, down to nothing.
func (t *Tally) Without(o *Tally) {
	t.Counters.Without(&o.Counters)
	all := maps.Clone(t.Outcomes)
	for what, n := range o.Outcomes {
		if left := all[what] - n; left > 0 {
			all[what] = left
		} else {
			delete(all, what)
		}
	}
	t.Outcomes = all
}

// SetShared brings the supervisor what all workers report.
func (r *Run) SetShared(s *Shared) {
	r.shared.Store(s)
	r.nudge()
}

// Join opens a crawl that another process supervises, to work for it.
func (e *Engine) Join(ctx context.Context, row ledger.Crawl) (*Run, error) {
	var spec Spec
	if err := json.Unmarshal(row.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
	}
	row.Counters = ledger.Counters{}
	return e.open(ctx, row, spec, Hooks{})
}

// Leave ends this worker's part in a crawl: what is in flight has its grace,
// unless it is cut, and what is known of parked hosts is written down. If ctx
// ends before, the next call goes on from there.
func (r *Run) Leave(ctx context.Context, cut bool) error {
	e := r.e
	e.sched.Pause(r.fc)
	if cut {
		r.cancel()
	}
	if r.leaving.IsZero() {
		r.leaving = time.Now()
	}
	grace := time.NewTimer(Grace - time.Since(r.leaving))
	defer grace.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	done := func() error {
		for r.fc.InHand() {
			select {
			case <-r.poke:
			case <-tick.C:
			case <-grace.C:
				r.cancel()
			case <-ctx.Done():
				if r.fc.InHand() {
					return ctx.Err()
				}
			}
		}
		return nil
	}
	if err := done(); err != nil {
		return err
	}
	if !r.left {
		if err := e.writeParked(ctx, r); err != nil {
			return err
		}
		now := e.cfg.Now()
		if err := e.cfg.Ledger.Commit(ctx, &ledger.Batch{Crawls: []ledger.Crawl{r.rowWith(new(ledger.Counters), now)}}); err != nil {
			return err
		}
		e.sched.Close(r.fc, now)
		r.cancel()
		r.left = true
	}
	if err := done(); err != nil { // the last hop of a robots.txt, which a pause does not stop
		return err
	}
	e.mu.Lock()
	delete(e.runs, r.fc.ID)
	e.mu.Unlock()
	return nil
}

// Hold stops new requests of the crawl in this process; Go goes on.
func (r *Run) Hold(cut bool) {
	r.e.sched.Pause(r.fc)
	if cut {
		r.cancel()
	}
}

// Allow lets this worker take n more pages of the crawl's budget.
func (r *Run) Allow(n int64) {
	if n <= 0 {
		return
	}
	r.allowance.Add(n)
	r.e.sched.Unspend(r.fc, r.e.cfg.Now())
}

// SetSlots gives this worker its part of the crawl's requests in flight, by a
// division that the supervisor has numbered.
func (r *Run) SetSlots(n, round int64) {
	if r.slotRound.Load() == round && r.fc.Slots.Limit() == n {
		return
	}
	r.e.sched.SetSlots(r.fc, n)
	r.slotRound.Store(round)
}

// Unused takes back up to n pages that were allowed and not used.
func (r *Run) Unused(n int64) int64 {
	for {
		have := r.allowance.Load()
		take := min(n, have)
		if take <= 0 {
			return 0
		}
		if r.allowance.CompareAndSwap(have, have-take) {
			return take
		}
	}
}

// Part is this worker's part of a crawl.
type Part struct {
	Pending   int64 // in groups held here
	Parked    int64
	InHand    int64
	InFlight  int64
	Retrying  int64
	Allowance int64
	Hungry    bool  // the allowance is used up and somebody wants more
	Capped    bool  // the crawl has a page budget
	Slots     int64 // requests that may be in flight here, if the crawl has a bound
	SlotRound int64 // the division that they are from
	SlotsFull bool  // all of them are in use, and something waits
	Tally
	Classes [6]int64
	Rate    float64
}

// Part looks at it.
func (r *Run) Part() Part {
	now, wire := r.e.cfg.Now(), r.fc.InFlight()
	p := Part{Pending: r.fc.Pending(), Parked: r.fc.Parked(), InHand: r.fc.Taken() + wire, InFlight: wire, Retrying: r.fc.Retrying(),
		Allowance: r.allowance.Load(), Hungry: r.fc.Spent(), Capped: r.Spec.MaxURLs > 0,
		Slots: r.fc.Slots.Limit(), SlotRound: r.slotRound.Load()}
	p.SlotsFull = r.fc.Slots.Full() && p.Pending > r.fc.Taken()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rate.sample(now)
	p.Tally, p.Classes, p.Rate = Tally{r.crawl.Counters, maps.Clone(r.outcomes)}, r.classes, r.rate.perSec
	return p
}

// exhausted reports that nothing is left that could be fetched.
func (r *Run) exhausted() bool {
	if r.e.cfg.Fleet == nil {
		return r.fc.Exhausted()
	}
	s := r.looked()
	return s != nil && s.Settled && s.Pending == s.Parked && s.InHand == 0
}

// looked is what all workers report, if it was gathered since the supervision
// began: before, the seeds may not have been queued.
func (r *Run) looked() *Shared {
	if s := r.shared.Load(); s != nil && s.At.After(r.watched) {
		return s
	}
	return nil
}

// inHand reports whether somebody still works for the crawl, as was seen after
// the stop began.
func (r *Run) inHand(since time.Time) (busy bool, retrying int64) {
	if r.e.cfg.Fleet == nil {
		return r.fc.InHand(), r.fc.Retrying()
	}
	s := r.shared.Load()
	if s == nil || !s.At.After(since) {
		return true, 1
	}
	return s.InHand > 0 || r.fc.InHand(), s.Retrying
}

// truth counts a crawl from its rows: of what many workers counted, pages that
// were fetched twice around a crash are counted twice, and those that have left
// count nothing any more. stay are the URLs that may still be released.
func (r *Run) truth(ctx context.Context) (c ledger.Counters, parked, stay int64, err error) {
	counts, err := r.e.cfg.Ledger.PageCounts(ctx, r.ID)
	if err != nil {
		return c, 0, 0, err
	}
	c, parked = countersOf(counts), counts[outcome.Parked]
	t, ok := r.e.cfg.Ledger.(interface {
		Totals(ctx context.Context, crawl int64) (ledger.Totals, error)
	})
	if ok {
		sum, err := t.Totals(ctx, r.ID)
		if err != nil {
			return c, 0, 0, err
		}
		c.Requests, c.HTTP429, c.Retries, c.Bytes = sum.Requests, sum.HTTP429, sum.Retries, sum.Bytes
	}
	return c, parked, parked + counts[outcome.Trap], nil
}

func countersOf(counts map[outcome.Outcome]int64) (c ledger.Counters) {
	for o, n := range counts {
		tally(&c, o, n)
	}
	return c
}

// gone ends a crawl that the frontier has not got any more, if this process
// supervises it. If it has only joined it, the board tells it to leave.
func (e *Engine) gone(id frontier.CrawlID) {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r != nil {
		r.FrontierGone()
	}
}

// FrontierGone ends the crawl as failed: what was left of it is not known.
func (r *Run) FrontierGone() {
	r.ask(stopRequest{reason: ErrFrontierGone.Error(), status: ledger.Failed, grace: Grace})
}

// inFrontier reports whether the shared frontier still has a crawl.
func (e *Engine) inFrontier(ctx context.Context, crawl int64) (bool, error) {
	s, ok := e.cfg.Store.(interface {
		Pending(ctx context.Context, crawl frontier.CrawlID) (n int64, stable bool, err error)
	})
	if !ok {
		return true, nil
	}
	_, _, err := s.Pending(ctx, frontier.CrawlID(crawl))
	var gone *frontier.NotOpenError
	if errors.As(err, &gone) {
		return false, nil
	}
	return true, err
}

// Late calls say once, unless it is stopped within a time; stop reports whether
// it was called.
func Late(after time.Duration, say func()) (stop func() (said bool)) {
	var mu sync.Mutex
	var stopped, said bool
	timer := time.AfterFunc(after, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			said = true
			say()
		}
	})
	return func() bool {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		return said
	}
}

// lateAfter is how long a store is waited for before the status says so.
const lateAfter = 3 * time.Second

// patiently repeats a step until it succeeds or ctx ends. A process alone
// fails at once: its disk will not come back. In a fleet a store may be away
// for a while; meanwhile leases expire and nothing is fetched.
func (e *Engine) patiently(ctx context.Context, what string, step func() error) error {
	if e.cfg.Fleet == nil {
		return step()
	}
	wait := 100 * time.Millisecond
	for failed := false; ; failed = true {
		stop := Late(lateAfter, func() { e.cfg.Fleet.Trouble(fmt.Sprintf("%s: no answer for %s", what, lateAfter)) })
		err := step()
		late := stop()
		if err == nil {
			if late || failed {
				e.cfg.Fleet.Trouble("")
			}
			if failed {
				e.log.Info("it answers again", "step", what)
			}
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if !failed {
			e.log.Warn("waiting for a store that does not answer; nothing is lost", "step", what, "error", err)
		}
		e.cfg.Fleet.Trouble(what + ": the store does not answer") // where it is belongs in the log: tenants read this
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		wait = min(wait*2, 2*time.Second)
	}
}
