package fleet

import (
	"context"

	"tiptoe/internal/crawl"
)

// Chunks of a budget that a worker takes at once: a part of what is left, so
// that nobody sits on pages that others want.
const maxChunk = 64

// budgets fetches pages for those who want them and returns what nobody uses.
func (m *Manager) budgets(ctx context.Context) error {
	for _, r := range m.runs() {
		p := r.Part()
		if !p.Capped || m.held(r) {
			continue
		}
		// Parked URLs want no pages, and what waits for another try is paid for.
		wants := p.Pending > p.Parked+p.Retrying
		switch {
		case p.Allowance == 0 && (p.Hungry || wants) && !m.leaving.Load():
			got, _, err := m.cfg.Board.Spend(ctx, r.ID, m.cfg.Worker, m.chunk(r))
			if err != nil {
				return err
			}
			r.Allow(got)
		case p.Allowance > 0 && !wants && p.InHand == 0:
			if err := m.handIn(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// held reports whether this process is about to end a crawl that it supervises.
func (m *Manager) held(r *crawl.Run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.supervised[r.ID]
	return s != nil && s.state.Held
}

// handIn gives back the pages that nobody here uses. Without an answer they
// stay spent: they must not be both here and in the budget.
func (m *Manager) handIn(ctx context.Context, r *crawl.Run) error {
	n := r.Unused(1 << 62)
	if n == 0 {
		return nil
	}
	_, _, err := m.cfg.Board.Spend(ctx, r.ID, m.cfg.Worker, -n)
	return err
}

func (m *Manager) chunk(r *crawl.Run) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(max(r.Spec.MaxURLs/int64(4*len(m.live)), 1), maxChunk)
}
