package fleet

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// Ledger is what a worker needs of the record to join a crawl.
type Ledger interface {
	Crawl(ctx context.Context, id int64) (ledger.Crawl, error)
}

// Config of a Manager.
type Config struct {
	Board  frontier.Board
	Ledger Ledger
	Log    *slog.Logger
	Now    func() time.Time
	Until  func(time.Time) time.Duration // left until a deadline; default: by the clock that nobody sets and by Now, whichever shows less

	Worker string        // name of this process, new at each start
	Host   string        // the machine's name
	TTL    time.Duration // of leases; default 30 s
	Turn   time.Duration // how often it looks; default 500 ms
	Groups int           // leased in one turn at most; default 256
}

// The defaults of SPEC §10.
const (
	DefaultTTL  = 30 * time.Second
	defaultTurn = 500 * time.Millisecond
	// idleFor is how long a group without work is kept: its next link is
	// often only a page away.
	idleFor = 3 * time.Second
	// countEvery is how often the entries of a crawl are counted that somebody
	// works for.
	countEvery = 2 * time.Second
	// leastStale is how old an announcement may at least be: a server that is
	// started again, or another one, goes on with a crawl meanwhile.
	leastStale = 30 * time.Second
	// lookAnyway is how long the store is trusted to have told all news.
	lookAnyway = 2 * time.Second
	// reportsLast is how long a report stands in turns: a worker that misses
	// so many is not counted any more.
	reportsLast = 10
	// picturesEvery is how often workers show people what their hosts do: less
	// often than they report, because it is ten times as long.
	picturesEvery = 2 * time.Second
)

// Manager is one worker's part in a fleet. It is the engine's crawl.Fleet.
type Manager struct {
	cfg    Config
	log    *slog.Logger
	engine *crawl.Engine
	clock  ahead

	trouble atomic.Pointer[string] // what the engine waits for
	silence atomic.Pointer[string] // what Run waits for
	started time.Time
	number  atomic.Int64 // that the board gave it
	leaving atomic.Bool  // nothing new is begun here

	mu         sync.Mutex
	supervised map[int64]*supervision
	joined     map[int64]*crawl.Run
	taking     map[int64]chan struct{} // about to be supervised; closed when it is not joined any more
	yielded    map[int64]bool          // joined, and to be left
	joining    int64                   // being opened just now, by Run's goroutine
	live       []string
	workers    []frontier.Worker
	readAt     time.Time // when workers was read; zero before the first heartbeat
	wake       chan struct{}

	// Of Run's goroutine.
	news    bool      // the store has something for Renew or Acquire
	watch   time.Time // until then a worker that fell silent may leave hosts behind
	unmet   unmet
	shelved map[int64]time.Time  // crawls that nobody stands by, since when they are not offered
	lent    map[string]time.Time // groups of workers that had no room for them, and until when they stay
	renewed time.Time
	beatAt  time.Time
	told    time.Time // when its reports were last sent
	shownAt time.Time // when pictures were last sent and gathered
	failing bool
}

// supervision is a crawl that this process watches over.
type supervision struct {
	run    *crawl.Run
	state  frontier.Announced
	last   *crawl.Shared
	heard  map[string]heard // by worker
	totals totals
	slots  division // of its requests in flight, if they are bounded

	announced time.Time // when the board last took what was said of it
	counted   time.Time // when it was last asked what is to do
	same      time.Time // since when all reports add up to the same

	pictures map[string]crawl.Picture // of the others, by worker
}

// heard is when a worker's report last said something new.
type heard struct {
	said time.Time // by the worker's clock
	at   time.Time // by ours
}

// New prepares a worker. Bind gives it its engine; nothing runs before Run.
func New(cfg Config) *Manager {
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Until == nil {
		// The monotonic clock stands still while the machine is suspended. A
		// clock on the wall that is set forward costs a wait for the next renewal.
		cfg.Until = func(d time.Time) time.Duration {
			return min(time.Until(d), d.Round(0).Sub(cfg.Now().Round(0)))
		}
	}
	if cfg.Turn <= 0 {
		cfg.Turn = defaultTurn
	}
	if cfg.Groups <= 0 {
		cfg.Groups = 256
	}
	return &Manager{cfg: cfg, log: cfg.Log, started: cfg.Now(), supervised: make(map[int64]*supervision),
		joined: make(map[int64]*crawl.Run), shelved: make(map[int64]time.Time), lent: make(map[string]time.Time), taking: make(map[int64]chan struct{}), yielded: make(map[int64]bool), live: []string{cfg.Worker}, wake: make(chan struct{}, 1)}
}

// Bind gives the manager the engine that asks it.
func (m *Manager) Bind(e *crawl.Engine) { m.engine = e }

// Worker is this process's name.
func (m *Manager) Worker() string { return m.cfg.Worker }

// Bits tell its permits from those of others: the board numbers the workers,
// before they lease anything.
func (m *Manager) Bits() uint16 { return uint16(m.number.Load()) }

// Ahead is how far the store's clock is ahead of ours, and how far off that may
// be: at most half of what the quickest heartbeat took.
func (m *Manager) Ahead() (by, give time.Duration) { return m.clock.look(m.cfg.Now()) }

// Held reports whether a group's lease is safe to act on now.
func (m *Manager) Held(group string) bool {
	d := m.cfg.Board.Deadline(group)
	return !d.IsZero() && m.cfg.Until(d) > 0
}

// Trouble notes what the engine waits for.
func (m *Manager) Trouble(what string) { m.trouble.Store(&what) }

// Waiting is why nothing is fetched; empty while all is well.
func (m *Manager) Waiting() string {
	for _, t := range []*atomic.Pointer[string]{&m.silence, &m.trouble} {
		if what := t.Load(); what != nil && *what != "" {
			return *what
		}
	}
	return ""
}

// Workers lists who is there. Of this process it knows how it is now, of the
// others how they were at their last heartbeats, as the store had them at the
// time that is returned: zero if it was never asked.
func (m *Manager) Workers() (list []frontier.Worker, at time.Time) {
	self := m.self()
	m.mu.Lock()
	list, at = slices.Clone(m.workers), m.readAt
	m.mu.Unlock()
	i, known := slices.BinarySearchFunc(list, self.ID, func(w frontier.Worker, id string) int { return cmp.Compare(w.ID, id) })
	if known {
		list[i] = self
		return list, at
	}
	return slices.Insert(list, i, self), at
}

// self is this process as others see it.
func (m *Manager) self() frontier.Worker {
	held, _ := m.engine.Scheduler().Leased()
	return frontier.Worker{ID: m.cfg.Worker, Host: m.cfg.Host, Started: m.started, Hosts: held, Rate: m.engine.Rate(), InFlight: m.engine.Scheduler().InFlight(), Waiting: m.Waiting()}
}

// TTL is how long leases last, and how long a silent worker stays in the list.
func (m *Manager) TTL() time.Duration { return m.cfg.TTL }

func (m *Manager) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Leaving begins no more requests, for this process is about to end: what it has
// is drained and given back, and nothing is leased or joined any more. What is
// leased at this moment is drained by who leases it.
func (m *Manager) Leaving() {
	m.leaving.Store(true)
	s := m.engine.Scheduler()
	s.Drain(names(s.Held()), m.cfg.Now())
}

func (m *Manager) runs() []*crawl.Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*crawl.Run
	for _, s := range m.supervised {
		list = append(list, s.run)
	}
	for _, r := range m.joined {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *crawl.Run) int { return int(a.ID - b.ID) })
	return list
}
