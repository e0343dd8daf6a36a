package frontier

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A fleet is many processes over one store. Each works on the groups that it
// has leased, with the same scheduler as a process that has everything: one
// owner a group, so the clocks in memory are exact. What changes:
//
//   - Work comes with leases (Take) and goes with them (Drop). The store says
//     how much of it there is; entries that others add come with Refresh.
//   - Nothing is granted and nothing is written to the wire unless Held says
//     that the lease cannot have expired. A group that is not safe waits in
//     the state lease until Renewed.
//   - A group that was lost is detached: its permits end as they do, what they
//     learned and acknowledged is refused by the store.
//   - A group is given back in three steps: Drain (no more requests), then
//     whatever is in hand is committed, then Drained names it. When its clocks
//     are in the store, LetGo forgets it, unless something came in between,
//     and it is released: the next owner waits for what this one owed.
//   - What the dead owner of a group did last is not in the store. So whoever
//     takes a group owes it the gap of its crawls from the moment of the lease.
//
// Exclusive keeps commits out while leases change, so that what the store
// counted and what a commit announces never overlap.

// permitBits is how many bits of a permit's ID tell the worker.
const permitBits = 12

// permit is a new ID: the time, or a little later if many are granted at once,
// then the worker. So IDs do not repeat over restarts or between workers, and
// ascend with time whoever grants them.
func (s *Scheduler) permit(now time.Time) uint64 {
	var bits uint64
	if s.opt.WorkerBits != nil {
		bits = uint64(s.opt.WorkerBits()) & (1<<permitBits - 1)
	}
	for {
		last := s.permits.Load()
		next := max(last>>permitBits+1, uint64(max(now.UnixMicro(), 0)))<<permitBits | bits
		if s.permits.CompareAndSwap(last, next) {
			return next
		}
	}
}

// ours reports whether a group is leased to this process.
func (sh *shard) ours(group string) bool {
	_, ok := sh.leases[group]
	return ok
}

// held reports whether the group may be worked on at this moment.
func (sh *shard) held(g *group) bool {
	if sh.leases == nil {
		return true
	}
	return sh.ours(g.key) && sh.s.opt.Held(g.key)
}

// Exclusive runs fn while no commit is under way. Take, Refresh and Drop belong
// in it, together with the call of the store whose answer they bring.
func (s *Scheduler) Exclusive(fn func() error) error {
	s.commits.Lock()
	defer s.commits.Unlock()
	return fn()
}

// Take brings leased groups to work. Queues of crawls that are not open are
// returned: open them and Refresh.
func (s *Scheduler) Take(leases []Lease, now time.Time) (unknown []CrawlID) {
	for _, l := range leases {
		sh := s.shardOf(l.Group)
		sh.mu.Lock()
		if g := sh.groups[l.Group]; g != nil && sh.ours(l.Group) && sh.leases[l.Group] != l.Token {
			sh.detach(g) // lost and leased again: others were here in between
		}
		sh.leases[l.Group] = l.Token
		g := sh.group(l.Group)
		if g.taken.IsZero() {
			g.taken = now
		}
		g.draining = false
		unknown = s.counts(sh, g, l, now, unknown)
		sh.mu.Unlock()
	}
	return unknown
}

// Refresh brings new counts of groups that are held: others added to them.
func (s *Scheduler) Refresh(leases []Lease, now time.Time) (unknown []CrawlID) {
	for _, l := range leases {
		sh := s.shardOf(l.Group)
		sh.mu.Lock()
		if g := sh.groups[l.Group]; g != nil && sh.ours(l.Group) {
			unknown = s.counts(sh, g, l, now, unknown)
		}
		sh.mu.Unlock()
	}
	return unknown
}

// counts sets what the store says a group's queues hold. Where that is more
// than was known, the new ones may be anywhere in the order, so the window is
// given back and read anew.
func (s *Scheduler) counts(sh *shard, g *group, l Lease, now time.Time, unknown []CrawlID) []CrawlID {
	for _, sq := range l.Queues {
		c := s.crawl(sq.Crawl)
		if c == nil {
			unknown = append(unknown, sq.Crawl)
			continue
		}
		if g.loaded && g.find(c.ID) == nil {
			g.owe(c, s.opt.RestartedAt, s.rnd())
		}
		q := g.queue(c)
		more := sq.Count - q.total
		if more == 0 {
			continue
		}
		c.pending.Add(int64(more))
		if g.state == parked {
			c.parked.Add(int64(more))
		}
		q.total = sq.Count
		q.reread()
	}
	if s.doubts[g.key] != nil {
		g.draining = true
	}
	sh.file(g, now)
	return unknown
}

// ofThisLease leaves out what was handed out under an earlier lease of a group
// that was lost and is ours again: the store would take it for the new lease's
// word, but by the new lease those entries wait, and others may have had them.
func (s *Scheduler) ofThisLease(b *Batch) (acks []Ref, updates []Entry) {
	stale := func(r Ref) bool {
		sh := s.shardOf(r.Group)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return sh.ours(r.Group) && sh.leases[r.Group] != r.lease // otherwise the store refuses it
	}
	for _, r := range b.Ack {
		if !stale(r) {
			acks = append(acks, r)
		}
	}
	for i := range b.Update {
		if !stale(b.Update[i].Ref()) {
			updates = append(updates, b.Update[i])
		}
	}
	return acks, updates
}

// doubts are what commits that failed in a fleet said of each group: it may have
// been applied all the same. When it is committed again all is well, unless a
// load has brought such an entry meanwhile, or the store has counted: then
// nobody here can tell how much a queue holds. The group is given back, and
// whoever leases it next is told. Guarded by the scheduler's commits.
type doubts map[string]map[doubt]struct{}

type doubt struct {
	crawl CrawlID
	url   string // of an addition
	id    uint64 // of anything else
}

func (d doubts) note(b *Batch) {
	eachDoubt(b, func(group string, k doubt) {
		if d[group] == nil {
			d[group] = make(map[doubt]struct{})
		}
		d[group][k] = struct{}{}
	})
}

func (d doubts) settle(b *Batch) {
	if len(d) == 0 {
		return
	}
	eachDoubt(b, func(group string, k doubt) {
		delete(d[group], k)
		if len(d[group]) == 0 {
			delete(d, group)
		}
	})
}

func eachDoubt(b *Batch, fn func(group string, k doubt)) {
	for i := range b.Add {
		fn(b.Add[i].Group, doubt{crawl: b.Add[i].Crawl, url: b.Add[i].URL})
	}
	for i := range b.Update {
		fn(b.Update[i].Group, doubt{crawl: b.Update[i].Crawl, id: b.Update[i].ID})
	}
	for _, r := range b.Ack {
		fn(r.Group, doubt{crawl: r.Crawl, id: r.Pos.ID})
	}
}

// doubtful reports whether an added entry is in memory already.
func (sh *shard) doubtful(c *Crawl, e *Entry, now time.Time) bool {
	if _, in := sh.s.doubts[e.Group][doubt{crawl: e.Crawl, url: e.URL}]; !in {
		return false
	}
	g := sh.groups[e.Group]
	if g == nil {
		return false
	}
	if q := g.find(c.ID); q == nil || !q.has(e.ID) {
		return false
	}
	g.draining = true
	sh.file(g, now)
	return true
}

// has reports whether an entry is in memory.
func (q *queue) has(id uint64) bool {
	_, out := q.out[id]
	return out || slices.ContainsFunc(q.window[q.head:], func(e Entry) bool { return e.ID == id })
}

// overheard counts entries that a load found and nobody has told of yet: others
// added them, and the store says so with the next Refresh.
func (g *group) overheard(q *queue) {
	n := -q.unread()
	if n <= 0 {
		return
	}
	q.total += n
	q.crawl.pending.Add(int64(n))
	if g.state == parked {
		q.crawl.parked.Add(int64(n))
	}
}

// reread gives the window back to the store: what is out stays out, all else
// is read again from the beginning.
func (q *queue) reread() {
	q.window, q.head, q.bound = nil, 0, Pos{}
	if q.loading {
		q.stale = true
	}
}

// Drop forgets groups that are no longer ours.
func (s *Scheduler) Drop(groups []string, now time.Time) {
	for _, name := range groups {
		sh := s.shardOf(name)
		sh.mu.Lock()
		sh.forget(name)
		sh.mu.Unlock()
	}
	s.offerSlots()
}

func (sh *shard) forget(group string) {
	delete(sh.leases, group)
	if g := sh.groups[group]; g != nil {
		sh.detach(g)
	}
}

func (sh *shard) detach(g *group) {
	if g.lane != nil {
		sh.unready(g)
	}
	if g.state == slotsWait {
		sh.leaveSlots(g)
	}
	sh.noteFull(g, false)
	for _, q := range g.queues {
		if g.state == parked {
			q.crawl.parked.Add(-int64(q.waiting()))
		} else {
			q.crawl.retries.Add(-int64(len(q.delayed)))
		}
		q.crawl.pending.Add(-int64(q.total))
		q.crawl.taken.Add(-int64(q.taken))
	}
	if g.state != idle {
		sh.active--
	}
	g.state, g.detached, g.queues = idle, true, nil
	errands := g.errands()
	g.tasks, g.origins = nil, nil
	delete(sh.groups, g.key)
	if len(errands) > 0 { // they wait for the next lease
		next := sh.group(g.key)
		next.tasks = errands
		sh.file(next, sh.s.now())
	}
	sh.idle = remove(sh.idle, g)
	sh.dirty, sh.changed = remove(sh.dirty, g), remove(sh.changed, g)
	kept := sh.notes[:0]
	for _, n := range sh.notes {
		if n.Group != g.key {
			kept = append(kept, n)
		}
	}
	sh.notes = kept
	// Of a commit that failed: under the next lease they would be old.
	sh.s.unwritten = slices.DeleteFunc(sh.s.unwritten, func(n Note) bool { return n.Group == g.key })
}

// errands are robots fetches that the group is to make for others.
func (g *group) errands() (tasks []RobotsTask) {
	for _, t := range g.tasks {
		if t.Owner != g.key {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func remove(list []*group, g *group) []*group {
	kept := list[:0]
	for _, o := range list {
		if o != g {
			kept = append(kept, o)
		}
	}
	clear(list[len(kept):])
	return kept
}

// Renewed files the groups that waited for their lease.
func (s *Scheduler) Renewed(now time.Time) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, g := range sh.byName() {
			if g.state == leaseWait {
				sh.file(g, now)
			}
		}
		sh.mu.Unlock()
	}
}

// byName lists the groups in the same order each time.
func (sh *shard) byName() []*group {
	return slices.SortedFunc(maps.Values(sh.groups), func(a, b *group) int { return cmp.Compare(a.key, b.key) })
}

// Drain stops requests of groups that are to be given back.
func (s *Scheduler) Drain(groups []string, now time.Time) {
	for _, name := range groups {
		sh := s.shardOf(name)
		sh.mu.Lock()
		if g := sh.groups[name]; g != nil && !g.draining {
			g.draining = true
			sh.file(g, now)
		}
		sh.mu.Unlock()
	}
}

// Drained names leased groups that can be given back: those that were drained
// and have nothing in hand, and those that have had no work since before. Their
// clocks are written with the next commit, which must come before the release.
func (s *Scheduler) Drained(before time.Time) (leases []Lease) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		for name, token := range sh.leases {
			if sh.groups[name].givable(before) {
				leases = append(leases, Lease{Group: name, Token: token})
			}
		}
		sh.mu.Unlock()
	}
	sortLeases(leases)
	return leases
}

func sortLeases(leases []Lease) {
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Compare(a.Group, b.Group) })
}

// quiet reports that nothing of the group is in hand.
func (g *group) quiet() bool {
	if g.inFlight > 0 || g.loads > 0 || !g.draining && len(g.tasks) > 0 {
		return false
	}
	for _, q := range g.queues {
		if q.taken > 0 {
			return false
		}
	}
	return true
}

func (g *group) hasAny() bool {
	for _, q := range g.queues {
		if q.total > 0 {
			return true
		}
	}
	return false
}

// Wanted names groups that somebody here must ask something and that are not
// ours: robots.txt files that lead elsewhere.
func (s *Scheduler) Wanted() (groups []string) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		for name, g := range sh.groups {
			if sh.leases != nil && !sh.ours(name) && len(g.tasks) > 0 {
				groups = append(groups, name)
			}
		}
		sh.mu.Unlock()
	}
	slices.Sort(groups)
	return groups
}

// Held names the groups that are ours, those that are on their way out too.
func (s *Scheduler) Held() []Lease { return s.leased(func(*group) bool { return true }) }

// Movable are those of them that stay and that nothing but their own URLs keeps
// here: not claimed for a robots.txt that leads to them.
func (s *Scheduler) Movable() []Lease {
	return s.leased(func(g *group) bool { return !g.draining && len(g.errands()) == 0 })
}

func (s *Scheduler) leased(which func(*group) bool) (leases []Lease) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		for name, token := range sh.leases {
			if g := sh.groups[name]; g == nil || which(g) {
				leases = append(leases, Lease{Group: name, Token: token})
			}
		}
		sh.mu.Unlock()
	}
	sortLeases(leases)
	return leases
}

// Leased counts the groups that are held, and Room how many more fit.
func (s *Scheduler) Leased() (held, room int) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		held += len(sh.leases)
		sh.mu.Unlock()
	}
	return held, max(s.opt.ReadyHosts-held, 0)
}
