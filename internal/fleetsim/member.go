package fleetsim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// Member is one process's view of the shared store: a frontier.Store and a
// frontier.Board. What it keeps itself is what a client would: its tokens, its
// deadline, and which commits it heard nothing of.
type Member struct {
	s     *shared
	id    uint64
	local func() time.Time // the process's own monotonic clock

	// line carries a call to the store and its reply back; nil: at once and
	// without loss. With an error the effect may have happened or not.
	line func(op string, effect func()) error

	mu       sync.Mutex
	number   int // of its session
	begun    bool
	leases   map[string]uint64
	heard    uint64
	deadline time.Time
	lost     []string
	doubts   map[urlKey]bool
	wake     chan struct{}
}

var _ interface {
	frontier.Store
	frontier.Board
} = (*Member)(nil)

// Shared makes a store that is empty and returns a way to join it, once for each
// process. line carries a call to the store and its reply back, as it can; nil
// carries all. It lives by the clock of time.Now.
func Shared(patience time.Duration) (join func(line func(op string, effect func()) error) *Member) {
	s := newShared(time.Now, patience)
	return func(line func(op string, effect func()) error) *Member {
		m := s.join(time.Now)
		m.line = line
		return m
	}
}

// join adds a process.
func (s *shared) join(local func() time.Time) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	m := &Member{s: s, id: s.clock, local: local, leases: map[string]uint64{}, doubts: map[urlKey]bool{}, wake: make(chan struct{}, 1)}
	s.members = append(s.members, m)
	return m
}

func (m *Member) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// call does something at the store.
func (m *Member) call(op string, effect func()) error {
	locked := func() {
		m.s.mu.Lock()
		defer m.s.mu.Unlock()
		effect()
	}
	if m.line == nil {
		locked()
		return nil
	}
	if err := m.line(op, locked); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

func (m *Member) session() string { return fmt.Sprintf("%d/%d", m.id, m.number) }

// over forgets a session that is dead, with all of its leases.
func (m *Member) over(name string) {
	if m.session() != name {
		return
	}
	m.lost = append(m.lost, slices.Sorted(maps.Keys(m.leases))...)
	m.number, m.begun, m.leases, m.heard, m.deadline = m.number+1, false, map[string]uint64{}, 0, time.Time{}
}

// extend notes that the session lived when a call was sent.
func (m *Member) extend(sent time.Time, ttl time.Duration) {
	m.begun = true
	if d := sent.Add(ttl - ttl/6); d.After(m.deadline) {
		m.deadline = d
	}
}

// Commit implements frontier.Store.
func (m *Member) Commit(_ context.Context, b *frontier.Batch) (added []frontier.Entry, err error) {
	m.mu.Lock()
	f := fence{m.session(), maps.Clone(m.leases)}
	doubt := maps.Clone(m.doubts)
	m.mu.Unlock()
	var fenced []string
	var refused error
	err = m.call("commit", func() { added, fenced, refused = m.s.commit(m, f, doubt, b) })
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Add {
		k := urlKey{b.Add[i].Crawl, b.Add[i].Fingerprint()}
		if err != nil {
			m.doubts[k] = true
		} else {
			delete(m.doubts, k)
		}
	}
	if err != nil || refused != nil {
		return nil, cmp.Or(err, refused)
	}
	if len(fenced) == 0 {
		return added, nil
	}
	for _, g := range fenced {
		if t, held := m.leases[g]; held && t == f.tokens[g] {
			delete(m.leases, g)
			m.lost = append(m.lost, g)
		}
	}
	return added, &frontier.FencedError{Groups: fenced}
}

// Seen implements frontier.Store: from memory, as a cache would.
func (m *Member) Seen(crawl frontier.CrawlID, fp weburl.Fingerprint) bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	k := urlKey{crawl, fp}
	if m.s.seen[k] == 0 {
		return false
	}
	m.s.seen[k]++
	return true
}

// InLinks implements frontier.Store.
func (m *Member) InLinks(crawl frontier.CrawlID, fp weburl.Fingerprint) int {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.s.seen[urlKey{crawl, fp}]
}

// Window implements frontier.Store.
func (m *Member) Window(_ context.Context, group string, crawl frontier.CrawlID, after frontier.Pos, n int, dst []frontier.Entry) ([]frontier.Entry, error) {
	var found []frontier.Entry
	err := m.call("window", func() {
		for _, e := range m.s.queues[queueKey{crawl, group}] {
			if len(found) < n && after.Less(e.Pos()) {
				e.Chain = slices.Clone(e.Chain)
				found = append(found, e)
			}
		}
	})
	if err != nil {
		return dst, err
	}
	return append(dst, found...), nil
}

// Queues implements frontier.Store.
func (m *Member) Queues(_ context.Context, crawl frontier.CrawlID, fn func(frontier.Queue) error) error {
	counts := map[string]int{}
	err := m.call("queues", func() {
		for k, q := range m.s.queues {
			if k.crawl == crawl && len(q) > 0 {
				counts[k.group] = len(q)
			}
		}
	})
	for _, g := range slices.Sorted(maps.Keys(counts)) {
		if err == nil {
			err = fn(frontier.Queue{Group: g, Crawl: crawl, Count: counts[g]})
		}
	}
	return err
}

// Note implements frontier.Store.
func (m *Member) Note(_ context.Context, group, name string) (value []byte, err error) {
	err = m.call("note", func() { value = slices.Clone(m.s.notes[[2]string{group, name}]) })
	if err != nil {
		return nil, err
	}
	return value, nil
}

// OpenCrawl implements frontier.Store.
func (m *Member) OpenCrawl(_ context.Context, crawl frontier.CrawlID) error {
	return m.call("open", func() { m.s.open[crawl] = true })
}

// CloseCrawl implements frontier.Store: nothing of a crawl is kept here.
func (m *Member) CloseCrawl(frontier.CrawlID) {}

// DropCrawl implements frontier.Store.
func (m *Member) DropCrawl(_ context.Context, crawl frontier.CrawlID) error {
	return m.call("drop", func() {
		delete(m.s.open, crawl)
		delete(m.s.spent, int64(crawl))
		for k := range m.s.seen {
			if k.crawl == crawl {
				delete(m.s.seen, k)
			}
		}
		for k := range m.s.queues {
			if k.crawl == crawl {
				delete(m.s.queues, k)
				m.s.offer(k.group)
			}
		}
	})
}

// Close implements frontier.Store.
func (m *Member) Close() error { return nil }
