package crawl

import (
	"context"
	"iter"
	"strings"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/scope"
	"tiptoe/internal/weburl"
)

// releaseBatch is how many URLs one commit takes out of quarantine.
const releaseBatch = 1000

// ReleaseTraps queues URLs that were set aside as traps and whose URL contains
// text ("" for all), and trusts their patterns for the rest of this run. pages
// lists the crawl's pages; others than traps are passed over. A crash between
// two of its commits leaves the rest set aside.
func (r *Run) ReleaseTraps(ctx context.Context, pages iter.Seq2[ledger.Page, error], text string) (int, error) {
	n := 0
	var b frontier.Batch
	flush := func() error {
		added, err := r.e.sched.Commit(ctx, &b, r.e.cfg.Now())
		n += len(added)
		b = frontier.Batch{}
		return err
	}
	for p, err := range pages {
		if err != nil {
			return n, err
		}
		if p.Outcome != outcome.Trap || !strings.Contains(p.URL, text) {
			continue
		}
		u := weburl.FromCanonical(p.URL)
		r.tracker.trust(scope.PatternOf(u))
		b.Add = append(b.Add, frontier.Entry{
			Crawl: r.fc.ID, Group: r.e.cfg.GroupOf(u.HostKey()), Prio: prioOf(max(p.Depth, 1)), Kind: frontier.KindPage,
			Via: frontier.ViaLink, URL: p.URL, Depth: uint16(min(p.Depth, 65535)),
			TrustPrivate: r.isSeedHost(u.HostKey()), FoundOn: p.FoundOn, Again: true,
		})
		if len(b.Add) == releaseBatch {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	return n, flush()
}

func (t *tracker) trust(pattern string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.Trust(pattern)
}
