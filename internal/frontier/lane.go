package frontier

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// lane is one tenant's ready heap in one shard. Its shard's lock guards the
// heap; when its first group is due, other shards may read too.
type lane struct {
	share *Share
	heap  readyHeap
	first atomic.Int64 // when the first group is due, counted from the scheduler's start; never is math.MaxInt64
	ahead bool         // as of the last Snapshot
}

// laneSet is a tenant's lanes, one a shard.
type laneSet struct{ list atomic.Pointer[[]lane] }

// in returns the tenant's lane of a shard.
func (h *Share) in(sh *shard) *lane {
	list := h.lanes.list.Load()
	if list == nil {
		made := make([]lane, len(sh.s.shards))
		for i := range made {
			made[i].share = h
			made[i].first.Store(math.MaxInt64)
		}
		h.lanes.list.CompareAndSwap(nil, &made) // another shard may have been first
		list = h.lanes.list.Load()
	}
	return &(*list)[sh.ix]
}

// due reports whether the tenant has a group that is due, in any shard.
func (ls *laneSet) due(after time.Duration) bool {
	list := ls.list.Load()
	if list == nil {
		return false
	}
	for i := range *list {
		if (*list)[i].first.Load() <= int64(after) {
			return true
		}
	}
	return false
}

// due reports whether the first group is; for the lane's own shard.
func (l *lane) due(now time.Time) bool { return len(l.heap) > 0 && !l.heap[0].at.After(now) }

// note keeps first in step with the heap.
func (l *lane) note(began time.Time) {
	at := time.Duration(math.MaxInt64)
	if len(l.heap) > 0 {
		at = l.heap[0].at.Sub(began)
	}
	l.first.Store(int64(at))
}

// ready puts a group into the lane of the tenant whose turn it is there, and
// reports whether it is the first.
func (sh *shard) ready(g *group) (first bool) {
	l := sh.s.shareOf(g.whose()).in(sh)
	if len(l.heap) == 0 {
		sh.lanes = append(sh.lanes, l)
	}
	g.lane = l
	l.heap.push(g)
	l.note(sh.s.began)
	return l.heap[0] == g
}

// unready takes a group out of its lane.
func (sh *shard) unready(g *group) {
	l := g.lane
	l.heap.remove(g.heapIx)
	l.note(sh.s.began)
	g.lane = nil
	if len(l.heap) == 0 {
		i := slices.Index(sh.lanes, l)
		sh.lanes = slices.Delete(sh.lanes, i, i+1)
	}
	sh.s.wakeYielders()
}

// whose is the crawl for which the group waits for a worker.
func (g *group) whose() *Crawl {
	if i, _ := g.nextTask(); i >= 0 {
		return g.tasks[i].Crawl
	}
	for i := range g.queues {
		q := g.queues[(g.turn+i)%len(g.queues)]
		if q.waiting() > 0 && !q.crawl.paused.Load() && !q.crawl.Slots.Full() {
			return q.crawl
		}
	}
	return nil
}

// shareOf is the share of a crawl's tenant, or of all that have none.
func (s *Scheduler) shareOf(c *Crawl) *Share {
	if c == nil || c.Share == nil {
		return &s.unshared
	}
	return c.Share
}

// nextLane finds the lane that is served next, if one is due.
func (sh *shard) nextLane(now time.Time) *lane {
	if len(sh.lanes) == 1 {
		if l := sh.lanes[0]; l.due(now) {
			return l
		}
		return nil
	}
	var best *lane
	for _, l := range sh.lanes {
		if !l.due(now) {
			continue
		}
		if best == nil || l.heap[0].before(best.heap[0]) {
			best = l
		}
	}
	if best == nil || best.share.of == nil { // crawls that share with nobody go by time
		return best
	}
	return best.share.of.least(sh.lanes, now)
}

// soonest is when the first group is due; zero if there is none.
func (sh *shard) soonest() (at time.Time) {
	for i, l := range sh.lanes {
		if first := l.heap[0].at; i == 0 || first.Before(at) {
			at = first
		}
	}
	return at
}

// yieldMost is how long a shard leaves the workers to the others, if none of
// them says that it has taken one.
const yieldMost = 50 * time.Millisecond

// yields reports that a tenant's next request must wait for that of another
// tenant in another shard. Whoever takes or gives back a worker wakes it.
func (sh *shard) yields(l *lane, now time.Time) bool {
	after := now.Sub(sh.s.began)
	if !l.share.ahead(now, after) {
		return false
	}
	if !sh.yielding.Swap(true) {
		sh.s.yielders.Add(1)
	}
	if l.share.ahead(now, after) {
		return true
	}
	sh.stopYielding() // taken before it was known that we wait
	return false
}

func (sh *shard) stopYielding() bool {
	if !sh.yielding.Swap(false) {
		return false
	}
	sh.s.yielders.Add(-1)
	return true
}

// wakeYielders lets the shards that left a worker to others look again.
func (s *Scheduler) wakeYielders() {
	if s.yielders.Load() == 0 {
		return
	}
	for _, sh := range s.shards {
		if sh.stopYielding() {
			sh.signal()
		}
	}
}
