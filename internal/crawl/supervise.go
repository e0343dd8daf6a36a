package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

// Grace is what requests in flight are given after Ctrl+C or a time limit.
const Grace = 2 * time.Second

// retryGrace bounds the wait for retries of pages that were already paid for
// when the page limit is reached.
const retryGrace = 60 * time.Second

// Stop asks the crawl to end: no new requests, those in flight get the grace.
func (r *Run) Stop(reason string) { r.StopAs(ledger.Partial, reason) }

// StopAs ends the crawl with another status: paused or cancelled by a person,
// or running, for a process that goes down and will come back to it.
func (r *Run) StopAs(status ledger.Status, reason string) {
	r.ask(stopRequest{reason: reason, status: status, grace: Grace})
}

// Yield ends this process's supervision without an end of the crawl: another
// process supervises it, and this one goes on as one of its workers.
func (r *Run) Yield() {
	r.yielding.Store(true)
	r.ask(stopRequest{yield: true})
}

// Yielding reports that another process supervises the crawl, so that this one
// does not end it.
func (r *Run) Yielding() bool { return r.yielding.Load() }

// yield hands the supervision over.
func (r *Run) yield() Summary {
	r.e.cfg.Fleet.Yielded(r)
	return Summary{Crawl: r.ID, Status: ledger.Running, Reason: "another process supervises it"}
}

func (r *Run) ask(s stopRequest) {
	select {
	case r.stop <- s:
	default:
	}
}

// Supervise waits for the crawl's end and finishes it. It is driven by commits
// and timers, never by luck.
func (r *Run) Supervise(ctx context.Context) (Summary, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var limit, grace, retry <-chan time.Time
	if r.Spec.Duration > 0 {
		limit = time.After(r.Spec.Duration)
	}
	soon, sooner := r.budgetTimers()
	r.watched = r.e.cfg.Now()
	end := stopRequest{}
	stopping, since := false, time.Time{}
	hold := func(cut bool) {
		r.e.sched.Pause(r.fc)
		if r.e.cfg.Fleet != nil {
			r.e.cfg.Fleet.Hold(r, cut)
		}
	}
	begin := func(s stopRequest) {
		if stopping {
			return
		}
		stopping, end, since = true, s, r.e.cfg.Now()
		r.e.log.Info(s.reason)
		if s.now {
			hold(true)
			r.cancel()
			end.grace = 1
		} else if s.grace > 0 {
			hold(false)
			grace = time.After(s.grace)
		}
	}
	for {
		r.warnBudgets()
		if !stopping && r.exhausted() {
			return r.finish(ctx, stopRequest{status: ledger.Completed, reason: "Nothing left to crawl"})
		}
		if !stopping && r.limitReached() {
			retry = time.After(retryGrace)
			begin(r.pageLimit())
		}
		if stopping {
			if busy, retrying := r.inHand(since); !busy && (end.grace > 0 || retrying == 0) {
				return r.finish(ctx, end)
			}
		}
		select {
		case <-r.poke:
		case <-tick.C:
		case <-soon:
		case <-sooner:
		case <-limit:
			limit = nil
			begin(r.timeLimit())
		case s := <-r.stop:
			if s.yield {
				return r.yield(), nil
			}
			if stopping && s.grace > 0 && end.grace == 0 {
				hold(false)
				end.grace, grace = s.grace, time.After(s.grace)
			}
			begin(s)
		case <-retry:
			hold(false)
			end.grace = Grace
		case <-grace:
			hold(true)
			r.cancel()
		case <-ctx.Done():
			last := context.WithoutCancel(ctx)
			if r.e.cfg.Fleet != nil { // a store may be away for long
				var cancel context.CancelFunc
				last, cancel = context.WithTimeout(last, Grace)
				defer cancel()
			}
			return r.finish(last, stopRequest{status: ledger.Running, reason: context.Cause(ctx).Error()})
		}
	}
}

// limitReached: the budget is spent and somebody still waits for a page.
func (r *Run) limitReached() bool {
	if r.Spec.MaxURLs <= 0 {
		return false
	}
	if r.e.cfg.Fleet != nil {
		s := r.looked()
		return s != nil && s.Settled && s.Spent >= r.Spec.MaxURLs && s.Unused == 0 && s.InHand == 0 && s.Pending > s.Parked+s.Retrying
	}
	if r.fc.Spent() {
		return true
	}
	return r.used.Load() >= r.Spec.MaxURLs && r.fc.Taken() == 0 && r.fc.Pending() > r.fc.Parked()+r.fc.Retrying()
}

// finish writes the end down and lets go of the crawl.
func (r *Run) finish(ctx context.Context, end stopRequest) (Summary, error) {
	e, status, reason := r.e, end.status, end.reason
	// A store may be away for long at any of these steps, and meanwhile the
	// crawl may become another's.
	yielding := func() bool { return e.cfg.Fleet != nil && r.Yielding() }
	if e.cfg.Fleet != nil {
		if err := e.patiently(ctx, "end the crawl", func() error { return e.cfg.Fleet.Ended(ctx, r) }); err != nil {
			return Summary{}, err
		}
	}
	if yielding() {
		return r.yield(), nil
	}
	parkedURLs := r.fc.Parked()
	if err := e.patiently(ctx, "write the crawl's end", func() error { return e.writeParked(ctx, r) }); err != nil {
		return Summary{}, err
	}
	now := e.cfg.Now()
	r.mu.Lock()
	r.crawl.Status, r.crawl.Reason, r.crawl.Updated, r.crawl.Ended = status, reason, now, now
	if !status.Done() { // somebody will come back to it
		r.crawl.Ended = time.Time{}
	}
	row := r.crawl
	r.mu.Unlock()
	remaining, spent, stay := r.fc.Pending()-parkedURLs, r.used.Load(), parkedURLs+r.trapped()
	if e.cfg.Fleet != nil {
		err := e.patiently(ctx, "write the crawl's end", func() (err error) {
			if status == ledger.Completed {
				if err := e.writeLeft(ctx, r); err != nil {
					return err
				}
			}
			row.Counters, parkedURLs, stay, err = r.truth(ctx)
			return err
		})
		if err != nil {
			return Summary{}, err
		}
		if s := r.shared.Load(); s != nil {
			remaining = max(s.Pending-parkedURLs, 0)
		}
		row.Worker = "" // the crawl's own row, for all of them
		// What a worker died with is gone from the budget, and was not had.
		spent = row.Counters.Processed
	}
	sum := Summary{
		Crawl: r.ID, Status: status, Reason: reason, Counters: row.Counters, Spent: spent,
		Remaining: remaining, ParkedURLs: parkedURLs, Duration: now.Sub(row.Started),
	}
	b := &ledger.Batch{Crawls: []ledger.Crawl{row}}
	if end.budget != "" {
		b.Evidence = append(b.Evidence, r.spent(end.budget, sum.Remaining, now))
	}
	for _, ch := range e.sched.TakeChanged() {
		b.Domains = append(b.Domains, domainRow(ch))
	}
	var gone error
	err := e.patiently(ctx, "write the crawl's end", func() error {
		if yielding() {
			return nil
		}
		e.sched.Close(r.fc, now) // a robots.txt that leads elsewhere goes on while it is paused
		err := e.cfg.Ledger.Commit(ctx, b)
		if e.cfg.Fleet != nil && errors.Is(err, ledger.ErrTakenOver) { // it was away for so long that another one has the crawl
			r.yielding.Store(true)
			return nil
		}
		if errors.Is(err, ledger.ErrNoCrawl) { // it will not come back
			gone = err
			return nil
		}
		if err != nil {
			return err
		}
		_, err = e.sched.Commit(ctx, &frontier.Batch{}, now)
		return err
	})
	if err = cmp.Or(err, gone); err != nil {
		return sum, fmt.Errorf("write the crawl's end: %w", err)
	}
	if yielding() {
		return r.yield(), nil
	}
	// What is parked or set aside may be released later, and then the seen set
	// says what was already fetched.
	if status == ledger.Completed && stay == 0 {
		err := e.patiently(ctx, "forget what is done", func() error {
			if yielding() { // whoever ends it drops it
				return nil
			}
			return e.cfg.Store.DropCrawl(ctx, r.fc.ID)
		})
		if err != nil {
			return sum, err
		}
		if yielding() {
			return r.yield(), nil
		}
	}
	r.cancel()
	if r.fc.InHand() { // the engine failed; its last workers still look the run up
		return sum, nil
	}
	e.mu.Lock()
	delete(e.runs, r.fc.ID)
	e.mu.Unlock()
	return sum, nil
}

func (r *Run) trapped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcomes[outcome.Trap]
}

// writeParked gives every URL of a parked host a row that says so. They stay
// in the frontier: a resume gives the host another chance.
func (e *Engine) writeParked(ctx context.Context, r *Run) error {
	if r.fc.Parked() == 0 {
		return nil
	}
	var err error
	e.sched.EachParked(func(v frontier.HostView) {
		if err == nil {
			err = e.writeQueue(ctx, r, v.Group, v.Reason)
		}
	})
	return err
}

// writeLeft does so for a fleet's crawl that is complete: all that is left of it
// is parked, and those who had parked it may have died before they said so.
func (e *Engine) writeLeft(ctx context.Context, r *Run) error {
	var groups []string
	err := e.cfg.Store.Queues(ctx, r.fc.ID, func(q frontier.Queue) error {
		groups = append(groups, q.Group)
		return nil
	})
	for _, g := range groups {
		var st politeness.State
		if err == nil {
			st, _, err = frontier.ReadClocks(ctx, e.cfg.Store, g)
		}
		if err == nil {
			err = e.writeQueue(ctx, r, g, fmt.Sprintf("%d failures in a row", st.Failures))
		}
	}
	return err
}

func (e *Engine) writeQueue(ctx context.Context, r *Run, group, reason string) error {
	var after frontier.Pos
	for {
		es, err := e.cfg.Store.Window(ctx, group, r.fc.ID, after, 1000, nil)
		if err != nil || len(es) == 0 {
			return err
		}
		var b ledger.Batch
		for i := range es {
			pg := r.page(&es[i], e.cfg.Now(), frontier.Decision{})
			pg.Robots = ledger.RobotsDecision{}
			pg.Outcome, pg.Error = outcome.Parked, "host parked: "+reason
			b.Pages = append(b.Pages, *pg)
		}
		if e.cfg.Fleet != nil { // the part of one worker: if the crawl has ended meanwhile, it is late
			b.Crawls = append(b.Crawls, r.rowWith(new(ledger.Counters), e.cfg.Now()))
		}
		if err := e.cfg.Ledger.Commit(ctx, &b); err != nil {
			return err
		}
		after = es[len(es)-1].Pos()
	}
}
