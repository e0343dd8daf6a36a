package frontier

import (
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/weburl"
)

// shard owns the groups of some domains: one lock, one heap, one wake-up.
type shard struct {
	s  *Scheduler
	ix int
	mu sync.Mutex

	groups  map[string]*group
	leases  map[string]uint64 // groups that are ours, with their tokens; nil: all are
	lanes   []*lane           // of those with a queued group
	seq     uint64
	slots   []*group // waiting for a robots slot
	full    []*group // waiting for a slot of their crawl
	notes   []Note   // to be written with the next commit
	dirty   []*group // clocks changed since the store has them
	changed []*group // clocks changed since the ledger has them
	active  int      // groups with queued work in memory
	dormant int      // entries of groups that only the store has
	scan    bool     // dormant groups are being looked for
	idle    []*group // candidates for eviction, oldest first
	evictAt int

	wake     chan struct{}
	yielding atomic.Bool // has left a worker to another shard
}

func newShard(s *Scheduler, ix int) *shard {
	sh := &shard{s: s, ix: ix, groups: make(map[string]*group), wake: make(chan struct{}, 1)}
	if s.opt.Held != nil {
		sh.leases = make(map[string]uint64)
	}
	return sh
}

func (sh *shard) signal() {
	select {
	case sh.wake <- struct{}{}:
	default:
	}
}

func (sh *shard) group(key string) *group {
	g := sh.groups[key]
	if g == nil {
		g = &group{key: key, heapIx: -1}
		sh.groups[key] = g
	}
	return g
}

// next hands out what is due, or says when to ask again (zero: when woken).
func (sh *shard) next(now time.Time) (Work, time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w, ok := sh.wakeDormant(); ok {
		return w, time.Time{}
	}
	// Before the heap is asked: on a busy shard somebody is always due, and
	// would keep those that wait for a slot waiting until all others are done.
	sh.wakeSlotWaiter(now)
	sh.wakeFull(now)
	sh.stopYielding()
	for {
		for l := sh.nextLane(now); l != nil; l = sh.nextLane(now) {
			if sh.yields(l, now) {
				sh.s.offerSlots()
				return Work{}, now.Add(yieldMost)
			}
			g := l.heap[0]
			sh.unready(g)
			w, ok := sh.serve(g, now)
			sh.file(g, now)
			if ok {
				return w, time.Time{}
			}
		}
		if sh.wakeSlotWaiter(now) {
			continue
		}
		sh.s.offerSlots() // what nobody here could use
		return Work{}, sh.soonest()
	}
}

// file puts a group where it belongs now: the invariant of the package lives
// here. Everything that changes a group ends with a call of it.
func (sh *shard) file(g *group, now time.Time) {
	if g.lane != nil {
		sh.unready(g)
	}
	if g.state == slotsWait {
		sh.leaveSlots(g)
	}
	if g.state == parked {
		return
	}
	at, work, held := g.hasWork()
	sh.noteFull(g, held)
	switch {
	case g.loads > 0 && (!g.loaded || !work):
		sh.setState(g, loading)
	case work && !g.loaded && sh.held(g): // what another owner owes is read once it is over
		sh.enqueue(g, now)
	case g.wantSlot && g.hasTask():
		sh.setState(g, slotsWait)
		sh.slots = append(sh.slots, g)
		sh.s.slotWaiters.Add(1)
		if sh.s.robotSlots.Load() > 0 {
			sh.signal() // freed before it was known that we wait
		}
	case work && g.starting > 0 && g.paced():
		sh.setState(g, busy)
	case work && (g.draining || !sh.held(g)):
		sh.setState(g, leaseWait)
	case work:
		if ready, _ := g.clocks.ReadyAt(); ready.After(at) {
			at = ready
			if g.refusable(now) != nil {
				at = now
			}
		}
		sh.enqueue(g, at)
	case g.inFlight > 0:
		sh.setState(g, busy)
	case held:
		sh.setState(g, fullWait)
	case g.awaitsRobots():
		sh.setState(g, robotsWait)
	default:
		sh.setState(g, idle)
	}
}

func (sh *shard) enqueue(g *group, at time.Time) {
	sh.seq++
	g.at, g.seq = at, sh.seq
	sh.setState(g, queued)
	if sh.ready(g) {
		sh.signal()
	}
}

func (sh *shard) setState(g *group, st groupState) {
	if g.state != idle && st == idle {
		sh.active--
		if sh.dormant > 0 {
			sh.signal() // there may be room for a host that only the store has
		}
		sh.idle = append(sh.idle, g)
		if len(sh.idle) > sh.evictAt {
			sh.evict()
		}
	} else if g.state == idle && st != idle {
		sh.active++
	}
	g.state = st
}

// serve picks the group's next work. It is called with the group due; what it
// cannot hand out it leaves for file to place.
func (sh *shard) serve(g *group, now time.Time) (Work, bool) {
	if !g.loaded {
		g.loads++
		return Work{Kind: Load, load: loadRequest{g: g, group: g.key, clocks: true}}, true
	}
	if g.draining || !sh.held(g) {
		return Work{}, false
	}
	if ready, _ := g.clocks.ReadyAt(); ready.After(now) {
		if q := g.refusable(now); q != nil {
			w, what := sh.consider(g, q, q.take(), now)
			return w, what == go_
		}
		return Work{}, false
	}
	sh.retryRobots(g, now)
	if i, _ := g.nextTask(); i >= 0 && g.inFlight < g.widestCap() {
		return sh.serveTask(g, i, now)
	}
	for range g.queues {
		q := g.queues[g.turn%len(g.queues)]
		g.turn++
		if q.crawl.paused.Load() || q.crawl.Slots.Full() || g.inFlight > 0 && g.inFlight >= g.clocks.Cap(q.crawl.Rules) {
			continue
		}
		if w, ok := sh.serveQueue(g, q, now); ok {
			return w, true
		}
		if i, _ := g.nextTask(); i >= 0 && g.inFlight < g.widestCap() {
			return sh.serveTask(g, i, now)
		}
	}
	return Work{}, false
}

func (sh *shard) serveQueue(g *group, q *queue, now time.Time) (Work, bool) {
	if n := q.inWindow(); !q.loading && n > 0 && n < sh.limit(g, now)/4 && q.unread() > 0 {
		return sh.startLoad(g, q, now), true // ahead of need
	}
	for {
		var e Entry
		if r := q.nextRetry(); r != nil && !r.NotBefore.After(now) {
			e = q.takeDelayed()
		} else if q.crawl.spent.Load() {
			return Work{}, false
		} else if q.inWindow() > 0 {
			e = q.take()
		} else if q.unread() > 0 && !q.loading {
			return sh.startLoad(g, q, now), true
		} else {
			return Work{}, false
		}
		w, what := sh.consider(g, q, e, now)
		switch what {
		case go_:
			return w, true
		case later:
			continue
		case stop:
			q.putBack(e)
			return Work{}, false
		}
	}
}

type consideration uint8

const (
	go_   consideration = iota // the work is complete
	later                      // the entry was set aside
	stop                       // put it back and leave this queue
)

// consider turns a taken entry into work, if robots and budget let it.
func (sh *shard) consider(g *group, q *queue, e Entry, now time.Time) (Work, consideration) {
	c := q.crawl
	e.lease = sh.leases[g.key]
	d := Decision{Allowed: true, Ignored: true, Confidence: 1, Rule: "robots.txt ignored on request"}
	switch {
	case e.Kind == KindSource:
		d = Decision{Allowed: true, Confidence: 1, Rule: "not consulted: an index that the seeding asks"}
	case !c.IgnoreRobots:
		o := g.origin(weburl.FromCanonical(e.URL).Origin())
		rc := o.current(now)
		if rc == nil {
			if len(o.held) >= maxHeldPerOrigin {
				g.stalled = true
				return Work{}, stop
			}
			q.hold()
			o.held = append(o.held, heldEntry{q, e})
			o.trust = o.trust || e.TrustPrivate
			return sh.askRobots(g, o, c, now)
		}
		d = c.Decide(rc, e.URL)
		if d.Allowed {
			o.delay = max(o.delay, d.CrawlDelay)
			g.clocks.SetCrawlDelay(d.CrawlDelay)
		}
	case c.Overrule != nil:
		if o, ok := c.Overrule(e.URL); ok {
			d = o
		}
	}
	if !d.Allowed || c.CountOnly && e.Kind == KindPage {
		c.taken.Add(1)
		return Work{Kind: Refuse, Entry: e, Decision: d}, go_
	}
	if !c.Slots.take() {
		return Work{}, stop
	}
	if !e.reserved && e.Kind == KindPage && c.Reserve != nil && !(c.Paid != nil && c.Paid(&e)) {
		if !c.Reserve() {
			c.Slots.give()
			c.spent.Store(true)
			return Work{}, stop
		}
		e.reserved = true
	}
	c.taken.Add(1)
	return Work{Kind: Fetch, Permit: sh.grant(g, c, now), Entry: e, Decision: d}, go_
}

// grant gives a permit. One of the crawl's slots is taken already.
func (sh *shard) grant(g *group, c *Crawl, now time.Time) *Permit {
	gap, why := g.gap(c, sh.s.rnd())
	p := &Permit{
		ID: sh.s.permit(now), Crawl: c, Group: g.key,
		Owed: g.lastGap, OwedWhy: g.lastWhy,
		InFlight: g.inFlight + 1, Cap: g.clocks.Cap(c.Rules),
		Granted: now, g: g, gap: gap, unpaced: !g.paced() && gap == 0,
	}
	g.inFlight++
	g.starting++
	c.permits.Add(1)
	sh.s.shareOf(c).take(now)
	sh.s.wakeYielders()
	g.lastGap, g.lastWhy = gap, why
	g.clocks.Started(now, gap)
	g.countStart(now)
	sh.s.inFlight.Add(1)
	return p
}

// evict drops idle groups that owe nothing and hold nothing. A group that
// owes a wait or has learned something stays [DOM-3].
func (sh *shard) evict() {
	now := sh.s.now()
	seen := make(map[*group]bool, len(sh.idle))
	kept := sh.idle[:0]
	for _, g := range sh.idle {
		if seen[g] || g.state != idle || sh.groups[g.key] != g {
			continue
		}
		seen[g] = true
		if sh.ours(g.key) || g.dirty || g.changed || g.holdsWork() || g.clocks.OwesWait(now) {
			kept = append(kept, g)
			continue
		}
		delete(sh.groups, g.key)
	}
	clear(sh.idle[len(kept):])
	sh.idle = kept
	sh.evictAt = max(sh.s.opt.IdleHosts/len(sh.s.shards), 2*len(kept))
}

func (sh *shard) markDirty(g *group) {
	if !g.dirty {
		g.dirty = true
		sh.dirty = append(sh.dirty, g)
	}
}

func (sh *shard) markChanged(g *group) {
	if !g.changed {
		g.changed = true
		sh.changed = append(sh.changed, g)
	}
}

func (sh *shard) leaveSlots(g *group) {
	for i, w := range sh.slots {
		if w == g {
			sh.slots = append(sh.slots[:i], sh.slots[i+1:]...)
			sh.s.slotWaiters.Add(-1)
			return
		}
	}
}
