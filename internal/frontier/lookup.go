package frontier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/politeness"
)

// Place is where a queued entry is.
type Place string

// The places. Only the scheduler that holds an entry can tell them apart; to
// the store alone all of them are "on disk".
const (
	OnDisk    Place = "disk"    // waits in the store, behind the window
	InWindow  Place = "window"  // waits in memory
	ForRetry  Place = "retry"   // waits for its own next try
	ForRobots Place = "robots"  // waits for its host's robots.txt
	InHand    Place = "in_hand" // handed out: in flight, or its end is being written
	Dormant   Place = "dormant" // its whole host waits on disk for room in memory
)

// Host returns one group as people see it; false if memory does not hold it.
func (s *Scheduler) Host(group string, now time.Time) (HostView, bool) {
	sh := s.shardOf(group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := sh.groups[group]
	if g == nil || !g.loaded {
		return HostView{}, false
	}
	return g.view(now), true
}

// Whereabouts says where a queued entry is now.
func (s *Scheduler) Whereabouts(r Ref) Place {
	sh := s.shardOf(r.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := sh.groups[r.Group]
	if g == nil || g.find(r.Crawl) == nil {
		return Dormant
	}
	q := g.find(r.Crawl)
	is := func(e Entry) bool { return e.ID == r.Pos.ID }
	if _, out := q.out[r.Pos.ID]; !out {
		if slices.ContainsFunc(q.window[q.head:], is) {
			return InWindow
		}
		return OnDisk
	}
	if slices.ContainsFunc(q.delayed, is) {
		return ForRetry
	}
	for _, o := range g.origins {
		if slices.ContainsFunc(o.held, func(h heldEntry) bool { return h.q == q && is(h.e) }) {
			return ForRobots
		}
	}
	return InHand
}

// RobotsCopy returns the copy of an origin's robots.txt that decides now; false
// if memory holds none. It is the caller's own.
func (s *Scheduler) RobotsCopy(group, origin string) (*RobotsCopy, bool) {
	sh := s.shardOf(group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := sh.groups[group]
	if g == nil {
		return nil, false
	}
	for _, o := range g.origins {
		if o.name == origin && o.state == originKnown {
			c := *o.copy
			c.Compiled = nil // stays with the shard
			return &c, true
		}
	}
	return nil, false
}

// StoredClocks reads a group's clocks as they were last written; false if there
// are none.
func StoredClocks(ctx context.Context, store Store, group string) (politeness.State, bool, error) {
	var st politeness.State
	b, err := store.Note(ctx, group, clocksNoteName)
	if err != nil || b == nil {
		return st, false, err
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return st, false, fmt.Errorf("read stored clocks of %s: %w", group, err)
	}
	return st, true, nil
}

// StoredRobots reads an origin's robots.txt as it was last written; nil if
// there is none.
func StoredRobots(ctx context.Context, store Store, group, origin string) (*RobotsCopy, error) {
	b, err := store.Note(ctx, group, robotsNotePrefix+origin)
	if err != nil || b == nil {
		return nil, err
	}
	return decodeRobots(b)
}
