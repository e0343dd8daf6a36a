package frontier

import (
	"time"

	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

type groupState uint8

const (
	idle groupState = iota
	queued
	busy
	loading
	robotsWait
	slotsWait
	fullWait
	leaseWait
	parked
)

var stateNames = [...]string{"idle", "queued", "busy", "loading", "robots", "slots", "full", "lease", "parked"}

func (s groupState) String() string { return stateNames[s] }

// group is what is paced together. Only its shard touches it.
type group struct {
	key    string
	state  groupState
	at     time.Time // queued: when it is due
	lane   *lane     // queued: where
	heapIx int
	seq    uint64 // order of filing, so that equal times go in turn

	clocks   politeness.State
	started  time.Time     // when the last request was written
	lastGap  time.Duration // owed between the last start and the next
	lastWhy  politeness.Why
	inFlight int
	starting int // granted, not on the wire yet
	loaded   bool
	loads    int       // loads under way
	stalled  bool      // enough entries wait for robots.txt; take no more
	wantSlot bool      // a robots fetch found all slots taken
	taken    time.Time // when it was leased; zero if it was not
	draining bool      // is to be given back: no more requests
	detached bool      // is somebody else's; only permits still point here
	inFull   bool      // listed among those that wait for a slot of their crawl
	dirty    bool
	changed  bool

	queues  []*queue
	turn    int
	origins []*origin
	tasks   []RobotsTask

	rate   float64 // requests a second, smoothed
	rateAt time.Time
}

func (g *group) queue(c *Crawl) *queue {
	for _, q := range g.queues {
		if q.crawl == c {
			return q
		}
	}
	q := newQueue(c)
	q.parked = g.state == parked
	g.queues = append(g.queues, q)
	return q
}

func (g *group) find(id CrawlID) *queue {
	for _, q := range g.queues {
		if q.crawl.ID == id {
			return q
		}
	}
	return nil
}

// windowSize follows the host's pace: about four seconds of work.
func (g *group) windowSize(now time.Time) int {
	return min(max(int(4*g.recent(now)), baseWindow), maxWindow)
}

const rateMemory = 4 * time.Second

func (g *group) countStart(now time.Time) {
	g.rate = g.recent(now) + 1/rateMemory.Seconds()
	g.rateAt = now
}

// recent decays the rate to now: full weight at once, half after rateMemory.
func (g *group) recent(now time.Time) float64 {
	if g.rateAt.IsZero() {
		return 0
	}
	age := now.Sub(g.rateAt)
	if age >= 8*rateMemory {
		return 0
	}
	r := g.rate
	for ; age >= rateMemory; age -= rateMemory {
		r *= 0.3679
	}
	return r * (1 - 0.6321*float64(age)/float64(rateMemory))
}

// hasWork reports whether something of the group could be handed out without
// another event happening first, and from when; held, whether a crawl with
// work waits for its own slots. They are asked once: what is not work because of
// them must be held because of them.
func (g *group) hasWork() (at time.Time, ok, held bool) {
	task, held := g.nextTask()
	now := task >= 0 && g.inFlight < g.widestCap()
	for _, q := range g.queues {
		if q.crawl.paused.Load() {
			continue
		}
		if q.waiting() > 0 && q.crawl.Slots.Full() {
			held = true
			continue
		}
		if g.inFlight > 0 && g.inFlight >= g.clocks.Cap(q.crawl.Rules) {
			continue
		}
		if !g.stalled && !q.crawl.spent.Load() && (q.inWindow() > 0 || q.unread() > 0 && !q.loading) {
			now = true
		}
		if e := q.nextRetry(); e != nil && (!ok || e.NotBefore.Before(at)) {
			at, ok = e.NotBefore, true
		}
	}
	for _, o := range g.origins { // a robots.txt that is to be asked for (again)
		if o.state == originMissing && o.wantedBy() != nil && (!ok || o.wait.Before(at)) {
			at, ok = o.wait, true
		}
	}
	if now {
		return time.Time{}, true, held
	}
	return at, ok, held
}

// gap is what is owed after the next start. All crawls that are at the host
// share one pace, so the longest of what they keep is kept.
func (g *group) gap(c *Crawl, rnd float64) (gap time.Duration, why politeness.Why) {
	gap, why = g.clocks.Gap(c.Rules, rnd)
	for _, q := range g.queues {
		if q.crawl == c || q.total == 0 || q.crawl.paused.Load() {
			continue
		}
		if d, w := g.clocks.Gap(q.crawl.Rules, rnd); d > gap {
			gap, why = d, w
		}
	}
	return gap, why
}

// paced reports whether a start at the host must keep a distance: then no two
// may be under way to the wire at once, or the later dial could overtake.
func (g *group) paced() bool {
	if g.lastGap > 0 {
		return true
	}
	for _, q := range g.queues {
		if d, _ := g.clocks.Gap(q.crawl.Rules, 1); d > 0 {
			return true
		}
	}
	return false
}

func (g *group) widestCap() int {
	n := 1
	for _, q := range g.queues {
		n = max(n, g.clocks.Cap(q.crawl.Rules))
	}
	return n
}

// awaitsRobots reports whether entries wait for a robots answer on its way.
func (g *group) awaitsRobots() bool {
	for _, o := range g.origins {
		if o.state == originFetching && len(o.held) > 0 {
			return true
		}
	}
	return false
}

// nextTask finds a robots fetch that may go out, or -1. Those of a paused crawl
// stay where they are, unless another crawl waits for the same rules; a hop
// that a fetch under way needs goes on. held: one waits for a slot of its crawl.
func (g *group) nextTask() (at int, held bool) {
	for i := range g.tasks {
		t := &g.tasks[i]
		if t.Crawl.paused.Load() && t.Owner == g.key {
			o := g.origin(t.Origin)
			c := o.wantedBy()
			if c == nil {
				continue
			}
			t.Crawl, o.by = c, c
		}
		if !t.Crawl.Slots.Full() {
			return i, held
		}
		held = true
	}
	return -1, held
}

func (g *group) hasTask() bool {
	i, _ := g.nextTask()
	return i >= 0
}

// refusable finds a queue whose next entry robots.txt closes, when the group
// has to wait for long: a refusal costs no request, so it need not wait.
func (g *group) refusable(now time.Time) *queue {
	if ready, _ := g.clocks.ReadyAt(); ready.Sub(now) < time.Second {
		return nil
	}
	for _, q := range g.queues {
		c := q.crawl
		if q.inWindow() == 0 || g.stalled || c.paused.Load() || c.spent.Load() || c.IgnoreRobots {
			continue
		}
		if r := q.nextRetry(); r != nil && !r.NotBefore.After(now) {
			continue
		}
		e := &q.window[q.head]
		if e.Kind == KindSource { // robots.txt is not asked about it
			continue
		}
		name := weburl.FromCanonical(e.URL).Origin()
		for _, o := range g.origins {
			if o.name == name && o.state == originKnown && !now.After(o.copy.Expires) && !c.Decide(o.copy, e.URL).Allowed {
				return q
			}
		}
	}
	return nil
}

// holdsWork reports whether an entry, a robots fetch or a load of the group is
// on its way: somebody will come back and must find the group.
func (g *group) holdsWork() bool {
	if g.inFlight > 0 || g.loads > 0 || len(g.tasks) > 0 {
		return true
	}
	for _, q := range g.queues {
		if q.total > 0 {
			return true
		}
	}
	return false
}

// waitingURLs counts entries nobody works on.
func (g *group) waitingURLs() (n int) {
	for _, q := range g.queues {
		n += q.waiting()
	}
	return n
}
