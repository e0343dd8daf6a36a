package fleet

import (
	"context"
	"slices"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// enlist says that this worker is about to work for a crawl, and then looks
// whether it is on. In this order: whoever ends the crawl holds it first and
// then looks who works for it, so one of the two sees the other.
func (m *Manager) enlist(ctx context.Context, id int64) (on bool, err error) {
	rep := frontier.Report{Crawl: id, Worker: m.cfg.Worker, At: m.cfg.Now(), Counters: counters(ledger.Counters{})}
	if err := m.cfg.Board.Report(ctx, rep, m.reportsStand()); err != nil {
		return false, err
	}
	list, err := m.cfg.Board.Crawls(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(list, func(c frontier.Announced) bool { return c.ID == id && !c.Held }) {
		return true, nil
	}
	return false, m.unreport(ctx, id)
}

// reportsStand is how long a report is kept: until its worker's leases are gone.
func (m *Manager) reportsStand() time.Duration { return reportsLast*m.cfg.Turn + m.cfg.TTL }

// announce puts a crawl on the board. One that was taken off it and goes on has
// used a part of its budget: the rows say how much.
func (m *Manager) announce(ctx context.Context, s *supervision, c frontier.Announced) error {
	if c.Cap > 0 && !s.counted {
		used, err := m.engine.Processed(ctx, c.ID)
		if err == nil {
			err = m.cfg.Board.Recount(ctx, c.ID, 0, used)
		}
		if err != nil {
			return err
		}
		s.counted = true
	}
	return m.cfg.Board.Announce(ctx, c)
}

// unreport says that this worker has left a crawl.
func (m *Manager) unreport(ctx context.Context, crawl int64) error {
	return m.cfg.Board.Report(ctx, frontier.Report{Crawl: crawl, Worker: m.cfg.Worker}, 0)
}
