package frontier

import (
	"context"
	"fmt"
	"time"

	"tiptoe/internal/politeness"
)

// loadRequest is a question to the store, asked without holding any lock.
type loadRequest struct {
	g      *group // who asks; another group of the same name has no use for the answer
	group  string
	clocks bool   // the group is new to memory
	origin string // its robots.txt copy
	crawl  *Crawl // its next window, or the crawl that wants the robots copy
	after  Pos
	n      int
	scan   *shard // look for groups that only the store has
}

func (sh *shard) startLoad(g *group, q *queue, now time.Time) Work {
	q.loading = true
	g.loads++
	n := sh.limit(g, now)
	return Work{Kind: Load, load: loadRequest{g: g, group: g.key, crawl: q.crawl, after: q.bound, n: n}}
}

// limit is the window size of the group's queues: by its pace, and small when
// the frontier's memory limit is reached.
func (sh *shard) limit(g *group, now time.Time) int {
	if sh.active*baseWindow > sh.s.opt.MemoryURLs/len(sh.s.shards) {
		return minWindow
	}
	return g.windowSize(now)
}

// Load asks the store what Next wanted to know. It waits for a commit that is
// under way, so that what it brings and what Committed announces never overlap.
func (s *Scheduler) Load(ctx context.Context, w Work, now func() time.Time) error {
	l := w.load
	if l.scan != nil {
		return s.loadDormant(ctx, l.scan, now)
	}
	sh := s.shardOf(l.group)
	switch {
	case l.clocks:
		st, err := s.readClocks(ctx, l.group, now(), l.g.taken)
		if err != nil {
			return err
		}
		sh.mu.Lock()
		defer sh.mu.Unlock()
		g := l.g
		if g.detached {
			return nil
		}
		g.clocks, g.loaded = st, true
		for _, q := range g.queues {
			g.owe(q.crawl, s.opt.RestartedAt, s.rnd())
		}
		for _, t := range g.tasks {
			g.owe(t.Crawl, s.opt.RestartedAt, s.rnd())
		}
		g.loads--
		if g.clocks.Failures >= politeness.ParkAfter {
			sh.park(g)
		}
		sh.file(g, now())
	case l.origin != "":
		b, err := s.store.Note(ctx, l.group, robotsNotePrefix+l.origin)
		if err != nil {
			return fmt.Errorf("load robots copy of %s: %w", l.origin, err)
		}
		var c *RobotsCopy
		if b != nil {
			if c, err = decodeRobots(b); err != nil {
				c = nil // a copy nobody can read is fetched again
			}
		}
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if !l.g.detached {
			sh.loadedRobots(l.g, l, c, now())
		}
	default:
		read, err := s.store.Window(ctx, l.group, l.crawl.ID, l.after, l.n, nil)
		if err != nil {
			return fmt.Errorf("load queue of %s: %w", l.group, err)
		}
		s.commits.RLock()
		defer s.commits.RUnlock()
		sh.mu.Lock()
		defer sh.mu.Unlock()
		g := l.g
		if g.detached {
			return nil
		}
		g.loads--
		q := g.find(l.crawl.ID)
		if q == nil || q.crawl != l.crawl { // the crawl was closed meanwhile
			sh.file(g, now())
			return nil
		}
		_, in := s.shifts()
		q.fill(shifted(read, in), len(read) < l.n, now(), func(e *Entry) int {
			return s.store.InLinks(e.Crawl, e.Fingerprint())
		})
		g.overheard(q)
		sh.file(g, now())
	}
	return nil
}

func (sh *shard) loadedRobots(g *group, l loadRequest, c *RobotsCopy, now time.Time) {
	g.loads--
	o := g.origin(l.origin)
	o.state = originMissing
	if c != nil {
		if !c.Unreachable && c.Status >= 200 && c.Status < 300 {
			o.last = c
		}
		if now.Before(c.Expires) {
			o.state, o.copy = originKnown, c
			o.delay = l.crawl.Decide(c, l.origin+"/").CrawlDelay
			g.clocks.SetCrawlDelay(o.delay)
			sh.unhold(g, o)
		}
	}
	sh.file(g, now)
}

// readClocks finds what is known of a group's pace: the store's note, else
// what the ledger learned in earlier crawls.
func (s *Scheduler) readClocks(ctx context.Context, group string, now, taken time.Time) (politeness.State, error) {
	st, noted, err := ReadClocks(ctx, s.store, group)
	if err != nil {
		return st, err
	}
	_, in := s.shifts()
	st.Shift(in)
	if !noted && s.opt.Knowledge != nil {
		if st, err = s.opt.Knowledge(ctx, group); err != nil {
			return st, fmt.Errorf("load what was learned of %s: %w", group, err)
		}
	}
	st.Clamp(now)
	stored := st
	st.Decay(now, s.opt.HalfLife)
	if s.opt.Remembered != nil {
		s.opt.Remembered(group, stored, st)
	}
	// The last request's start may not have been written: by the process
	// before this one, or by the worker that held the group before.
	since := s.opt.RestartedAt
	if taken.After(since) {
		since = taken
	}
	if !since.IsZero() {
		st.AfterRestart(since, s.opt.RestartRules, s.rnd())
	}
	// A restart gives a parked host one more try. A change of owner alone does
	// so only when its block is over, or a crawl would wait for that each time.
	if st.Failures >= politeness.ParkAfter && (taken.IsZero() || !st.BlockedUntil.After(now)) {
		st.Failures = politeness.ParkAfter - 1
	}
	return st, nil
}

// wakeDormant looks for groups that only the store has when there is room.
func (sh *shard) wakeDormant() (Work, bool) {
	if sh.dormant == 0 || sh.scan || sh.active > sh.hostLimit()*9/10 {
		return Work{}, false
	}
	sh.scan = true
	return Work{Kind: Load, load: loadRequest{scan: sh}}, true
}

func (sh *shard) hostLimit() int { return max(sh.s.opt.ReadyHosts/len(sh.s.shards), 1) }

func (s *Scheduler) loadDormant(ctx context.Context, sh *shard, now func() time.Time) error {
	// What is counted here and what Commit announces must not overlap, so
	// commits wait for the whole look.
	s.commits.RLock()
	defer s.commits.RUnlock()
	type found struct {
		c *Crawl
		q Queue
	}
	var all []found
	for _, c := range s.openCrawls() {
		err := s.store.Queues(ctx, c.ID, func(q Queue) error {
			if s.shardOf(q.Group) == sh {
				all = append(all, found{c, q})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look for hosts that wait on disk: %w", err)
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.scan, sh.dormant = false, 0
	for _, f := range all {
		if g := sh.groups[f.q.Group]; g != nil && g.find(f.c.ID) != nil {
			continue
		}
		if s.crawl(f.c.ID) == f.c { // not closed meanwhile
			sh.adopt(f.c, f.q, now())
		}
	}
	sh.signal()
	return nil
}

// staysDormant reports whether a fresh entry is left to the store alone: there
// is no room for its host, or the store may hold more of its queue than memory
// has ever heard of, and only a look at all of it counts right.
func (sh *shard) staysDormant(group string, c *Crawl) bool {
	g := sh.groups[group]
	if sh.leases != nil || g != nil && g.find(c.ID) != nil {
		return false
	}
	return sh.dormant > 0 || g == nil && sh.active >= sh.hostLimit()
}

// adopt takes a queue that the store has into memory, or counts it as dormant.
func (sh *shard) adopt(c *Crawl, q Queue, now time.Time) {
	if sh.leases == nil && sh.groups[q.Group] == nil && sh.active >= sh.hostLimit() {
		sh.dormant += q.Count
		return
	}
	g := sh.group(q.Group)
	qq := g.queue(c)
	qq.total = q.Count
	if g.state == parked {
		c.parked.Add(int64(q.Count))
	}
	sh.file(g, now)
}
