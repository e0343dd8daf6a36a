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

// committer gathers records and writes them, one batch at a time. It ends
// when the channel is closed, with everything written.
func (e *Engine) committer(ctx context.Context) error {
	ctx, cancel := e.writing(ctx)
	defer cancel()
	batch := make([]*Record, 0, commitMost)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		rec, ok := <-e.out
		if !ok {
			return e.Commit(ctx, nil, true)
		}
		batch = append(batch[:0], rec)
		weight := rec.weight()
		timer.Reset(commitGather)
		for gathering := true; gathering && len(batch) < commitMost && weight < commitWeight; {
			select {
			case rec, ok := <-e.out:
				if !ok {
					gathering = false
					break
				}
				batch = append(batch, rec)
				weight += rec.weight()
				continue
			default:
			}
			if used, limit, _ := e.tokens.state(); len(batch) >= used || used >= limit {
				break // nobody else can come before these are written
			}
			select {
			case rec, ok := <-e.out:
				if !ok {
					gathering = false
					break
				}
				batch = append(batch, rec)
				weight += rec.weight()
			case <-timer.C:
				gathering = false
			}
		}
		if err := e.commitRetrying(ctx, batch); err != nil {
			return err
		}
	}
}

// commitRetrying tries a batch three times: both stores are idempotent.
func (e *Engine) commitRetrying(ctx context.Context, batch []*Record) error {
	var err error
	for try := range 3 {
		if err = e.Commit(ctx, batch, false); err == nil {
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
