package fleetsim

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// desk is one worker's line to the books.
type desk struct {
	*Books
	w *worker
}

func (d *desk) Crawl(ctx context.Context, id int64) (c ledger.Crawl, err error) {
	if lost := d.w.call("ledger", func() { c, err = d.Books.Crawl(ctx, id) }); lost != nil {
		return c, lost
	}
	return c, err
}

func (d *desk) Commit(ctx context.Context, b *ledger.Batch) error {
	return d.w.call("ledger", func() { d.w.s.wrote(d.w, b); _ = d.Books.Commit(ctx, b) })
}

func (d *desk) PageCounts(ctx context.Context, crawl int64) (counts map[outcome.Outcome]int64, err error) {
	err = d.w.call("ledger", func() { counts, _ = d.Books.PageCounts(ctx, crawl) })
	return counts, err
}

// Books are a ledger in memory that all workers write to.
type Books struct {
	mu      sync.Mutex
	crawls  map[int64]ledger.Crawl
	pages   map[weburl.Fingerprint]ledger.Page
	order   []weburl.Fingerprint
	domains map[string]ledger.Domain
}

// NewBooks are empty.
func NewBooks() *Books {
	return &Books{crawls: map[int64]ledger.Crawl{}, pages: map[weburl.Fingerprint]ledger.Page{}, domains: map[string]ledger.Domain{}}
}

// remember notes that a host has failed so often that it is parked when it
// fails once more.
func (b *Books) remember(host string, at time.Time) {
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

func (b *Books) CreateCrawl(_ context.Context, c *ledger.Crawl) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.ID = int64(len(b.crawls) + 1)
	b.crawls[c.ID] = *c
	return c.ID, nil
}

func (b *Books) UpdateCrawl(context.Context, *ledger.Crawl) error { return nil }

func (b *Books) Crawl(_ context.Context, id int64) (ledger.Crawl, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.crawls[id]
	if !ok {
		return c, fmt.Errorf("no crawl %d", id)
	}
	return c, nil
}

// Commit leaves out what comes after a crawl's end, as the ledgers do.
func (b *Books) Commit(_ context.Context, batch *ledger.Batch) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late []int64
	for id, c := range b.crawls {
		if c.Status.Done() && batch.PartOf(id) {
			late = append(late, id)
		}
	}
	batch.Late = late
	if late != nil {
		batch = batch.Without(late)
	}
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

func (b *Books) PageCounts(context.Context, int64) (map[outcome.Outcome]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := map[outcome.Outcome]int64{}
	for _, p := range b.pages {
		m[p.Outcome]++
	}
	return m, nil
}

// Pages lists newest first, which is all that a resume asks for.
func (b *Books) Pages(_ context.Context, _ int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, n := len(b.order)-1, 0; i >= 0 && n < f.Limit; i, n = i-1, n+1 {
			if !yield(b.pages[b.order[i]], nil) {
				return
			}
		}
	}
}

func (b *Books) Domain(_ context.Context, host string) (ledger.Domain, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.domains[host]
	return d, ok, nil
}
