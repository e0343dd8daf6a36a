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
	rep := frontier.Report{Crawl: id, Worker: m.cfg.Worker, At: m.cfg.Now(), Counters: numbers(ledger.Counters{})}
	if err := m.cfg.Board.Report(ctx, rep, m.reportsStand()); err != nil {
		return false, err
	}
	list, err := m.cfg.Board.Crawls(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(list, func(c frontier.Announced) bool { return c.ID == id && !c.Held && !m.stale(&c) }) {
		return true, nil
	}
	return false, m.unreport(ctx, id)
}

// reportsStand is how long a report is kept: until its worker's leases are gone.
func (m *Manager) reportsStand() time.Duration { return reportsLast*m.cfg.Turn + m.cfg.TTL }

// unreport says that this worker has left a crawl.
func (m *Manager) unreport(ctx context.Context, crawl int64) error {
	return m.cfg.Board.Report(ctx, frontier.Report{Crawl: crawl, Worker: m.cfg.Worker}, 0)
}
