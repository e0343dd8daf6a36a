package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var selectPage = "SELECT " + strings.Join(pageColumns, ", ") + " FROM pages"

// Page returns one URL's page with its links. The URL is a canonical one.
func (l *Ledger) Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error) {
	return l.PageByFP(ctx, crawl, weburl.FromCanonical(url).Fingerprint())
}

// PageByFP is Page for somebody who has only the fingerprint.
func (l *Ledger) PageByFP(ctx context.Context, crawl int64, fp weburl.Fingerprint) (ledger.Page, bool, error) {
	var p ledger.Page
	found := false
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(selectPage + " WHERE crawl_id = ?1 AND fp = ?2")
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.int(crawl)
		b.fp(fp)
		err = each(s, func(r scanner) error {
			p, found = scanPage(r), true
			return nil
		})
		if err != nil || !found {
			return err
		}
		return readLinks(c, &p)
	})
	if err != nil {
		return p, false, fmt.Errorf("read page: %w", err)
	}
	return p, found, nil
}

func scanPage(r scanner) ledger.Page {
	p := ledger.Page{ID: r.int(), Crawl: r.int(), FP: r.fp(), URL: r.text(), Host: r.text(),
		Kind: r.text(), Via: r.text(), FoundOn: r.text(), Depth: int(r.int()), Tries: int(r.int()),
		Outcome: r.outcome(), Status: int(r.int()), Error: r.text(),
		ContentType: r.text(), Charset: r.text(), Size: r.int(), WireSize: r.int(),
		Timing: ledger.Timing{DNS: r.durUS(), Connect: r.durUS(), TLS: r.durUS(), TTFB: r.durUS(),
			Transfer: r.durUS(), Total: r.durUS(), Reused: r.bool()},
		FetchedAt: r.ms(), RedirectTo: r.text(), Title: r.text(), Description: r.text(),
		Canonical: r.text(), Lang: r.text(), Hreflang: r.text(), NoIndex: r.bool(), NoFollow: r.bool(),
		LastModified: r.ms(), ContentHash: uint64(r.int()), LinkCount: int(r.int()),
	}
	if r.s.ColumnType(r.i) != sqlite.TypeNull {
		p.Robots = ledger.RobotsDecision{Decided: true, Allowed: r.bool(), Rule: r.text(), Line: int(r.int()),
			CrawlDelay: r.durMS(), FetchedAt: r.ms(), Confidence: r.float(), Ignored: r.bool()}
	}
	return p
}

func readLinks(c *sqlite.Conn, p *ledger.Page) error {
	s, err := c.Prepare("SELECT targets FROM page_links WHERE page_id = ?1")
	if err != nil {
		return err
	}
	return each(bindInts(s, p.ID), func(r scanner) error {
		blob := make([]byte, r.s.ColumnLen(0))
		r.s.ColumnBytes(0, blob)
		p.Links = ledger.DecodeLinks(nil, blob)
		return nil
	})
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
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Page{}, fmt.Errorf("list pages of crawl %d: %w", crawl, err))
		}
	}
}

// errStopped says that the caller left the loop: it must not be called again.
var errStopped = errors.New("the loop was left")

func (l *Ledger) pagesByID(ctx context.Context, crawl int64, f ledger.PageFilter, yield func(ledger.Page, error) bool) error {
	left := f.Limit
	for {
		n := chunkRows
		if f.Limit > 0 {
			n = min(n, left)
		}
		q := pageQuery(crawl, f)
		chunk := make([]ledger.Page, 0, min(n, 512))
		err := l.read(ctx, func(c *sqlite.Conn) error {
			err := q.run(c, selectPage, "ORDER BY id", int64(n),
				func(r scanner) { chunk = append(chunk, scanPage(r)) })
			for i := 0; f.Links && err == nil && i < len(chunk); i++ {
				err = readLinks(c, &chunk[i])
			}
			return err
		})
		if err != nil {
			return err
		}
		for i := range chunk {
			if !yield(chunk[i], nil) {
				return errStopped
			}
		}
		left -= len(chunk)
		if len(chunk) < n || f.Limit > 0 && left == 0 {
			return nil
		}
		f.After = chunk[len(chunk)-1].ID
	}
}

// pagesSorted sorts ids first and reads the pages after, in chunks, so that
// no transaction is open while the caller works.
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
	tail := "ORDER BY " + order + ", id"
	q := pageQuery(crawl, f)
	var ids []int64
	err := l.read(ctx, func(c *sqlite.Conn) error {
		return q.run(c, "SELECT id FROM pages", tail, noLimit(f.Limit), func(r scanner) { ids = append(ids, r.int()) })
	})
	for err == nil && len(ids) > 0 {
		n := min(len(ids), chunkRows)
		chunk := make([]ledger.Page, 0, n)
		err = l.read(ctx, func(c *sqlite.Conn) error {
			s, err := c.Prepare(selectPage + " WHERE id = ?1")
			for i := 0; err == nil && i < n; i++ {
				err = each(bindInts(s, ids[i]), func(r scanner) error {
					chunk = append(chunk, scanPage(r))
					return nil
				})
			}
			for i := 0; f.Links && err == nil && i < len(chunk); i++ {
				err = readLinks(c, &chunk[i])
			}
			return err
		})
		for i := 0; err == nil && i < len(chunk); i++ {
			if !yield(chunk[i], nil) {
				return errStopped
			}
		}
		ids = ids[n:]
	}
	return err
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
	// One lower bound, not two: SQLite seeks by one and filters by the other,
	// which made every chunk of a listing read all those before it.
	q.and("id > ?", max(firstID(crawl), f.After))
	q.and("id < ?", endID(crawl))
	if len(f.Outcomes) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(f.Outcomes)), ", ")
		names := make([]any, len(f.Outcomes))
		for i, o := range f.Outcomes {
			names[i] = o.String()
		}
		q.and("outcome IN ("+marks+")", names...)
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
		q.and("substr(lower(content_type), 1, length(?)) = ?", f.ContentType, f.ContentType)
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
	counts := map[outcome.Outcome]int64{}
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT outcome, count(*) FROM pages WHERE id > ?1 AND id < ?2 AND ifnull(kind, 'page') = 'page' GROUP BY outcome")
		if err != nil {
			return err
		}
		return each(bindInts(s, firstID(crawl), endID(crawl)), func(r scanner) error {
			o := r.outcome()
			counts[o] += r.int()
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("count pages of crawl %d: %w", crawl, err)
	}
	return counts, nil
}
