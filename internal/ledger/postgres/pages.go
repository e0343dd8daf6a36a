package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

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
		q := pageQuery(crawl, f)
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
	order, ok := pageOrders[f.Sort]
	if !ok {
		return fmt.Errorf("unknown order %q", f.Sort)
	}
	if f.After != 0 {
		return errors.New("a cursor works only in the order in which pages were found")
	}
	if f.Desc {
		order += " DESC"
	}
	q := pageQuery(crawl, f)
	text := "SELECT id FROM pages " + q.where() + " ORDER BY " + order + ", id"
	if f.Limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	ids, err := list(ctx, l, ledger.Reader.Int, text, q.args...)
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

var pageOrders = map[ledger.Sort]string{
	ledger.ByFound:  "id",
	ledger.ByURL:    "url",
	ledger.ByHost:   "host",
	ledger.ByStatus: "coalesce(status, 0)",
	ledger.BySize:   "coalesce(size, 0)",
	ledger.ByTime:   "coalesce(total_us, 0)",
	ledger.ByDepth:  "depth",
	ledger.ByLinks:  "coalesce(link_count, 0)",
}

func pageQuery(crawl int64, f ledger.PageFilter) query {
	var q query
	q.and("id > ?", max(firstID(crawl), f.After))
	q.and("id < ?", endID(crawl))
	if len(f.Outcomes) > 0 {
		names := make([]string, len(f.Outcomes))
		for i, o := range f.Outcomes {
			names[i] = o.String()
		}
		q.and("outcome = ANY(?)", names)
	}
	if f.Status != nil {
		q.and("coalesce(status, 0) BETWEEN ? AND ?", int64(f.Status.Min), int64(f.Status.Max))
	}
	if f.Depth != nil {
		q.and("depth BETWEEN ? AND ?", int64(f.Depth.Min), int64(f.Depth.Max))
	}
	if strings.Contains(f.Host, "*") {
		q.match("host", f.Host)
	} else if f.Host != "" {
		q.and("host = ?", f.Host)
	}
	if f.Kind != "" {
		q.and("kind = ?", f.Kind)
	}
	if f.ContentType != "" {
		q.and("starts_with(lower(content_type), ?)", f.ContentType)
	}
	if f.MinTotal > 0 {
		q.and("total_us >= ?", f.MinTotal.Microseconds())
	}
	if f.Match != "" {
		q.match("url", f.Match)
	}
	return q
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
		firstID(crawl), endID(crawl))
	if err != nil {
		return nil, fmt.Errorf("count pages of crawl %d: %w", crawl, err)
	}
	counts := make(map[outcome.Outcome]int64, len(all))
	for _, c := range all {
		counts[c.outcome] += c.pages
	}
	return counts, nil
}
