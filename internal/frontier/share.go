package frontier

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Shares divides the workers among tenants by weight.
//
// While few workers are in hand nobody is held back. When they become scarce a
// tenant may hold what the others leave: each of them keeps a reserve of twice
// what it uses and a little more, up to its fair part, so a tenant that wants
// more gets it within a few turns, and what nobody wants is not kept idle.
type Shares struct {
	workers int64
	used    atomic.Int64

	mu   sync.RWMutex
	open []*Share
}

// NewShares divides so many workers.
func NewShares(workers int) *Shares { return &Shares{workers: int64(workers)} }

// Share is one tenant's part. A nil Share is never over.
type Share struct {
	of     *Shares
	weight int64
	used   atomic.Int64
}

// reserve is what a tenant that uses nothing can begin with at once.
func (s *Shares) reserve() int64 { return min(max(s.workers/32, 1), 8) }

// Open gives a tenant its part; Close takes it back.
func (s *Shares) Open(weight int) *Share {
	sh := &Share{of: s, weight: int64(max(weight, 1))}
	s.mu.Lock()
	s.open = append(s.open, sh)
	s.mu.Unlock()
	return sh
}

// Close forgets a tenant that has nothing in hand any more.
func (s *Shares) Close(share *Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o == share {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

func (h *Share) take() {
	if h != nil {
		h.used.Add(1)
		h.of.used.Add(1)
	}
}

func (h *Share) give() {
	if h != nil {
		h.used.Add(-1)
		h.of.used.Add(-1)
	}
}

// over reports that the tenant must leave the next worker to others.
func (h *Share) over() bool {
	if h == nil {
		return false
	}
	s := h.of
	if s.used.Load()*2 < s.workers {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var weights, kept int64
	for _, o := range s.open {
		weights += o.weight
	}
	if weights == 0 || len(s.open) < 2 {
		return false
	}
	for _, o := range s.open {
		if o != h {
			kept += min(s.workers*o.weight/weights, 2*o.used.Load()+s.reserve())
		}
	}
	return h.used.Load() >= max(s.workers-kept, s.workers*h.weight/weights, 1)
}

// heldBack reports whether one of the group's crawls has work and may not do it.
func (g *group) heldBack() bool {
	for _, q := range g.queues {
		if q.waiting() > 0 && !q.crawl.paused.Load() && q.crawl.heldBack() {
			return true
		}
	}
	_, held := g.nextTask()
	return held
}

// noteShare keeps the list of groups that are to be looked at again when a
// share has room, whatever else they wait for meanwhile.
func (sh *shard) noteShare(g *group, held bool) {
	switch {
	case held && !g.inShares:
		g.inShares = true
		sh.shares = append(sh.shares, g)
		sh.s.shareWaiters.Add(1)
		if !g.heldBack() {
			sh.signal() // given back before it was known that we wait
		}
	case !held && g.inShares:
		g.inShares = false
		sh.shares = slices.DeleteFunc(sh.shares, func(w *group) bool { return w == g })
		sh.s.shareWaiters.Add(-1)
	}
}

// shareScan bounds how many waiting groups one look tries.
const shareScan = 64

// wakeShareWaiters files the first groups whose share has room again.
func (sh *shard) wakeShareWaiters(now time.Time) {
	tried := 0
	for i := 0; i < len(sh.shares) && tried < shareScan; tried++ {
		g := sh.shares[i]
		if g.heldBack() {
			i++
			continue
		}
		sh.file(g, now) // takes it out of the list
	}
}

// offerShare wakes the shards with groups that wait for a share, or for a slot
// of their crawl.
func (s *Scheduler) offerShare(c *Crawl) {
	if c.Share == nil && c.Slots == nil || s.shareWaiters.Load() == 0 {
		return
	}
	for _, sh := range s.shards {
		sh.signal()
	}
}
