package frontier

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/politeness"
)

// HostView is one group as people see it.
type HostView struct {
	Group    string
	State    string // ready, running, waiting, parked, idle
	Waiting  int    // URLs nobody works on
	InFlight int
	Cap      int
	Gap      time.Duration
	GapWhy   politeness.Why
	Until    time.Time
	Reason   string
	Rate     float64
	Clocks   politeness.State

	kind string // of Reason, one of few
}

// Snapshot is a picture of the scheduler.
type Snapshot struct {
	Ready, Running, Waiting, Parked, Idle int

	MostInFlight, CapThere int // on the host with most requests in flight

	Memory  int // entries in windows
	Heap    int // hosts in the ready heaps
	Busiest []HostView
	Longest []HostView // most waiting URLs first
	Last    HostView   // the host whose queue will take longest at its pace
	LastFor time.Duration
	Soonest time.Time        // when the first waiting host is due; zero if none waits for a time
	Waits   map[string]Waits // hosts with work that is not being done, by what they wait for
}

// Hosts counts those that are not idle.
func (s *Snapshot) Hosts() int { return s.Ready + s.Running + s.Waiting + s.Parked }

// Waits counts who waits for one thing.
type Waits struct{ Hosts, URLs int }

// Snapshot looks at every group once, or at those of one crawl; top bounds the
// lists.
func (s *Scheduler) Snapshot(now time.Time, top int, only *Crawl) Snapshot {
	out := Snapshot{Waits: make(map[string]Waits)}
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, l := range sh.lanes {
			out.Heap += len(l.heap)
			l.ahead = l.share.ahead(now, now.Sub(s.began))
		}
		for _, g := range sh.groups {
			v := g.view(now)
			if only != nil {
				q := g.find(only.ID)
				if q == nil {
					continue
				}
				v.Waiting = q.waiting()
			}
			if v.State == "waiting" && !v.Until.IsZero() && (out.Soonest.IsZero() || v.Until.Before(out.Soonest)) {
				out.Soonest = v.Until
			}
			if v.InFlight > out.MostInFlight || out.CapThere == 0 {
				out.MostInFlight, out.CapThere = v.InFlight, v.Cap
			}
			if v.Waiting > 0 && v.kind != "" {
				n := out.Waits[v.kind]
				out.Waits[v.kind] = Waits{n.Hosts + 1, n.URLs + v.Waiting}
			}
			switch v.State {
			case "ready":
				out.Ready++
			case "running":
				out.Running++
			case "waiting":
				out.Waiting++
			case "parked":
				out.Parked++
			default:
				out.Idle++
				continue
			}
			for _, q := range g.queues {
				if only != nil && q.crawl != only {
					continue
				}
				out.Memory += q.inWindow() + len(q.delayed)
			}
			if v.Rate > 0.01 {
				out.Busiest = keepTop(out.Busiest, v, top, func(a, b HostView) int { return cmp.Compare(b.Rate, a.Rate) })
			}
			if v.Waiting > 0 {
				out.Longest = keepTop(out.Longest, v, top, func(a, b HostView) int { return cmp.Compare(b.Waiting, a.Waiting) })
			}
			if d := v.remaining(now); v.State != "parked" && d > out.LastFor {
				out.Last, out.LastFor = v, d
			}
		}
		sh.mu.Unlock()
	}
	return out
}

// remaining is how long the queue will take at the pace that is owed: never
// less than the gap or the block, nor faster than the answers come.
func (v HostView) remaining(now time.Time) time.Duration {
	each := v.Gap
	if lat := v.Clocks.Latency / time.Duration(max(v.Cap, 1)); lat > each {
		each = lat
	}
	d := time.Duration(v.Waiting) * each
	if v.Until.After(now) {
		d += v.Until.Sub(now)
	}
	return d
}

func keepTop(list []HostView, v HostView, n int, order func(a, b HostView) int) []HostView {
	byKey := func(a, b HostView) int {
		if c := order(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.Group, b.Group)
	}
	i, _ := slices.BinarySearchFunc(list, v, byKey)
	if i >= n {
		return list
	}
	list = slices.Insert(list, i, v)
	return list[:min(len(list), n)]
}

func (g *group) view(now time.Time) HostView {
	v := HostView{Group: g.key, Waiting: g.waitingURLs(), InFlight: g.inFlight,
		Rate: g.recent(now), Clocks: g.clocks}
	var rules politeness.Rules
	if len(g.queues) > 0 {
		rules = g.queues[0].crawl.Rules
	}
	v.Cap = g.clocks.Cap(rules)
	v.Gap, v.GapWhy = g.clocks.Gap(rules, 0.5)
	switch g.state {
	case parked:
		v.State, v.kind = "parked", "parked"
		v.Reason = fmt.Sprintf("%d failures in a row", g.clocks.Failures)
	case queued:
		v.State = "ready"
		if g.at.After(now) {
			v.State, v.Until = "waiting", g.at
			v.Reason, v.kind = g.reason(now)
		} else if g.lane.ahead {
			v.State, v.Reason, v.kind = "waiting", "its share of the workers is in use", "share"
		}
		if g.inFlight > 0 {
			v.State = "running"
		}
	case busy:
		v.State, v.kind = "running", "concurrency"
	case loading:
		v.State = "ready"
	case robotsWait:
		v.State, v.Reason, v.kind = "waiting", "robots.txt is being fetched", "robots"
	case slotsWait:
		v.State, v.Reason, v.kind = "waiting", "all robots.txt fetch slots are taken", "robots_slots"
	case leaseWait:
		v.State, v.Reason, v.kind = "waiting", "its lease is not safe to act on", "lease"
	case fullWait:
		v.State, v.Reason, v.kind = "waiting", "its crawl has as many requests in flight as it may", "slots"
		if c := g.fullCrawl(); c != nil {
			v.Reason, v.kind = fmt.Sprintf("its crawl has %d requests in flight, as many as it may", c.Slots.Limit()), "slots"
		}
	default:
		v.State = "idle"
		if g.inFlight > 0 {
			v.State = "running"
		}
	}
	return v
}

// fullCrawl is a crawl of the group that waits for its own slots.
func (g *group) fullCrawl() *Crawl {
	for _, q := range g.queues {
		if q.waiting() > 0 && q.crawl.Slots.Full() {
			return q.crawl
		}
	}
	return nil
}

// reason says what a queued group that is not due waits for.
func (g *group) reason(now time.Time) (words, kind string) {
	ready, block := g.clocks.ReadyAt()
	switch {
	case block && ready.After(now):
		return "blocked by " + g.clocks.BlockWhy.String(), "block"
	case ready.After(now) && g.lastGap <= 0: // nothing was asked of it here yet
		return "pace: a whole gap since this host was taken up", "pace"
	case ready.After(now):
		return fmt.Sprintf("pace: one request every %s (%s)", g.lastGap.Round(time.Millisecond), g.lastWhy), "pace"
	}
	for _, o := range g.origins {
		if o.state == originMissing && len(o.held) > 0 {
			return "robots.txt could not be read; asking again", "robots"
		}
	}
	return "retry backoff", "retry"
}

// Clocks returns a group's clocks as they are now.
func (s *Scheduler) Clocks(group string) politeness.State {
	sh := s.shardOf(group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if g := sh.groups[group]; g != nil {
		return g.clocks
	}
	return politeness.State{}
}

// Changed is a group whose clocks moved since the ledger heard of them.
type Changed struct {
	Group  string
	Clocks politeness.State
}

// TakeChanged returns and forgets them.
func (s *Scheduler) TakeChanged() []Changed {
	var out []Changed
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, g := range sh.changed {
			g.changed = false
			out = append(out, Changed{g.key, g.durable()})
		}
		sh.changed = sh.changed[:0]
		sh.mu.Unlock()
	}
	return out
}

// EachParked calls fn with the groups that are parked and why.
func (s *Scheduler) EachParked(fn func(HostView)) {
	now := s.now()
	for _, sh := range s.shards {
		sh.mu.Lock()
		var views []HostView
		for _, g := range sh.groups {
			if g.state == parked {
				views = append(views, g.view(now))
			}
		}
		sh.mu.Unlock()
		slices.SortFunc(views, func(a, b HostView) int { return cmp.Compare(a.Group, b.Group) })
		for _, v := range views {
			fn(v)
		}
	}
}

// Check verifies the package's invariants; tests and the simulation call it
// after every event.
func (s *Scheduler) Check() error {
	inFlight := int64(0)
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, g := range sh.groups {
			inFlight += int64(g.inFlight)
			if err := g.check(); err != nil {
				sh.mu.Unlock()
				return fmt.Errorf("group %s (%s): %w", g.key, g.state, err)
			}
		}
		sh.mu.Unlock()
	}
	if got := s.inFlight.Load(); got != inFlight && (s.opt.Held == nil || got < inFlight) { // permits of lost groups end as they do
		return fmt.Errorf("%d permits out, but groups count %d in flight", got, inFlight)
	}
	return nil
}

func (g *group) check() error {
	if (g.heapIx >= 0) != (g.state == queued) || (g.lane != nil) != (g.state == queued) {
		return fmt.Errorf("heap index %d", g.heapIx)
	}
	waiting := false
	for _, q := range g.queues {
		if n := q.unread(); n < 0 && !g.draining { // given back because nobody knows
			return fmt.Errorf("crawl %d: %d unread", q.crawl.ID, n)
		}
		if q.taken < 0 || q.held < 0 || q.total < 0 && !g.draining {
			return fmt.Errorf("crawl %d: taken %d held %d total %d", q.crawl.ID, q.taken, q.held, q.total)
		}
		if len(q.out) != q.taken+q.held+len(q.delayed) {
			return fmt.Errorf("crawl %d: %d out, but taken %d held %d delayed %d", q.crawl.ID, len(q.out), q.taken, q.held, len(q.delayed))
		}
		waiting = waiting || q.waiting() > 0 && !q.crawl.paused.Load() && !q.crawl.spent.Load()
	}
	if waiting && g.state == idle {
		return fmt.Errorf("has waiting URLs")
	}
	if g.state == busy && g.inFlight == 0 {
		return fmt.Errorf("nothing in flight will wake it")
	}
	if g.state == loading && g.loads == 0 {
		return fmt.Errorf("no load will wake it")
	}
	if g.state == robotsWait && !g.awaitsRobots() {
		return fmt.Errorf("no robots answer will wake it")
	}
	return nil
}
