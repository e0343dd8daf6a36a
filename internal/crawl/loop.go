package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tiptoe/internal/frontier"
)

// Commits wait this long for company, unless every token is already in hand.
const (
	commitGather = 15 * time.Millisecond
	commitMost   = 512    // records
	commitWeight = 20_000 // rows and links; a sitemap alone may bring more
	// gatherPart of the tokens, when none is free, are worth a commit: the
	// others are meanwhile at the hosts.
	gatherPart = 4
)

// Run drives the steps with goroutines until ctx ends or a store fails: one
// dispatcher per shard, workers on demand, one committer. Every goroutine it
// starts has ended when it returns.
func (e *Engine) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan frontier.Work)
	var dispatchers, workers sync.WaitGroup

	committed := make(chan struct{})
	go func() {
		defer close(committed)
		if err := e.committer(ctx); err != nil {
			cancel(err) // what is not written stays queued in the store
		}
	}()
	for i := range e.sched.Shards() {
		dispatchers.Go(func() { e.dispatch(ctx, i, work, &workers, cancel) })
	}
	dispatchers.Wait()
	for _, r := range e.allRuns() {
		r.cancel()
	}
	close(work)
	workers.Wait()
	close(e.out)
	<-committed
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// dispatch asks one shard for work, whenever there is a token for it.
func (e *Engine) dispatch(ctx context.Context, shard int, work chan frontier.Work, workers *sync.WaitGroup, fail context.CancelCauseFunc) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if e.tokens.take(ctx) != nil {
			return
		}
		w, at := e.sched.Next(shard, e.cfg.Now())
		if w.Kind == frontier.Nothing {
			e.tokens.give(1)
			wait := time.Hour
			if !at.IsZero() {
				wait = max(at.Sub(e.cfg.Now()), 0)
			}
			timer.Reset(wait)
			select {
			case <-e.sched.Wake(shard):
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case work <- w:
			continue
		default:
		}
		workers.Go(func() { e.worker(ctx, w, work, fail) })
	}
}

// workerIdle is how long a worker without work stays.
const workerIdle = 10 * time.Second

// worker does its first work and then what comes, until it was idle too long.
func (e *Engine) worker(ctx context.Context, w frontier.Work, work chan frontier.Work, fail context.CancelCauseFunc) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		e.do(ctx, w, fail)
		idle.Reset(workerIdle)
		var ok bool
		select {
		case w, ok = <-work:
			if !ok {
				return
			}
		case <-idle.C:
			return
		}
	}
}

// do carries one piece of work through to its record.
func (e *Engine) do(ctx context.Context, w frontier.Work, fail context.CancelCauseFunc) {
	if w.Kind == frontier.Load {
		err := e.patiently(ctx, "read the frontier", func() error { return e.sched.Load(ctx, w, e.cfg.Now) })
		if err != nil && ctx.Err() == nil {
			fail(fmt.Errorf("read frontier: %w", err))
		}
		e.tokens.give(1)
		return
	}
	var rec *Record
	if w.Kind == frontier.Refuse {
		rec = e.Refuse(&w)
	} else {
		r := e.runOf(&w)
		h := e.hop(r.ctx, r, &w)
		rec = e.Answer(&w, h)
		e.recycle(h)
	}
	e.uncommitted.Add(1)
	e.out <- rec
}

func (e *Engine) recycle(h *Hop) {
	if h.buf != nil && cap(*h.buf) <= 1<<20 {
		e.bufs.Put(h.buf)
	}
	h.buf, h.Body = nil, nil
}

// lastWrites is how long, after a fleet's worker is told to stop, a store that
// does not answer is waited for: the grace of the last requests, and as long as
// a write may well take. What is not written by then is fetched again by
// whoever has its host next.
const lastWrites = Grace + 3*time.Second

// writing is the context of commits: what is in hand is written when ctx has
// ended, too. A process alone takes the time that its disk needs.
func (e *Engine) writing(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if e.cfg.Fleet == nil {
		return out, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(lastWrites, cancel)
		context.AfterFunc(out, func() { late.Stop() })
	})
	return out, func() { stop(); cancel() }
}

// committer writes records, in two steps that overlap: while one delivery is
// acknowledged in the frontier, the next is written into the ledger, and the one
// after it gathers. It ends when the channel is closed, with everything written.
func (e *Engine) committer(ctx context.Context) error {
	ctx, cancel := e.writing(ctx)
	defer cancel()
	recorded, stuck := make(chan *delivery), make(chan error, 1)
	go func() {
		defer close(stuck)
		for d := range recorded {
			if err := e.thrice(ctx, func() error { return e.acknowledge(ctx, d) }); err != nil {
				stuck <- err
				return
			}
			e.delivered(d)
		}
	}()
	for {
		recs, open, err := e.company(stuck)
		if err != nil {
			return err
		}
		if len(recs) > 0 || open {
			d := e.gather(recs, false)
			if err := e.thrice(ctx, func() error { return e.record(ctx, d) }); err != nil {
				close(recorded)
				return errors.Join(err, <-stuck)
			}
			select {
			case recorded <- d:
			case err := <-stuck:
				return err
			}
		}
		if !open {
			close(recorded)
			if err := <-stuck; err != nil {
				return err
			}
			return e.Commit(ctx, nil, true)
		}
	}
}

// company waits for a record and for those that come soon after it; none, if
// only hosts have left something to be written. open is false at the end. The
// last records may be stuck on their way, and then nobody else comes.
func (e *Engine) company(stuck <-chan error) (recs []*Record, open bool, err error) {
	select {
	case rec, ok := <-e.out:
		if !ok {
			return nil, false, nil
		}
		recs = append(recs, rec)
	case <-e.noted:
		return nil, true, nil
	case err := <-stuck:
		return nil, false, err
	}
	timer := time.NewTimer(commitGather)
	defer timer.Stop()
	for weight := recs[0].weight(); len(recs) < commitMost && weight < commitWeight; {
		var rec *Record
		ok := true
		select {
		case rec, ok = <-e.out:
		default:
			used, limit, _ := e.tokens.state()
			if int(e.uncommitted.Load()) >= used || used >= limit && len(recs) >= limit/gatherPart {
				return recs, true, nil // nobody else can come before some are written, or there is enough to do
			}
			select {
			case rec, ok = <-e.out:
			case <-timer.C:
				return recs, true, nil
			}
		}
		if !ok {
			return recs, false, nil
		}
		recs = append(recs, rec)
		weight += rec.weight()
	}
	return recs, true, nil
}

// thrice tries a step of a commit three times: both stores are idempotent.
func (e *Engine) thrice(ctx context.Context, step func() error) error {
	var err error
	for try := range 3 {
		if err = step(); err == nil {
			return nil
		}
		e.log.Error("commit failed", "try", try+1, "error", err)
		if ctx.Err() != nil {
			e.log.Warn("stopping without what a store did not take; it is fetched again", "records", e.uncommitted.Load())
			return err
		}
		time.Sleep(200 * time.Millisecond << try)
	}
	return err
}
