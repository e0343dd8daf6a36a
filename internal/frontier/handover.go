package frontier

import (
	"slices"
	"time"
)

// shifts are what a time of ours needs to be the store's, and back. Both lean
// to the later side: a wait may become longer by what the clocks are not known
// to agree by, never shorter.
func (s *Scheduler) shifts() (out, in time.Duration) {
	if s.opt.Ahead == nil {
		return 0, 0
	}
	by, give := s.opt.Ahead()
	return give + by, give - by
}

// shifted are the entries with their retry times by another clock.
func shifted(entries []Entry, d time.Duration) []Entry {
	timed := func(e Entry) bool { return !e.NotBefore.IsZero() }
	if d == 0 || !slices.ContainsFunc(entries, timed) {
		return entries
	}
	entries = slices.Clone(entries)
	for i := range entries {
		if timed(entries[i]) {
			entries[i].NotBefore = entries[i].NotBefore.Add(d)
		}
	}
	return entries
}

// owe makes the group wait for what a crawl's last request, of which nothing is
// stored, may have left to wait for: by the process before this one, or by the
// worker that held the group before.
func (g *group) owe(c *Crawl, restarted time.Time, rnd float64) {
	if g.taken.After(restarted) {
		restarted = g.taken
	}
	if !restarted.IsZero() {
		gap, _ := g.clocks.Gap(c.Rules, rnd)
		g.clocks.Started(restarted, gap)
	}
}

// LetGo forgets those of the drained groups that are still so and whose clocks
// are written, and returns them to be released. Work may have come to the rest
// since Drained named them. It belongs in Exclusive.
func (s *Scheduler) LetGo(leases []Lease, before time.Time) (gone []Lease) {
	for _, l := range leases {
		sh := s.shardOf(l.Group)
		sh.mu.Lock()
		if g := sh.groups[l.Group]; sh.leases[l.Group] == l.Token && g.givable(before) && (g == nil || !g.dirty) {
			sh.forget(l.Group)
			gone = append(gone, l)
		}
		sh.mu.Unlock()
	}
	s.offerSlots()
	return gone
}

func (g *group) givable(before time.Time) bool {
	return g == nil || g.quiet() && (g.draining || g.taken.Before(before) && !g.hasAny())
}
