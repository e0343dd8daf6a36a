package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// Run takes part until ctx ends, then gives everything back.
func (m *Manager) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.wake:
		case <-m.cfg.Board.Changed():
			m.news = true
		}
		if ctx.Err() != nil {
			break
		}
		// Once a turn takes longer than half a lease, hosts begin to wait for it.
		stop := crawl.Late(m.cfg.TTL/2, func() {
			what := fmt.Sprintf("the fleet's store does not answer, or only slowly: nothing was renewed for %s", m.cfg.TTL/2)
			m.silence.Store(&what)
		})
		err := m.Turn(ctx)
		stop()
		if err != nil && ctx.Err() == nil {
			if !m.failing {
				m.log.Warn("the fleet's store does not answer; nothing new is fetched until it does", "error", err)
			}
			m.failing = true
			what := "the fleet's store does not answer" // where it is belongs in the log: tenants read this
			m.silence.Store(&what)
		} else {
			m.silence.Store(nil)
			if m.failing {
				m.log.Info("the fleet's store answers again")
			}
			m.failing = false
		}
		timer.Reset(m.cfg.Turn)
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return m.HandBack(leave)
}

// Turn does everything there is to do once. What may have to wait for the ledger
// comes last and has its time, so that hosts that came free do not wait for it.
func (m *Manager) Turn(ctx context.Context) error {
	now := m.cfg.Now()
	ended, err := m.quickly(ctx, now)
	if m.leaving.Load() {
		m.putBack()
	}
	// Also beside an error: what leases brought is not told again.
	if err = errors.Join(err, m.know(ctx)); err != nil {
		return err
	}
	late := m.cfg.Now().Add(m.patience())
	for _, e := range ended {
		if m.cfg.Now().After(late) {
			break // the next turn goes on: leases must be renewed
		}
		if err := m.leave(ctx, e.run, e.cut); err != nil {
			return fmt.Errorf("leave a crawl: %w", err)
		}
	}
	return nil
}

// quickly is the part of a turn that waits for the fleet's store alone. ended
// are crawls that this worker is to leave.
func (m *Manager) quickly(ctx context.Context, now time.Time) (ended []over, err error) {
	if m.overdue(now) {
		m.watch = now.Add(m.cfg.TTL/10 + 2*m.cfg.Turn)
	}
	if err := m.heartbeat(ctx, now); err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	// Whoever was silent may have been counted out: it says that it is there
	// before it works for anybody, and then looks whether the crawls are on and
	// what it may do: its leases go on with the renewal.
	if now.Sub(m.told) > m.cfg.TTL/2 {
		if err := m.report(ctx); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if _, err := m.readBoard(ctx); err != nil {
			return nil, fmt.Errorf("read the board: %w", err)
		}
	}
	// News come by themselves; looking without them covers those that got lost,
	// and leases that run out, of which nobody tells.
	look := m.news || now.Before(m.watch) || now.Sub(m.renewed) >= lookAnyway || now.Sub(m.renewed) >= m.cfg.TTL/3
	m.news = false
	if look {
		if err := m.renew(ctx, now); err != nil {
			return nil, fmt.Errorf("renew leases: %w", err)
		}
		m.renewed = now
	}
	// Before the lease: nothing is begun for a crawl that is over or held.
	if ended, err = m.readBoard(ctx); err != nil {
		return nil, fmt.Errorf("read the board: %w", err)
	}
	if look && !m.leaving.Load() {
		if err := m.lease(ctx); err != nil {
			return nil, fmt.Errorf("lease hosts: %w", err)
		}
	}
	if err := m.giveBack(ctx, now); err != nil {
		return nil, fmt.Errorf("give leases back: %w", err)
	}
	if err := m.budgets(ctx); err != nil {
		return nil, fmt.Errorf("share budgets: %w", err)
	}
	if err := m.report(ctx); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return ended, nil
}

// silentFor is from when on a worker is taken for dead: the leases that it has
// may run out from now on, for it renewed them at most a look before its last
// heartbeat.
func (m *Manager) silentFor() time.Duration {
	return max(m.cfg.TTL-lookAnyway-2*m.cfg.Turn, m.cfg.TTL/2)
}

// overdue reports whether another worker is silent for so long. One that was
// told to stop is off the list before.
func (m *Manager) overdue(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.workers, func(w frontier.Worker) bool {
		return w.ID != m.cfg.Worker && w.Silent+now.Sub(m.readAt) >= m.silentFor()
	})
}

// patience is how long a turn may wait for the ledger: leases must be renewed
// meanwhile, and taken when they run out.
func (m *Manager) patience() time.Duration {
	if m.cfg.Now().Before(m.watch) {
		return min(m.cfg.Turn, m.cfg.TTL/6)
	}
	return m.cfg.TTL / 6
}

func (m *Manager) heartbeat(ctx context.Context, now time.Time) error {
	if !m.beatAt.IsZero() && now.Sub(m.beatAt) < m.cfg.TTL/10 && !now.Before(m.watch) {
		return nil
	}
	sent := m.cfg.Now()
	roll, err := m.cfg.Board.Heartbeat(ctx, m.self(), m.cfg.TTL)
	if err != nil {
		return err
	}
	m.clock.heard(sent, m.cfg.Now(), roll.At)
	m.number.Store(int64(roll.Number))
	m.beatAt = now
	names := []string{m.cfg.Worker}
	for _, w := range roll.Live {
		if w.ID != m.cfg.Worker && w.Silent < m.silentFor() { // or its hosts would be left to it when they come free
			names = append(names, w.ID)
		}
	}
	slices.Sort(names)
	m.mu.Lock()
	m.news = m.news || !slices.Equal(m.live, names) // hosts of one that is gone may be ours now
	m.workers, m.live, m.readAt = roll.Live, names, now
	m.mu.Unlock()
	return nil
}

func (m *Manager) prefers(group string) bool {
	m.mu.Lock()
	live := m.live
	m.mu.Unlock()
	return frontier.Prefers(m.cfg.Worker, live, frontier.DomainOfGroup(group))
}

// renew extends the leases, forgets those that were lost and hears what others
// added.
func (m *Manager) renew(ctx context.Context, now time.Time) error {
	s := m.engine.Scheduler()
	err := s.Exclusive(func() error {
		lost, news, err := m.cfg.Board.Renew(ctx, m.cfg.Worker, m.cfg.TTL)
		if len(lost) > 0 {
			m.log.Warn("leases were lost; others have these hosts now", "hosts", len(lost))
			s.Drop(lost, now)
		}
		m.unmet.note(s.Refresh(news, now), news)
		return err // what came beside it is not told again
	})
	s.Renewed(now)
	return err
}

// unmet are crawls of which leases brought work and that are not open here, and
// those leases, with that work alone: what they say of other crawls is old by
// the time that these are joined.
type unmet struct {
	crawls []frontier.CrawlID
	leases []frontier.Lease
}

func (u *unmet) note(crawls []frontier.CrawlID, leases []frontier.Lease) {
	u.crawls = append(u.crawls, crawls...)
	for _, l := range leases {
		l.Queues = slices.DeleteFunc(slices.Clone(l.Queues), func(q frontier.Queue) bool { return !slices.Contains(crawls, q.Crawl) })
		if len(l.Queues) > 0 {
			u.leases = append(u.leases, l)
		}
	}
}

// putBack gives up what leases brought of crawls that are not open. The groups
// come again.
func (m *Manager) putBack() {
	m.engine.Scheduler().Drain(names(m.unmet.leases), m.cfg.Now())
	m.unmet = unmet{}
}

// know joins crawls that leases brought work of, and takes that work in. If a
// store does not answer, the groups are given back, and come again.
func (m *Manager) know(ctx context.Context) error {
	if len(m.unmet.crawls) == 0 {
		return nil
	}
	s := m.engine.Scheduler()
	opened, err := m.joinAll(ctx, m.unmet.crawls)
	if err != nil {
		m.putBack()
		return fmt.Errorf("join crawls: %w", err)
	}
	leases := m.unmet.leases
	m.unmet = unmet{}
	if opened {
		return s.Exclusive(func() error { s.Refresh(leases, m.cfg.Now()); return nil })
	}
	return nil
}

// joinAll joins those crawls that are on. One that has ended or is held leaves
// its queue behind; when it goes on it is announced, and its groups come with
// the next renewal. One that nobody stands by is not offered until then, or its
// hosts would be leased in vain again and again.
func (m *Manager) joinAll(ctx context.Context, ids []frontier.CrawlID) (opened bool, err error) {
	board, err := m.cfg.Board.Crawls(ctx)
	if err != nil {
		return false, err
	}
	slices.Sort(ids)
	late := m.cfg.Now().Add(m.patience())
	for _, id := range slices.Compact(ids) {
		if m.cfg.Now().After(late) {
			return opened, errors.New("the ledger takes too long") // leases must be renewed
		}
		at := slices.IndexFunc(board, func(c frontier.Announced) bool { return c.ID == int64(id) })
		alone := at < 0 || m.stale(&board[at])
		on := !alone && !board[at].Held
		m.mu.Lock()
		_, have := m.joined[int64(id)]
		_, mine := m.supervised[int64(id)]
		_, soon := m.taking[int64(id)]
		if on = on && !have && !mine && !soon; on {
			m.joining = int64(id)
		}
		m.mu.Unlock()
		opened = opened || (have || mine) && !soon // since the leases were counted
		if alone && !mine && !soon {
			if err := m.shelve(ctx, int64(id)); err != nil {
				return opened, err
			}
		}
		if on {
			ok, err := m.join(ctx, int64(id))
			if err != nil {
				return opened, err
			}
			opened = opened || ok
		}
	}
	return opened, nil
}

// shelve takes a crawl's work out of sight, once in a while: its hosts may come
// with those of others, too.
func (m *Manager) shelve(ctx context.Context, id int64) error {
	now := m.cfg.Now()
	maps.DeleteFunc(m.shelved, func(_ int64, at time.Time) bool { return now.Sub(at) > m.cfg.TTL })
	if _, done := m.shelved[id]; done {
		return nil
	}
	if err := m.cfg.Board.Shelve(ctx, id); err != nil {
		return err
	}
	m.shelved[id] = now
	m.log.Info("nobody stands by a crawl; its hosts are left alone until somebody does", "crawl", id)
	return nil
}

// join opens a crawl that another process supervises.
func (m *Manager) join(ctx context.Context, id int64) (ok bool, err error) {
	var run *crawl.Run
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.joining = 0; run != nil {
			m.joined[id] = run
		}
		m.free(id)
	}()
	on, err := m.enlist(ctx, id)
	if err != nil || !on {
		return false, err
	}
	defer func() {
		if run == nil { // or its end would wait for us
			err = errors.Join(err, m.unreport(ctx, id))
		}
	}()
	soon, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	row, err := m.cfg.Ledger.Crawl(soon, id)
	if errors.Is(err, ledger.ErrNoCrawl) {
		m.log.Warn("work of a crawl that the ledger does not know is left alone", "crawl", id, "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if run, err = m.engine.Join(soon, row); err != nil {
		return false, fmt.Errorf("join crawl %d: %w", id, err)
	}
	m.log.Info("joined a crawl", "crawl", id, "site", row.Seeds[0])
	return true, nil
}

// lease takes what is free, and what robots.txt files lead to.
func (m *Manager) lease(ctx context.Context) (err error) {
	s := m.engine.Scheduler()
	take := func(got ...frontier.Lease) {
		m.unmet.note(s.Take(got, m.cfg.Now()), got)
		for _, l := range got {
			if !m.prefers(l.Group) { // it was free for long
				m.lent[l.Group] = m.cfg.Now().Add(lentFor)
			}
		}
		if m.leaving.Load() {
			s.Drain(names(got), m.cfg.Now())
		}
	}
	_, room := s.Leased()
	if n := min(room, m.cfg.Groups); n > 0 {
		err = s.Exclusive(func() error {
			got, err := m.cfg.Board.Acquire(ctx, m.cfg.Worker, m.cfg.TTL, n, m.prefers)
			take(got...)
			return err
		})
	}
	for _, group := range s.Wanted() {
		if err != nil {
			break
		}
		err = s.Exclusive(func() error {
			l, ok, err := m.cfg.Board.Claim(ctx, m.cfg.Worker, m.cfg.TTL, group)
			if ok {
				take(l)
			}
			return err
		})
	}
	return err
}

// giveBack releases what has no work and what another worker should have.
func (m *Manager) giveBack(ctx context.Context, now time.Time) error {
	s := m.engine.Scheduler()
	s.Drain(m.misplaced(s.Movable()), now)
	idle := now.Add(-idleFor)
	drained := s.Drained(idle)
	if len(drained) > 0 {
		m.engine.NoteHosts() // for people, in the ledger; the committer writes it
	}
	return m.release(ctx, drained, idle)
}

// movedAtOnce bounds how many groups change hands in one turn, so that a new
// worker does not stop the others.
const movedAtOnce = 64

// lentFor is how long a group stays with a worker that took it because nobody
// else did: given back at once it would be free for long again.
const lentFor = time.Minute

func (m *Manager) misplaced(held []frontier.Lease) (groups []string) {
	now := m.cfg.Now()
	maps.DeleteFunc(m.lent, func(_ string, until time.Time) bool { return now.After(until) })
	for _, l := range held {
		if _, lent := m.lent[l.Group]; !lent && !m.prefers(l.Group) {
			groups = append(groups, l.Group)
		}
		if len(groups) == movedAtOnce {
			break
		}
	}
	return groups
}

// release gives drained groups back, but for those that have work by the time
// that their clocks are written.
func (m *Manager) release(ctx context.Context, leases []frontier.Lease, idle time.Time) error {
	if len(leases) == 0 {
		return nil
	}
	s := m.engine.Scheduler()
	// Their clocks first: the next owner waits for what this one owes.
	if _, err := s.Commit(ctx, &frontier.Batch{}, m.cfg.Now()); err != nil {
		return err
	}
	return s.Exclusive(func() error {
		return m.cfg.Board.Release(ctx, s.LetGo(leases, idle))
	})
}

// HandBack returns all leases at the end; by then nothing is in flight. A group of
// which something could not be committed is left to its lease's end.
func (m *Manager) HandBack(ctx context.Context) error {
	m.Leaving()
	held := m.engine.Scheduler().Held()
	for _, r := range m.runs() {
		_ = m.handIn(ctx, r) // or they stay spent
		_ = m.unreport(ctx, r.ID)
	}
	// For people, in the ledger. Without an answer they miss what was learned
	// last; a stop must not wait for it.
	soon, cancel := context.WithTimeout(ctx, min(m.cfg.TTL/6, crawl.Grace))
	defer cancel()
	if err := m.engine.WriteHosts(soon); err != nil {
		m.log.Warn("what was learned about hosts is not in the ledger yet", "error", err)
	}
	if err := m.release(ctx, held, m.cfg.Now()); err != nil {
		return err
	}
	_, err := m.cfg.Board.Heartbeat(ctx, frontier.Worker{ID: m.cfg.Worker}, 0)
	return err
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

func names(leases []frontier.Lease) []string {
	groups := make([]string, len(leases))
	for i, l := range leases {
		groups[i] = l.Group
	}
	return groups
}
