package crawl

import (
	"context"
	"iter"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// A crash between the two commits leaves pages that the ledger has and the
// frontier does not know to be done. They are fetched again, and must not be
// paid for or counted a second time. They are among the rows written last.

// repeatRows is how many of those are looked at: more than one commit writes.
const repeatRows = 2 * commitWeight

// lister is a ledger that can show its rows; without one, repeats count twice.
type lister interface {
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
}

func (r *Run) findRepeats(ctx context.Context) error {
	l, ok := r.e.cfg.Ledger.(lister)
	if !ok {
		return nil
	}
	r.repeats = make(map[weburl.Fingerprint]outcome.Outcome)
	for p, err := range l.Pages(ctx, r.ID, ledger.PageFilter{Kind: "page", Desc: true, Limit: repeatRows}) {
		if err != nil {
			return err
		}
		r.repeats[p.FP] = p.Outcome
	}
	return nil
}

// isRepeat reports whether the budget was charged for the entry before.
func (r *Run) isRepeat(en *frontier.Entry) bool {
	if r.repeats == nil {
		return false
	}
	r.repeatMu.Lock()
	defer r.repeatMu.Unlock()
	o, ok := r.repeats[en.Fingerprint()]
	return ok && counted(o)
}

// counted reports whether an outcome is one that tally counts as processed.
func counted(o outcome.Outcome) bool {
	var c ledger.Counters
	tally(&c, o, 1)
	return c.Processed > 0
}

// takeRepeat returns what the ledger said of a page before it was repeated.
func (r *Run) takeRepeat(fp weburl.Fingerprint) (outcome.Outcome, bool) {
	if r.repeats == nil {
		return 0, false
	}
	r.repeatMu.Lock()
	defer r.repeatMu.Unlock()
	o, ok := r.repeats[fp]
	delete(r.repeats, fp)
	return o, ok
}
