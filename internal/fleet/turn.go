package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
)

// Run takes part until ctx ends, then gives everything back.
func (m *Manager) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.wake:
		case <-m.cfg.Board.Changed():
			m.news = true
		}
		if ctx.Err() != nil {
			break
		}
		// Once a turn takes longer than half a lease, hosts begin to wait for it.
		stop := crawl.Late(m.cfg.TTL/2, func() {
			what := fmt.Sprintf("the fleet's store does not answer, or only slowly: nothing was renewed for %s", m.cfg.TTL/2)
			m.silence.Store(&what)
		})
		err := m.Turn(ctx)
		stop()
		if err != nil && ctx.Err() == nil {
			if !m.failing {
				m.log.Warn("the fleet's store does not answer; nothing new is fetched until it does", "error", err)
			}
			m.failing = true
			what := "the fleet's store does not answer" // where it is belongs in the log: tenants read this
			m.silence.Store(&what)
		} else {
			m.silence.Store(nil)
			if m.failing {
				m.log.Info("the fleet's store answers again")
			}
			m.failing = false
		}
		timer.Reset(m.cfg.Turn)
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return m.HandBack(leave)
}

// Turn does everything there is to do once. What may have to wait for the ledger
// comes last and has its time, so that hosts that came free do not wait for it.
func (m *Manager) Turn(ctx context.Context) error {
	now := m.cfg.Now()
	ended, err := m.quickly(ctx, now)
	if m.leaving.Load() {
		m.putBack()
	}
	// Also beside an error: what leases brought is not told again.
	if err = errors.Join(err, m.know(ctx)); err != nil {
		return err
	}
	late := m.cfg.Now().Add(m.patience())
	for _, e := range ended {
		if m.cfg.Now().After(late) {
			break // the next turn goes on: leases must be renewed
		}
		if err := m.leave(ctx, e.run, e.cut); err != nil {
			return fmt.Errorf("leave a crawl: %w", err)
		}
	}
	return nil
}

// quickly is the part of a turn that waits for the fleet's store alone. ended
// are crawls that this worker is to leave.
func (m *Manager) quickly(ctx context.Context, now time.Time) (ended []over, err error) {
	if m.overdue(now) {
		m.watch = now.Add(m.cfg.TTL/10 + 2*m.cfg.Turn)
	}
	if err := m.heartbeat(ctx, now); err != nil {
		return nil, err
	}
	// Whoever was silent may have been counted out: it says that it is there
	// before it works for anybody, and then looks whether the crawls are on and
	// what it may do: its leases go on with the renewal.
	if now.Sub(m.told) > m.cfg.TTL/2 {
		if err := m.report(ctx); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if _, err := m.readBoard(ctx); err != nil {
			return nil, fmt.Errorf("read the board: %w", err)
		}
	}
	// News come by themselves; looking without them covers those that got lost,
	// and leases that run out, of which nobody tells.
	look := m.news || now.Before(m.watch) || now.Sub(m.renewed) >= lookAnyway || now.Sub(m.renewed) >= m.cfg.TTL/3
	m.news = false
	if look {
		if err := m.renew(ctx, now); err != nil {
			return nil, err
		}
		m.renewed = now
	}
	// Before the lease: nothing is begun for a crawl that is over or held.
	if ended, err = m.readBoard(ctx); err != nil {
		return nil, fmt.Errorf("read the board: %w", err)
	}
	if look && !m.leaving.Load() {
		if err := m.lease(ctx); err != nil {
			return nil, err
		}
	}
	if err := m.giveBack(ctx, now); err != nil {
		return nil, fmt.Errorf("give leases back: %w", err)
	}
	if err := m.budgets(ctx); err != nil {
		return nil, fmt.Errorf("share budgets: %w", err)
	}
	if err := m.report(ctx); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return ended, nil
}

// silentFor is from when on a worker is taken for dead: the leases that it has
// may run out from now on, for it renewed them at most a look before its last
// heartbeat.
func (m *Manager) silentFor() time.Duration {
	return max(m.cfg.TTL-lookAnyway-2*m.cfg.Turn, m.cfg.TTL/2)
}

// overdue reports whether another worker is silent for so long. One that was
// told to stop is off the list before.
func (m *Manager) overdue(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.workers, func(w frontier.Worker) bool {
		return w.ID != m.cfg.Worker && w.Silent+now.Sub(m.readAt) >= m.silentFor()
	})
}

// patience is how long a turn may wait for the ledger: leases must be renewed
// meanwhile, and taken when they run out.
func (m *Manager) patience() time.Duration {
	if m.cfg.Now().Before(m.watch) {
		return min(m.cfg.Turn, m.cfg.TTL/6)
	}
	return m.cfg.TTL / 6
}

func (m *Manager) heartbeat(ctx context.Context, now time.Time) error {
	if !m.beatAt.IsZero() && now.Sub(m.beatAt) < m.cfg.TTL/10 && !now.Before(m.watch) {
		return nil
	}
	sent := m.cfg.Now()
	roll, err := m.cfg.Board.Heartbeat(ctx, m.self(), m.cfg.TTL)
	if err != nil {
		return err
	}
	m.clock.heard(sent, m.cfg.Now(), roll.At)
	m.number.Store(int64(roll.Number))
	m.beatAt = now
	names := []string{m.cfg.Worker}
	for _, w := range roll.Live {
		if w.ID != m.cfg.Worker && w.Silent < m.silentFor() { // or its hosts would be left to it when they come free
			names = append(names, w.ID)
		}
	}
	slices.Sort(names)
	m.mu.Lock()
	m.news = m.news || !slices.Equal(m.live, names) // hosts of one that is gone may be ours now
	m.workers, m.live, m.readAt = roll.Live, names, now
	m.mu.Unlock()
	return nil
}
