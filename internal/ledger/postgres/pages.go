package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// pageColumns in the order of scanPage; link_targets is asked for only when
// it is wanted.
var pageColumns = "pages.id, " + ledger.PageTable.List()

func selectPage(links bool) string {
	if links {
		return "SELECT " + pageColumns + ", link_targets FROM pages"
	}
	return "SELECT " + pageColumns + ", NULL::bytea FROM pages"
}

// Page returns one URL's page with its links. The URL is a canonical one.
func (l *Ledger) Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error) {
	return l.PageByFP(ctx, crawl, weburl.FromCanonical(url).Fingerprint())
}

// PageByFP is Page for somebody who has only the fingerprint.
func (l *Ledger) PageByFP(ctx context.Context, crawl int64, fp weburl.Fingerprint) (ledger.Page, bool, error) {
	p, found, err := one(ctx, l, scanPage, selectPage(true)+" WHERE crawl_id = $1 AND fp = $2", crawl, ledger.AppendFP(nil, fp))
	if err != nil {
		return p, false, fmt.Errorf("read page: %w", err)
	}
	return p, found, nil
}

func scanPage(r ledger.Reader) ledger.Page {
	p := ledger.ScanPage(r)
	p.Links = ledger.DecodeLinks(nil, r.Blob())
	return p
}

// Pages lists a crawl's pages. It holds no more than chunkRows of them in
// memory; an order other than ByFound also costs eight bytes for each page
// that is listed.
func (l *Ledger) Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		var err error
		if f.Sort == ledger.ByFound && !f.Desc {
			err = l.pagesByID(ctx, crawl, f, yield)
		} else {
			err = l.pagesSorted(ctx, crawl, f, yield)
		}
		if err != nil {
			yield(ledger.Page{}, fmt.Errorf("list pages of crawl %d: %w", crawl, err))
		}
	}
}

func (l *Ledger) pagesByID(ctx context.Context, crawl int64, f ledger.PageFilter, yield func(ledger.Page, error) bool) error {
	return chunks(f.Limit, yield, func(n int) ([]ledger.Page, error) {
		var q query
		f.Choose(crawl, &q)
		chunk, err := list(ctx, l, scanPage, fmt.Sprintf("%s %s ORDER BY id LIMIT %d", selectPage(f.Links), q.where(), n), q.args...)
		if len(chunk) > 0 {
			f.After = chunk[len(chunk)-1].ID
		}
		return chunk, err
	})
}

// pagesSorted sorts ids first and reads the pages after, in chunks, so that
// no connection is held while the caller works.
func (l *Ledger) pagesSorted(ctx context.Context, crawl int64, f ledger.PageFilter, yield func(ledger.Page, error) bool) error {
	order, err := f.Order()
	if err != nil {
		return err
	}
	var q query
	f.Choose(crawl, &q)
	if f.Limit > 0 {
		order += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	ids, err := list(ctx, l, ledger.Reader.Int, "SELECT id FROM pages "+q.where()+" "+order, q.args...)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ids, chunkRows) {
		chunk, err := list(ctx, l, scanPage, selectPage(f.Links)+
			" JOIN unnest($1::bigint[]) WITH ORDINALITY AS wanted (id, place) ON pages.id = wanted.id ORDER BY place", part)
		if err != nil {
			return err
		}
		for i := range chunk {
			if !yield(chunk[i], nil) {
				return nil
			}
		}
	}
	return nil
}

// PageCounts counts a crawl's pages by outcome; sitemaps and outside indexes
// are no pages.
func (l *Ledger) PageCounts(ctx context.Context, crawl int64) (map[outcome.Outcome]int64, error) {
	type count struct {
		outcome outcome.Outcome
		pages   int64
	}
	all, err := list(ctx, l, func(r ledger.Reader) count { return count{r.Outcome(), r.Int()} },
		"SELECT outcome, count(*) FROM pages WHERE id > $1 AND id < $2 AND coalesce(kind, 'page') = 'page' GROUP BY outcome",
		ledger.BeforePages(crawl), ledger.AfterPages(crawl))
	if err != nil {
		return nil, fmt.Errorf("count pages of crawl %d: %w", crawl, err)
	}
	counts := make(map[outcome.Outcome]int64, len(all))
	for _, c := range all {
		counts[c.outcome] += c.pages
	}
	return counts, nil
}
