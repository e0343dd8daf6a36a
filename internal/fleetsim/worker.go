package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/fleet"
	"tiptoe/internal/frontier"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// worker is one process: a real engine, scheduler and manager.
type worker struct {
	s       *sim
	slot    int
	name    string
	skew    time.Duration // of its wall clock
	member  *Member
	engine  *crawl.Engine
	manager *fleet.Manager
	crawl   *crawl.Run // if it supervises it
	ctx     context.Context
	cancel  context.CancelFunc

	dead        bool
	leaving     bool // was told to stop
	calm        bool // its line is good: it is being set up
	frozenAt    time.Time
	frozenUntil time.Time
	cutUntil    time.Time

	calls   []*call
	lock    *call    // the one of them that is made under the commits' lock
	waiting []func() // for the lock

	inHand     int
	out        []*crawl.Record
	committing bool
	wake       time.Time
}

// cancelled makes the engine report a store that does not answer instead of
// sleeping on it; the simulation repeats the step in its own time.
var cancelled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (s *sim) newWorker(slot int) *worker {
	s.lives++
	w := &worker{s: s, slot: slot, name: fmt.Sprintf("w%d-%d", slot, s.lives)}
	w.skew = time.Duration(s.rnd.Int64N(int64(2*maxSkew))) - maxSkew
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.member = s.store.join(now)
	w.member.line = w.call
	s.owner[w.member] = w
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	books := &desk{s.books, w}
	w.manager = fleet.New(fleet.Config{Board: w.member, Ledger: books, Log: log, Now: w.wall, Worker: w.name, Host: "sim",
		TTL: leaseTTL, Until: func(t time.Time) time.Duration { return t.Sub(now()) }})
	rnd := rand.New(rand.NewPCG(s.c.Seed, uint64(100+s.lives)))
	w.engine = crawl.New(crawl.Config{Store: w.member, Ledger: books, Log: log, Now: w.wall, Rand: rnd.Float64,
		Workers: inHandMost, Shards: 1, Fleet: w.manager, RestartedAt: w.wall(),
		RestartRules: politeness.Rules{DelayMin: delayMin, DelayMax: delayMax}})
	w.manager.Bind(w.engine)
	s.workers[slot] = w
	return w
}

// now is the virtual time, as a clock on the wall shows it.
func now() time.Time { return time.Now().Round(0) }

func (w *worker) wall() time.Time { return now().Add(w.skew) }

// turn is one turn of the manager, and the next one half a second later.
func (w *worker) turn() error {
	if w.leaving && w.idle() {
		w.handBack()
		return nil
	}
	w.start(func() {
		err := w.manager.Turn(w.ctx)
		if w.dead {
			return
		}
		if err != nil {
			w.s.note("turn failed", w.name)
		}
		w.s.at(w.s.now.Add(500*time.Millisecond), w, w.turn)
	})
	return nil
}

// pump hands out everything that is due, as the dispatcher would.
func (w *worker) pump() error {
	sched := w.engine.Scheduler()
	for w.inHand < inHandMost {
		work, at := sched.Next(0, w.wall())
		if work.Kind == frontier.Nothing {
			w.wakeAt(at)
			return nil
		}
		w.begin(work)
	}
	return nil
}

func (w *worker) wakeAt(wall time.Time) {
	if wall.IsZero() {
		return
	}
	at := wall.Add(-w.skew)
	if at.Before(w.s.now) {
		at = w.s.now
	}
	if w.wake.After(w.s.now) && !at.Before(w.wake) {
		return
	}
	w.wake = at
	w.s.at(at, w, func() error { return nil })
}

func (w *worker) begin(work frontier.Work) {
	w.inHand++
	switch work.Kind {
	case frontier.Load:
		w.load(work)
	case frontier.Refuse:
		w.s.note("refuse", w.name+" "+work.Entry.URL)
		w.record(w.engine.Refuse(&work))
	default:
		url := work.Entry.URL
		if work.Kind == frontier.Robots {
			url = work.Task.URL
		}
		dial := wireTime + time.Duration(w.s.rnd.IntN(30))*time.Millisecond
		if w.s.rnd.IntN(10) == 0 {
			dial += time.Duration(w.s.rnd.IntN(1500)) * time.Millisecond
		}
		w.s.at(w.s.now.Add(dial), w, func() error { return w.wire(work, url) })
	}
}

// load asks the store, until it answers.
func (w *worker) load(work frontier.Work) {
	w.start(func() {
		if err := w.engine.Scheduler().Load(context.Background(), work, w.wall); err != nil {
			w.s.at(w.s.now.Add(100*time.Millisecond), w, func() error { w.load(work); return nil })
			return
		}
		w.inHand--
	})
}

// wire is the moment at which a request is written, if it still may be.
func (w *worker) wire(work frontier.Work, url string) error {
	s := w.s
	sched := w.engine.Scheduler()
	if !sched.Confirm(work.Permit, w.wall()) {
		s.note("held back", w.name+" "+url)
		s.res.HeldBack++
		w.record(w.engine.Answer(&work, &crawl.Hop{Started: w.wall(), Ended: w.wall(),
			Err: &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: errors.New("held back")}}))
		return nil
	}
	s.note("request", w.name+" "+url)
	sched.OnWire(work.Permit, w.wall())
	h := s.world.hosts[weburl.FromCanonical(url).Hostname()]
	robots := work.Kind == frontier.Robots
	r, err := s.arrived(w, h, url, robots)
	if err != nil {
		return err
	}
	ans := s.world.serve(h, url, s.now)
	r.final = ans.final()
	started := w.wall()
	took := h.latency/2 + time.Duration(s.rnd.Int64N(int64(h.latency)))
	s.at(s.now.Add(took), nil, func() error { delete(s.ward(h.name).inFlight, r); return nil })
	s.at(s.now.Add(took), w, func() error {
		s.note("answer", fmt.Sprint(w.name, " ", url, " ", ans.status))
		s.heard(w, h, r, &ans)
		now := w.wall()
		w.record(w.engine.Answer(&work, &crawl.Hop{Started: started, Ended: now, Status: ans.status, Header: ans.header, Body: ans.body,
			Size: int64(len(ans.body)), WireSize: int64(len(ans.body)),
			Timing: fetch.Timing{Wire: started, TTFB: now.Sub(started), Total: now.Sub(started)}}))
		return nil
	})
	return nil
}

func (w *worker) record(r *crawl.Record) {
	w.out = append(w.out, r)
	w.commitSoon()
}

func (w *worker) commitSoon() {
	if w.committing || len(w.out) == 0 {
		return
	}
	w.committing = true
	wait := commitIn
	if w.s.rnd.IntN(4) == 0 { // a slow ledger
		wait += time.Duration(w.s.rnd.IntN(1000)) * time.Millisecond
	}
	w.s.at(w.s.now.Add(wait), w, func() error {
		recs := w.out
		w.out = nil
		w.commit(recs)
		return nil
	})
}

// commit writes records, until the store answers.
func (w *worker) commit(recs []*crawl.Record) {
	w.start(func() {
		if err := w.engine.Commit(cancelled, recs, false); err != nil {
			w.s.at(w.s.now.Add(200*time.Millisecond), w, func() error { w.commit(recs); return nil })
			return
		}
		w.inHand -= len(recs)
		w.committing = false
		w.commitSoon()
	})
}

// crash loses everything but what the store and the ledger have.
func (w *worker) crash() {
	w.s.note("crash", w.name)
	w.replace()
}

// replace ends a worker's life; another begins in its place.
func (w *worker) replace() {
	s := w.s
	w.kill()
	s.at(s.now.Add(time.Duration(200+s.rnd.IntN(3000))*time.Millisecond), nil, func() error {
		next := s.newWorker(w.slot)
		s.note("start", next.name)
		return next.turn()
	})
}

// stop is what a signal to stop does: no more requests, and when nothing is in
// hand the hosts are handed back.
func (w *worker) stop() {
	if w == w.s.boss {
		return
	}
	w.s.note("stop", w.name)
	w.s.res.Stops++
	w.leaving = true
	w.manager.Leaving()
}

func (w *worker) idle() bool {
	return w.inHand == 0 && !w.committing && w.engine.Scheduler().InFlight() == 0
}

func (w *worker) handBack() {
	w.start(func() {
		err := w.manager.HandBack(w.ctx)
		if w.dead {
			return
		}
		if err == nil {
			for g, h := range w.s.store.holders {
				if w.member.leases[g] == h.token {
					w.s.fail(fmt.Errorf("%s has handed everything back and holds %s", w.name, g))
				}
			}
		}
		w.s.at(w.s.now, nil, func() error { w.replace(); return nil })
	})
}
