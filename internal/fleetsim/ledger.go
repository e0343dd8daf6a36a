package fleetsim

import (
	"context"
	"fmt"
	"iter"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// books is a ledger in memory that all workers write to.
type books struct {
	crawls  map[int64]ledger.Crawl
	pages   map[weburl.Fingerprint]ledger.Page
	order   []weburl.Fingerprint
	domains map[string]ledger.Domain
}

func newBooks() *books {
	return &books{crawls: map[int64]ledger.Crawl{}, pages: map[weburl.Fingerprint]ledger.Page{}, domains: map[string]ledger.Domain{}}
}

func (b *books) CreateCrawl(_ context.Context, c *ledger.Crawl) (int64, error) {
	c.ID = int64(len(b.crawls) + 1)
	b.crawls[c.ID] = *c
	return c.ID, nil
}

func (b *books) UpdateCrawl(context.Context, *ledger.Crawl) error { return nil }

func (b *books) Crawl(_ context.Context, id int64) (ledger.Crawl, error) {
	c, ok := b.crawls[id]
	if !ok {
		return c, fmt.Errorf("no crawl %d", id)
	}
	return c, nil
}

func (b *books) Commit(_ context.Context, batch *ledger.Batch) error {
	for _, p := range batch.Pages {
		old, ok := b.pages[p.FP]
		if ok && old.Tries > 0 && p.Tries == 0 {
			continue // a skip never replaces a fetch
		}
		if !ok {
			b.order = append(b.order, p.FP)
		}
		b.pages[p.FP] = p
	}
	for _, d := range batch.Domains {
		b.domains[d.Host] = d
	}
	return nil
}

func (b *books) PageCounts(context.Context, int64) (map[outcome.Outcome]int64, error) {
	m := map[outcome.Outcome]int64{}
	for _, p := range b.pages {
		m[p.Outcome]++
	}
	return m, nil
}

// Pages lists newest first, which is all that a resume asks for.
func (b *books) Pages(_ context.Context, _ int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		for i, n := len(b.order)-1, 0; i >= 0 && n < f.Limit; i, n = i-1, n+1 {
			if !yield(b.pages[b.order[i]], nil) {
				return
			}
		}
	}
}

func (b *books) Domain(_ context.Context, host string) (ledger.Domain, bool, error) {
	d, ok := b.domains[host]
	return d, ok, nil
}
