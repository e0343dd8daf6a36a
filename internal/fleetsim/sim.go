package fleetsim

import (
	"container/heap"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// Config of a simulation.
type Config struct {
	Seed    uint64
	Workers int
	Hosts   int
	Pages   int           // of each host
	Loss    float64       // share of calls, and of replies, that are lost
	Chaos   time.Duration // mean time between crashes, freezes and cuts; 0: none
	Cap     int64         // pages in all; 0: no limit
	Stop    time.Duration // when a person stops the crawl; 0: nobody does
	Delay   time.Duration // of the crawl, if it is more than the workers' own
	Log     func(string)  // told every event; optional

	// Settle returns when every other goroutine waits for a channel or a timer.
	// A simulation runs where time is virtual: in a bubble of testing/synctest,
	// whose Wait this is.
	Settle func()
}

// Result of a simulation that broke no promise.
type Result struct {
	Requests, Pages, Repeated, InDoubt int
	Crashes, Freezes, Cuts, Stops      int
	Takeovers                          int // of the supervision
	Parked                             int // URLs of hosts that were given up
	Late                               int // pages written by one who had lost the host
	Short                              int // pages that a capped crawl could have had and had not
	Status                             ledger.Status
	LostReplies, HeldBack              int
	Expired, Released                  int // leases that ended so
	Unfinished                         int // released with work left, when all had found their hosts
	Outcomes                           map[outcome.Outcome]int
	Events                             int
	Elapsed                            time.Duration // virtual
	Trace                              uint64
}

// The settings of every simulated fleet.
const (
	crawlID    = 1
	leaseTTL   = 6 * time.Second
	patience   = 2 * time.Second
	maxSkew    = 3 * time.Second
	delayMin   = 200 * time.Millisecond
	delayMax   = 500 * time.Millisecond
	perHost    = 2
	inHandMost = 24
	wireTime   = 2 * time.Millisecond
	commitIn   = 20 * time.Millisecond
	tooLong    = 2 * time.Hour
	chaosEnds  = 10 * time.Minute
	settling   = 10 * time.Second // for five new workers to find their hosts
	settleFor  = 40 * time.Second // for every worker to wake, hear that all is done and let go
	bossSilent = 5 * time.Second  // when another one takes the crawl up
	bossLooks  = time.Second      // how often a worker sees that it does not supervise any more
)

type event struct {
	at   time.Time
	seq  int
	w    *worker // whose event it is; nil: the world's
	what func() error
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; n := len(o) - 1; v := o[n]; *e = o[:n]; return v }

type sim struct {
	c       Config
	start   time.Time
	now     time.Time
	events  events
	seq     int
	rnd     *rand.Rand
	trace   hash.Hash64
	world   *world
	store   *shared
	books   *Books
	workers []*worker
	owner   map[*Member]*worker
	lives   int
	boss    *worker
	over    time.Time // when the crawl ended
	calm    bool      // nothing happens to anybody any more
	failure error
	res     Result
	checks

	mu   sync.Mutex
	made []*call // that nobody has taken yet
}

// Run simulates one crawl by a fleet, from its seeds to its end.
func Run(c Config) (*Result, error) {
	start := time.Now().Round(0)
	s := &sim{c: c, start: start, now: start, rnd: rand.New(rand.NewPCG(c.Seed, 3)), trace: fnv.New64a(),
		world: newWorld(c), books: NewBooks(), workers: make([]*worker, c.Workers), owner: map[*Member]*worker{}}
	s.store = newShared(func() time.Time { return s.now }, patience)
	s.store.watch = s
	for _, h := range s.world.hosts {
		if h.down {
			s.books.remember(h.name, s.now)
		}
	}
	s.checks = newChecks()
	defer s.stop()
	for i := range s.workers {
		w := s.newWorker(i)
		s.at(s.now.Add(time.Duration(s.rnd.IntN(800))*time.Millisecond), w, w.turn)
	}
	if c.Chaos > 0 {
		s.at(s.next(), nil, s.chaos)
	}
	s.at(s.now, nil, s.office)
	if c.Stop > 0 {
		s.at(s.now.Add(c.Stop), nil, s.person)
	}
	for s.over.IsZero() || s.now.Sub(s.over) < settleFor {
		if err := s.step(); err != nil {
			return nil, s.wrap(err)
		}
		if s.now.Sub(s.start) > tooLong {
			return nil, s.wrap(fmt.Errorf("not at its end: %s", s.stuck()))
		}
	}
	if err := s.atEnd(); err != nil {
		return nil, s.wrap(err)
	}
	s.res.Trace = s.trace.Sum64()
	return &s.res, nil
}

func (s *sim) wrap(err error) error {
	return fmt.Errorf("seed %d, event %d, %s after the start: %w", s.c.Seed, s.res.Events, s.now.Sub(s.start), err)
}

// fail notes a broken promise that was found where no error can be returned.
func (s *sim) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

func (s *sim) at(t time.Time, w *worker, f func() error) {
	s.seq++
	heap.Push(&s.events, event{t, s.seq, w, f})
}

// step lets the next event happen, and whatever its worker can do then.
func (s *sim) step() error {
	ev := heap.Pop(&s.events).(event)
	time.Sleep(time.Until(ev.at))
	s.now = ev.at
	s.settle() // whom the time has woken goes first
	if ev.w != nil {
		if ev.w.dead {
			return nil
		}
		if s.now.Before(ev.w.frozenUntil) { // it happens when the worker wakes
			s.at(ev.w.frozenUntil.Add(time.Duration(s.rnd.IntN(2000))*time.Microsecond), ev.w, ev.what)
			return nil
		}
	}
	s.res.Events++
	if err := ev.what(); err != nil {
		return err
	}
	s.settle()
	if s.failure != nil {
		return s.failure
	}
	if ev.w == nil || ev.w.dead || ev.w.leaving {
		return nil
	}
	if s.res.Events%20 == 0 {
		if err := ev.w.engine.Scheduler().Check(); err != nil {
			return fmt.Errorf("%s: %w", ev.w.name, err)
		}
	}
	return ev.w.pump()
}

// next is when something happens to somebody.
func (s *sim) next() time.Time {
	return s.now.Add(time.Duration(s.rnd.ExpFloat64() * float64(s.c.Chaos)))
}

func (s *sim) chaos() error {
	if s.calm || s.now.Sub(s.start) > chaosEnds {
		return nil
	}
	s.at(s.next(), nil, s.chaos)
	w := s.workers[s.rnd.IntN(len(s.workers))]
	what, long := s.rnd.IntN(10), time.Duration(100+s.rnd.IntN(12_000))*time.Millisecond
	if s.rnd.IntN(4) == 0 {
		long *= 3 // past whatever was waited for
	}
	switch {
	case w.dead || w.leaving || s.now.Before(w.frozenUntil):
	case what < 3:
		s.res.Crashes++
		w.crash()
	case what < 4:
		w.stop()
	case what < 7:
		s.note("freeze", fmt.Sprint(w.name, long))
		s.res.Freezes++
		w.frozenAt, w.frozenUntil = s.now, s.now.Add(long)
	default:
		s.note("cut", fmt.Sprint(w.name, long))
		s.res.Cuts++
		w.cutUntil = s.now.Add(long)
	}
	return nil
}

// stop ends all that still goes on.
func (s *sim) stop() {
	for _, w := range s.workers {
		if w.dead {
			continue
		}
		w.kill()
	}
}

func (s *sim) note(what, about string) {
	fmt.Fprintf(s.trace, "%d %s %s\n", s.now.Sub(s.start), what, about)
	if s.c.Log != nil {
		s.c.Log(fmt.Sprintf("%s %s %s", s.now.Sub(s.start), what, about))
	}
}
