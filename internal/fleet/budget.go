package fleet

import (
	"context"
	"time"

	"tiptoe/internal/crawl"
)

// refund returns the pages that nobody here has used. Without an answer they are
// gone all the same: pages that are given back twice would lift the cap, those
// that nobody has are recounted.
func (m *Manager) refund(ctx context.Context, r *crawl.Run) error {
	n := r.Unused(1 << 62)
	if n == 0 {
		return nil
	}
	_, _, err := m.cfg.Board.Spend(ctx, r.ID, m.cfg.Worker, -n)
	return err
}

// forfeit drops the pages of one whose reports have not been heard for so long
// that they may have been recounted.
func (m *Manager) forfeit(now time.Time) {
	if now.Sub(m.told) <= m.cfg.TTL {
		return
	}
	for _, r := range m.runs() {
		r.Unused(1 << 62)
	}
}
