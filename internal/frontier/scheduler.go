package frontier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/politeness"
)

// Options of a Scheduler; zero values mean the defaults of SPEC §8.
type Options struct {
	Shards      int // default 1
	RobotSlots  int // robots fetches at once, default 64
	MemoryURLs  int // entries held in memory, default 5,000,000
	ReadyHosts  int // hosts held in memory with work, default 500,000
	IdleHosts   int // hosts without work that stay in memory, default 10,000
	HalfLife    time.Duration
	Rand        func() float64 // uniform in [0, 1); called from many goroutines
	Now         func() time.Time
	RestartedAt time.Time // set when an earlier process may have left requests without a trace

	// RestartRules give the base gap owed after a restart.
	RestartRules politeness.Rules

	// Held reports whether a group's lease is safe to act on at this very
	// moment; nil if there are no leases because everything is ours. It is
	// asked before each grant and again before the request is written, under
	// the shard's lock.
	Held func(group string) bool

	// WorkerBits tell the permits of processes apart that share a ledger; nil
	// if there is only one.
	WorkerBits func() uint16

	// Ahead is how far the store's clock is ahead of Now, and how far off that
	// may be; nil if nobody else reads what is written. Times are stored by the
	// store's clock, so that the next owner of a group waits for what is owed
	// whatever its own clock shows.
	Ahead func() (by, give time.Duration)

	// Gone is told that the store, which others use too, has not got a crawl
	// any more; what a commit said of it is left out. Optional, called without
	// locks but the one of commits.
	Gone func(CrawlID)

	// Knowledge returns what earlier crawls learned about a group.
	Knowledge func(ctx context.Context, group string) (politeness.State, error)

	// Remembered is told what a group starts from, as it was stored and as
	// its age leaves it; optional, called without locks.
	Remembered func(group string, stored, now politeness.State)
}

// Scheduler decides what is fetched next. See the package comment.
type Scheduler struct {
	store  Store
	opt    Options
	shards []*shard
	names  []string
	rnd    func() float64
	now    func() time.Time
	began  time.Time

	// commits is held for writing from the store's commit to its
	// announcement, and for reading while a load is applied.
	commits   sync.RWMutex
	unwritten []Note // of a commit that failed
	doubts    doubts // of the same

	mu     sync.Mutex
	crawls map[CrawlID]*Crawl

	permits     atomic.Uint64
	inFlight    atomic.Int64
	robotSlots  atomic.Int64
	slotWaiters atomic.Int64
	fullWaiters atomic.Int64
	yielders    atomic.Int64
	unshared    Share // of crawls that have none
}

// New returns a scheduler over a store.
func New(store Store, opt Options) *Scheduler {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&opt.Shards, 1)
	def(&opt.RobotSlots, defaultRobotSlots)
	def(&opt.MemoryURLs, 5_000_000)
	def(&opt.ReadyHosts, 500_000)
	def(&opt.IdleHosts, 10_000)
	if opt.HalfLife == 0 {
		opt.HalfLife = politeness.HalfLife
	}
	s := &Scheduler{store: store, opt: opt, rnd: opt.Rand, now: opt.Now, began: opt.Now(), crawls: make(map[CrawlID]*Crawl), doubts: make(doubts)}
	for i := range opt.Shards {
		s.shards = append(s.shards, newShard(s, i))
		s.names = append(s.names, "shard "+strconv.Itoa(i))
	}
	for _, sh := range s.shards {
		sh.evictAt = max(opt.IdleHosts/len(s.shards), 1)
	}
	s.robotSlots.Store(int64(opt.RobotSlots))
	return s
}

// Shards returns how many there are; Next is asked for each.
func (s *Scheduler) Shards() int { return len(s.shards) }

// Wake fires when a shard has something to do earlier than Next said.
func (s *Scheduler) Wake(shard int) <-chan struct{} { return s.shards[shard].wake }

// InFlight counts permits that are not released.
func (s *Scheduler) InFlight() int64 { return s.inFlight.Load() }

// RobotsInFlight counts the robots slots in use, and their number.
func (s *Scheduler) RobotsInFlight() (used, limit int64) {
	return int64(s.opt.RobotSlots) - s.robotSlots.Load(), int64(s.opt.RobotSlots)
}

// Open takes a crawl in, with whatever the store holds of it.
func (s *Scheduler) Open(ctx context.Context, c *Crawl, now time.Time) error {
	if err := s.store.OpenCrawl(ctx, c.ID); err != nil {
		return fmt.Errorf("open frontier of crawl %d: %w", c.ID, err)
	}
	s.mu.Lock()
	s.crawls[c.ID] = c
	s.mu.Unlock()
	if s.opt.Held != nil {
		return nil // its work comes with the leases
	}
	s.commits.RLock()
	defer s.commits.RUnlock()
	return s.store.Queues(ctx, c.ID, func(q Queue) error {
		c.pending.Add(int64(q.Count))
		sh := s.shardOf(q.Group)
		sh.mu.Lock()
		if g := sh.groups[q.Group]; g == nil || g.find(c.ID) == nil {
			sh.adopt(c, q, now)
		}
		sh.mu.Unlock()
		return nil
	})
}

// Pause stops handing out a crawl's work; Unpause goes on.
func (s *Scheduler) Pause(c *Crawl) { c.paused.Store(true) }

// Unpause files every group of the crawl again.
func (s *Scheduler) Unpause(c *Crawl, now time.Time) {
	c.paused.Store(false)
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, g := range sh.byName() {
			if g.find(c.ID) != nil {
				sh.file(g, now)
			}
		}
		sh.mu.Unlock()
	}
}

// Unspend lets a crawl take pages from its budget again: there are more.
func (s *Scheduler) Unspend(c *Crawl, now time.Time) {
	if c.spent.CompareAndSwap(true, false) && !c.paused.Load() {
		s.Unpause(c, now)
	}
}

// Close forgets a crawl that has nothing in flight; the store keeps its part.
func (s *Scheduler) Close(c *Crawl, now time.Time) {
	c.paused.Store(true)
	c.closed.Store(true)
	s.mu.Lock()
	delete(s.crawls, c.ID)
	s.mu.Unlock()
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, g := range sh.byName() {
			g.queues = slices.DeleteFunc(g.queues, func(q *queue) bool { return q.crawl == c })
			g.tasks = slices.DeleteFunc(g.tasks, func(t RobotsTask) bool { return t.Crawl == c })
			for _, o := range g.origins {
				o.held = slices.DeleteFunc(o.held, func(h heldEntry) bool { return h.q.crawl == c })
				if o.state == originFetching && o.by == c {
					o.state, o.by = originMissing, nil
				}
			}
			g.stalled = false
			sh.file(g, now)
		}
		sh.mu.Unlock()
	}
	s.offerSlots()
	s.store.CloseCrawl(c.ID)
}

func (s *Scheduler) openCrawls() []*Crawl {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs []*Crawl
	for _, c := range s.crawls {
		cs = append(cs, c)
	}
	slices.SortFunc(cs, func(a, b *Crawl) int { return int(a.ID - b.ID) })
	return cs
}

func (s *Scheduler) crawl(id CrawlID) *Crawl {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crawls[id]
}

// Next hands out work of one shard that is due, or says when the next will be
// (the zero time: not before Wake fires).
func (s *Scheduler) Next(shard int, now time.Time) (Work, time.Time) {
	return s.shards[shard].next(now)
}

// Confirm reports whether a permit still holds at the moment before its
// request is written. Between the grant and now another answer may have asked
// for the host to be left alone.
func (s *Scheduler) Confirm(p *Permit, now time.Time) bool {
	sh := s.shardOf(p.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return !p.released && !p.Crawl.closed.Load() && !p.g.detached && p.g.state != parked && !p.g.clocks.BlockedUntil.After(now) && sh.held(p.g)
}

// OnWire notes when the permit's request was written: from there the next gap
// is counted.
func (s *Scheduler) OnWire(p *Permit, at time.Time) {
	if p.unpaced {
		return // nobody waits for it; should somebody come, Release wakes them
	}
	sh := s.shardOf(p.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if p.onWire || p.released || p.g.detached {
		return
	}
	p.onWire = true
	p.g.starting--
	p.g.started = at
	p.g.clocks.Started(at, max(p.gap, p.g.clocks.CrawlDelay)) // which may be known since the grant
	sh.file(p.g, at)
}

// Release ends a permit with its answer, moves the host's clocks and says what
// becomes of the URL. A second Release does nothing.
func (s *Scheduler) Release(p *Permit, now time.Time, a politeness.Answer) politeness.Verdict {
	sh := s.shardOf(p.Group)
	sh.mu.Lock()
	if p.released {
		sh.mu.Unlock()
		return politeness.Verdict{}
	}
	p.released = true
	g := p.g
	g.inFlight--
	if !p.onWire {
		g.starting--
	}
	s.inFlight.Add(-1)
	p.Crawl.permits.Add(-1)
	s.shareOf(p.Crawl).give(now, now.Sub(p.Granted))
	p.Crawl.Slots.give()
	// What was known when the request was granted is what it was sent by: of
	// many granted together some reach the wire after the first answer came.
	if p.Granted.Before(a.Started) {
		a.Started = p.Granted
	}
	v := g.clocks.Finished(now, p.Crawl.Rules, a, s.rnd())
	p.GrantedBefore = s.permits.Load()
	if g.detached { // somebody else's by now: what it learned is refused
		sh.mu.Unlock()
		s.afterRelease(p)
		return v
	}
	sh.markDirty(g)
	sh.markChanged(g)
	switch {
	case v.Parked && g.state != parked:
		sh.park(g)
	case g.state == parked && g.clocks.Failures == 0:
		sh.unpark(g)
	}
	sh.file(g, now)
	sh.mu.Unlock()
	s.afterRelease(p)
	return v
}

// afterRelease hands on what the permit held besides its host.
func (s *Scheduler) afterRelease(p *Permit) {
	if p.Robots {
		s.robotSlots.Add(1)
	}
	s.offerSlots() // freed here, or not used by a host that was parked meanwhile
	s.offerFull(p.Crawl)
	s.wakeYielders()
}

func (sh *shard) park(g *group) {
	if g.lane != nil {
		sh.unready(g)
	}
	if g.state == slotsWait {
		sh.leaveSlots(g)
	}
	sh.noteFull(g, false)
	for _, q := range g.queues {
		q.parked = true
		q.crawl.parked.Add(int64(q.waiting()))
		q.crawl.retries.Add(-int64(len(q.delayed)))
	}
	sh.setState(g, parked)
}

func (sh *shard) unpark(g *group) {
	for _, q := range g.queues {
		q.parked = false
		q.crawl.parked.Add(-int64(q.waiting()))
		q.crawl.retries.Add(int64(len(q.delayed)))
	}
	sh.setState(g, busy)
}

// Commit writes a batch to the store, with the clocks and robots copies that
// changed since the last, and takes the result into memory.
func (s *Scheduler) Commit(ctx context.Context, b *Batch, now time.Time) ([]Entry, error) {
	s.commits.Lock()
	defer s.commits.Unlock()
	s.unwritten = append(s.unwritten, s.takeNotes()...)
	whole := *b // a commit that is repeated takes the notes of the last time once
	whole.Notes = append(slices.Clip(b.Notes), s.unwritten...)
	if s.opt.Held != nil {
		whole.Ack, whole.Update = s.ofThisLease(b)
	}
	out, _ := s.shifts()
	stored := whole
	stored.Add, stored.Update = shifted(b.Add, out), shifted(whole.Update, out)
	added, err := s.commit(ctx, &stored, now)
	added = shifted(added, -out)
	var fenced *FencedError
	if err != nil && !errors.As(err, &fenced) {
		s.doubts.note(b)
		return nil, err // the notes go with the next commit
	}
	s.unwritten = nil
	for _, e := range added {
		if c := s.crawl(e.Crawl); c != nil {
			s.announce(c, e, now)
		}
	}
	s.doubts.settle(b)
	if fenced != nil {
		s.Drop(fenced.Groups, now)
	}
	for i := range whole.Update {
		s.settle(whole.Update[i].Ref(), &whole.Update[i], now)
	}
	for _, r := range whole.Ack {
		s.settle(r, nil, now)
	}
	return added, nil
}

// commit leaves out crawls that the store has not got: nobody can do anything
// for them any more, and others must not wait for that.
func (s *Scheduler) commit(ctx context.Context, b *Batch, now time.Time) ([]Entry, error) {
	for {
		added, err := s.store.Commit(ctx, b)
		var gone *NotOpenError
		if s.opt.Held == nil || !errors.As(err, &gone) {
			return added, err
		}
		lost, rest := b.of(gone.Crawl)
		s.unhand(&lost, now)
		*b = rest
		if s.opt.Gone != nil {
			s.opt.Gone(gone.Crawl)
		}
	}
}

// Forgo takes out of a batch what it says of entries of a crawl that has ended
// without them: they stay queued for whoever resumes it, with what they named.
// Here they are in nobody's hand any more. Where groups are leased, theirs are
// given back: whoever has them next hears from the store that they wait.
func (s *Scheduler) Forgo(b *Batch, crawl CrawlID, now time.Time) {
	s.commits.Lock()
	defer s.commits.Unlock()
	late, rest := b.of(crawl)
	rest.Add = b.Add
	*b = rest
	if s.opt.Held != nil {
		late.Ack, late.Update = s.ofThisLease(&late)
	}
	groups := s.unhand(&late, now)
	if s.opt.Held != nil {
		s.Drain(groups, now)
	}
}

// unhand forgets the entries that a batch acknowledges or puts off, and names
// their groups.
func (s *Scheduler) unhand(b *Batch, now time.Time) (groups []string) {
	refs := slices.Clone(b.Ack)
	for i := range b.Update {
		refs = append(refs, b.Update[i].Ref())
	}
	for _, r := range refs {
		s.settle(r, nil, now)
		groups = append(groups, r.Group)
	}
	return groups
}

func (s *Scheduler) announce(c *Crawl, e Entry, now time.Time) {
	sh := s.shardOf(e.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.leases != nil && !sh.ours(e.Group) {
		return // whoever holds the group hears of it from the store
	}
	if sh.leases != nil && sh.doubtful(c, &e, now) {
		return
	}
	c.pending.Add(1)
	if sh.staysDormant(e.Group, c) {
		sh.dormant++
		return
	}
	g := sh.group(e.Group)
	q := g.queue(c)
	q.add(e, sh.limit(g, now))
	if g.state == parked {
		c.parked.Add(1)
		return
	}
	if g.state == idle || g.state == busy {
		sh.file(g, now)
	}
}

// settle takes an entry back that is done (update is nil) or to be tried again.
func (s *Scheduler) settle(r Ref, update *Entry, now time.Time) {
	c := s.crawl(r.Crawl)
	if c == nil {
		return
	}
	sh := s.shardOf(r.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := sh.groups[r.Group]
	if g == nil {
		return
	}
	q := g.find(r.Crawl)
	if q == nil {
		return
	}
	if _, ours := q.out[r.Pos.ID]; !ours {
		return
	}
	c.taken.Add(-1)
	if update == nil {
		q.done(r.Pos.ID)
		c.pending.Add(-1)
	} else {
		q.delay(*update)
		if g.state == parked {
			c.parked.Add(1)
		}
	}
	sh.file(g, now)
}

// takeNotes collects what the next commit is to write about groups.
func (s *Scheduler) takeNotes() []Note {
	var notes []Note
	out, _ := s.shifts()
	for _, sh := range s.shards {
		sh.mu.Lock()
		notes = append(notes, sh.notes...)
		sh.notes = nil
		for _, g := range sh.dirty {
			g.dirty = false
			st := g.durable()
			st.Shift(out)
			notes = append(notes, ClocksNote(g.key, st))
		}
		sh.dirty = sh.dirty[:0]
		sh.mu.Unlock()
	}
	return notes
}
