package frontier

import (
	"slices"
	"time"
)

// heldBack reports whether one of the group's crawls has work and may not do it.
func (g *group) heldBack() bool {
	for _, q := range g.queues {
		if q.waiting() > 0 && !q.crawl.paused.Load() && q.crawl.Slots.Full() {
			return true
		}
	}
	_, held := g.nextTask()
	return held
}

// noteFull keeps the list of groups that are to be looked at again when their
// crawl has a free slot, whatever else they wait for meanwhile.
func (sh *shard) noteFull(g *group, held bool) {
	switch {
	case held && !g.inFull:
		g.inFull = true
		sh.full = append(sh.full, g)
		sh.s.fullWaiters.Add(1)
		if !g.heldBack() {
			sh.signal() // given back before it was known that we wait
		}
	case !held && g.inFull:
		g.inFull = false
		sh.full = slices.DeleteFunc(sh.full, func(w *group) bool { return w == g })
		sh.s.fullWaiters.Add(-1)
	}
}

// fullScan bounds how many waiting groups one look tries.
const fullScan = 64

// wakeFull files the first groups whose crawl has a free slot again.
func (sh *shard) wakeFull(now time.Time) {
	tried := 0
	for i := 0; i < len(sh.full) && tried < fullScan; tried++ {
		g := sh.full[i]
		if g.heldBack() {
			i++
			continue
		}
		sh.file(g, now) // takes it out of the list
	}
}

// offerFull wakes the shards with groups that wait for a slot of their crawl.
func (s *Scheduler) offerFull(c *Crawl) {
	if c.Slots == nil || s.fullWaiters.Load() == 0 {
		return
	}
	for _, sh := range s.shards {
		sh.signal()
	}
}
