package fleetsim

import (
	"context"
	"fmt"
	"iter"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// desk is one worker's line to the books.
type desk struct {
	*books
	w *worker
}

func (d *desk) Crawl(ctx context.Context, id int64) (c ledger.Crawl, err error) {
	if lost := d.w.call("ledger", func() { c, err = d.books.Crawl(ctx, id) }); lost != nil {
		return c, lost
	}
	return c, err
}

func (d *desk) Commit(ctx context.Context, b *ledger.Batch) error {
	return d.w.call("ledger", func() { d.w.s.wrote(d.w, b); _ = d.books.Commit(ctx, b) })
}

func (d *desk) PageCounts(ctx context.Context, crawl int64) (counts map[outcome.Outcome]int64, err error) {
	err = d.w.call("ledger", func() { counts, _ = d.books.PageCounts(ctx, crawl) })
	return counts, err
}

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

// remember notes that a host has failed so often that it is parked when it
// fails once more.
func (b *books) remember(host string, at time.Time) {
	b.domains[host] = crawl.DomainRow(host, politeness.State{Failures: politeness.ParkAfter - 1, Updated: at})
}

// processed counts the pages that a budget has paid for.
func processed(counts map[outcome.Outcome]int64) (n int64) {
	for o, c := range counts {
		if o != outcome.Robots && o != outcome.Parked {
			n += c
		}
	}
	return n
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
	for _, c := range batch.Crawls {
		if c.Worker == "" {
			b.crawls[c.ID] = c
		}
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
