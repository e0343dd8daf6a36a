package fleet

import (
	"context"
	"maps"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
)

func (m *Manager) prefers(group string) bool {
	m.mu.Lock()
	live := m.live
	m.mu.Unlock()
	return frontier.Prefers(m.cfg.Worker, live, frontier.DomainOfGroup(group))
}

// renew extends the leases, forgets those that were lost and hears what others
// added.
func (m *Manager) renew(ctx context.Context, now time.Time) error {
	s := m.engine.Scheduler()
	err := s.Exclusive(func() error {
		lost, news, err := m.cfg.Board.Renew(ctx, m.cfg.Worker, m.cfg.TTL)
		if len(lost) > 0 {
			m.log.Warn("leases were lost; others have these hosts now", "hosts", len(lost))
			s.Drop(lost, now)
		}
		m.unmet.note(s.Refresh(news, now), news)
		return err // what came beside it is not told again
	})
	s.Renewed(now)
	return err
}

// lease takes what is free, and what robots.txt files lead to.
func (m *Manager) lease(ctx context.Context) (err error) {
	s := m.engine.Scheduler()
	take := func(got ...frontier.Lease) {
		m.unmet.note(s.Take(got, m.cfg.Now()), got)
		for _, l := range got {
			if !m.prefers(l.Group) { // it was free for long
				m.lent[l.Group] = m.cfg.Now().Add(lentFor)
			}
		}
		if m.leaving.Load() {
			s.Drain(names(got), m.cfg.Now())
		}
	}
	_, room := s.Leased()
	if n := min(room, m.cfg.Groups); n > 0 {
		err = s.Exclusive(func() error {
			got, err := m.cfg.Board.Acquire(ctx, m.cfg.Worker, m.cfg.TTL, n, m.prefers)
			take(got...)
			return err
		})
	}
	for _, group := range s.Wanted() {
		if err != nil {
			break
		}
		err = s.Exclusive(func() error {
			l, ok, err := m.cfg.Board.Claim(ctx, m.cfg.Worker, m.cfg.TTL, group)
			if ok {
				take(l)
			}
			return err
		})
	}
	return err
}

// giveBack releases what has no work and what another worker should have.
func (m *Manager) giveBack(ctx context.Context, now time.Time) error {
	s := m.engine.Scheduler()
	s.Drain(m.misplaced(s.Movable()), now)
	idle := now.Add(-idleFor)
	drained := s.Drained(idle)
	if len(drained) > 0 {
		m.engine.NoteHosts() // for people, in the ledger; the committer writes it
	}
	return m.release(ctx, drained, idle)
}

// movedAtOnce bounds how many groups change hands in one turn, so that a new
// worker does not stop the others.
const movedAtOnce = 64

// lentFor is how long a group stays with a worker that took it because nobody
// else did: given back at once it would be free for long again.
const lentFor = time.Minute

func (m *Manager) misplaced(held []frontier.Lease) (groups []string) {
	now := m.cfg.Now()
	maps.DeleteFunc(m.lent, func(_ string, until time.Time) bool { return now.After(until) })
	for _, l := range held {
		if _, lent := m.lent[l.Group]; !lent && !m.prefers(l.Group) {
			groups = append(groups, l.Group)
		}
		if len(groups) == movedAtOnce {
			break
		}
	}
	return groups
}

// release gives drained groups back, but for those that have work by the time
// that their clocks are written.
func (m *Manager) release(ctx context.Context, leases []frontier.Lease, idle time.Time) error {
	if len(leases) == 0 {
		return nil
	}
	s := m.engine.Scheduler()
	// Their clocks first: the next owner waits for what this one owes.
	if _, err := s.Commit(ctx, &frontier.Batch{}, m.cfg.Now()); err != nil {
		return err
	}
	return s.Exclusive(func() error {
		return m.cfg.Board.Release(ctx, s.LetGo(leases, idle))
	})
}

// HandBack returns all leases at the end; by then nothing is in flight. A group of
// which something could not be committed is left to its lease's end.
func (m *Manager) HandBack(ctx context.Context) error {
	m.Leaving()
	held := m.engine.Scheduler().Held()
	for _, r := range m.runs() {
		_ = m.handIn(ctx, r) // or they stay spent
		_ = m.unreport(ctx, r.ID)
	}
	// For people, in the ledger. Without an answer they miss what was learned
	// last; a stop must not wait for it.
	soon, cancel := context.WithTimeout(ctx, min(m.cfg.TTL/6, crawl.Grace))
	defer cancel()
	if err := m.engine.WriteHosts(soon); err != nil {
		m.log.Warn("what was learned about hosts is not in the ledger yet", "error", err)
	}
	if err := m.release(ctx, held, m.cfg.Now()); err != nil {
		return err
	}
	_, err := m.cfg.Board.Heartbeat(ctx, frontier.Worker{ID: m.cfg.Worker}, 0)
	return err
}

func names(leases []frontier.Lease) []string {
	groups := make([]string, len(leases))
	for i, l := range leases {
		groups[i] = l.Group
	}
	return groups
}
