package fleetsim

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"time"
)

// A worker does many things at once, each in a goroutine of its own: turns of
// its manager, commits, loads, the supervision of a crawl. In each call of a
// store a goroutine waits for the simulation, which lets one of them go on at a
// time. Where it waits for something else (Supervise, Ended and Leave have
// timers) it goes on by itself when the virtual time has come; then the next
// thing it does is a call.

// call is one that a goroutine waits in.
type call struct {
	w      *worker
	op     string
	effect func()
	reply  chan error
	dead   bool // its worker has crashed: it never returns
}

var errLine = errors.New("the line was cut")

// underLock are the calls that a scheduler makes while it keeps commits out.
var underLock = map[string]bool{"commit": true, "renew": true, "acquire": true, "release": true}

// call is the line between a worker and a store. The effect happens at the
// store, whatever has become of the worker by then; the reply comes when the
// worker runs.
func (w *worker) call(op string, effect func()) error {
	c := &call{w: w, op: op, effect: effect, reply: make(chan error)}
	w.s.mu.Lock()
	w.s.made = append(w.s.made, c)
	w.s.mu.Unlock()
	err := <-c.reply
	if c.dead {
		runtime.Goexit()
	}
	return err
}

// start begins something that calls stores, unless a call of the worker is
// under the lock; then it waits until that is over.
func (w *worker) start(what func()) {
	w.enter(func() {
		go what()
		w.s.settle()
	})
}

// enter lets somebody go on, at once or when the lock is free.
func (w *worker) enter(f func()) {
	if w.lock != nil {
		w.waiting = append(w.waiting, f)
		return
	}
	f()
}

// settle waits until everybody waits, and takes the calls that were made.
func (s *sim) settle() {
	for {
		s.c.Settle()
		s.mu.Lock()
		calls := s.made
		s.made = nil
		s.mu.Unlock()
		if len(calls) == 0 {
			return
		}
		// Two that were made at once came in any order.
		slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Or(cmp.Compare(a.w.name, b.w.name), cmp.Compare(a.op, b.op)) })
		for _, c := range calls {
			if w := c.w; s.now.Before(w.frozenUntil) && !w.dead { // its timers do not know
				w.calls = append(w.calls, c)
				s.at(s.now, w, func() error { s.carry(c); return nil })
				continue
			}
			s.carry(c)
		}
	}
}

// carry takes a call to the store and its reply back.
func (s *sim) carry(c *call) {
	w := c.w
	if w.dead {
		c.dead = true
		c.reply <- errLine
		return
	}
	if underLock[c.op] {
		w.lock = c
	}
	if !slices.Contains(w.calls, c) {
		w.calls = append(w.calls, c)
	}
	there, back := s.latency(), s.latency()
	lostThere, lostBack := s.rnd.Float64() < s.c.Loss, s.rnd.Float64() < s.c.Loss
	if w.calm || s.calm {
		lostThere, lostBack = false, false
	}
	s.at(s.now.Add(there), nil, func() error {
		lostThere = lostThere || w.isCut()
		if !lostThere {
			c.effect()
		}
		return nil
	})
	s.at(s.now.Add(there+back), w, func() error {
		var err error
		if lostThere || lostBack || w.isCut() {
			err = errLine
			s.note("lost", w.name+" "+c.op)
			if !lostThere {
				s.res.LostReplies++
			}
		}
		w.answer(c, err)
		return nil
	})
}

// answer lets a caller go on; the one under the lock at once, the others when
// the lock is free.
func (w *worker) answer(c *call, err error) {
	if w.lock != nil && w.lock != c {
		w.waiting = append(w.waiting, func() { w.answer(c, err) })
		return
	}
	w.lock = nil
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	c.reply <- err
	w.s.settle()
	for len(w.waiting) > 0 && w.lock == nil {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		next()
	}
}

// kill ends everything that the worker does, wherever it waits.
func (w *worker) kill() {
	w.dead, w.frozenAt = true, w.s.now
	if w.crawl != nil {
		w.crawl.Yield() // out of Supervise, not out of Ended
	}
	w.s.c.Settle()
	w.cancel()
	calls := w.calls
	w.calls, w.waiting, w.lock = nil, nil, nil
	for _, c := range calls {
		c.dead = true
		c.reply <- errLine
		w.s.settle()
	}
	w.s.settle()
}

func (w *worker) isCut() bool { return !w.calm && w.s.now.Before(w.cutUntil) }

// latency of one way: mostly short, now and then long.
func (s *sim) latency() time.Duration {
	d := 200*time.Microsecond + time.Duration(s.rnd.IntN(4000))*time.Microsecond
	if s.rnd.IntN(30) == 0 {
		d += time.Duration(s.rnd.IntN(700)) * time.Millisecond
	}
	return d
}
