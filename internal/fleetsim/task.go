package fleetsim

import (
	"errors"
	"runtime"
	"slices"
	"time"
)

// task is something a worker does that calls the store: a turn of its manager,
// a commit, a load. It has a goroutine of its own, but runs only while the
// simulation waits for it; in each call it waits for the simulation.
type task struct {
	w      *worker
	resume chan error
	paused chan bool // true: it waits in a call; false: it has ended
	inLock bool      // that call is made under the lock of the scheduler's commits
	dead   bool
}

var errLine = errors.New("the line was cut")

// underLock are the calls that a scheduler makes while it keeps commits out.
var underLock = map[string]bool{"commit": true, "renew": true, "acquire": true, "release": true}

// start begins a task, unless one of the worker's is under the lock; then it
// waits until that is over.
func (w *worker) start(what func()) {
	t := &task{w: w, resume: make(chan error), paused: make(chan bool)}
	w.enter(t, func() {
		w.tasks = append(w.tasks, t)
		go func() {
			defer func() { t.paused <- false }()
			<-t.resume
			if !t.dead {
				what()
			}
		}()
		w.run(t, nil)
	})
}

// enter lets a task go on, at once or when the lock is free.
func (w *worker) enter(t *task, f func()) {
	if w.lock != nil && w.lock != t {
		w.waiting = append(w.waiting, func() { w.enter(t, f) })
		return
	}
	f()
}

// run lets a task run up to its next call or its end.
func (w *worker) run(t *task, reply error) {
	w.s.running = t
	t.resume <- reply
	inCall := <-t.paused
	w.s.running = nil
	w.lock = nil
	if !inCall {
		w.tasks = slices.DeleteFunc(w.tasks, func(o *task) bool { return o == t })
	} else if t.inLock {
		w.lock = t
		return
	}
	waiting := w.waiting
	w.waiting = nil
	for _, f := range waiting {
		f()
	}
}

// kill ends a task in the middle of its call.
func (t *task) kill() {
	t.dead = true
	t.resume <- errLine
	<-t.paused
}

// call is the line between a worker and the store. The effect happens at the
// store, whatever has become of the worker by then; the reply comes when the
// worker runs.
func (w *worker) call(op string, effect func()) error {
	s, t := w.s, w.s.running
	there, back := s.latency(), s.latency()
	lostThere, lostBack := s.rnd.Float64() < s.c.Loss, s.rnd.Float64() < s.c.Loss
	if w.calm || s.calm {
		lostThere, lostBack = false, false
	}
	sent := s.now
	s.at(sent.Add(there), nil, func() error {
		lostThere = lostThere || w.isCut()
		if !lostThere {
			effect()
		}
		return nil
	})
	s.at(sent.Add(there+back), w, func() error {
		var err error
		if lostThere || lostBack || w.isCut() {
			err = errLine
			s.note("lost", w.name+" "+op)
			if !lostThere {
				s.res.LostReplies++
			}
		}
		w.enter(t, func() { w.run(t, err) })
		return nil
	})
	t.inLock = underLock[op]
	t.paused <- true
	err := <-t.resume
	if t.dead {
		runtime.Goexit()
	}
	return err
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
