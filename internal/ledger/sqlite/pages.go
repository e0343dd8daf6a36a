package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var selectPage = "SELECT id, " + ledger.PageTable.List() + " FROM pages"

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
		b := bind(s)
		b.Int(crawl)
		b.FP(fp)
		err = each(s, func(r ledger.Reader) error {
			p, found = ledger.ScanPage(r), true
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

func readLinks(c *sqlite.Conn, p *ledger.Page) error {
	s, err := c.Prepare("SELECT targets FROM page_links WHERE page_id = ?1")
	if err != nil {
		return err
	}
	return each(bindInts(s, p.ID), func(r ledger.Reader) error {
		p.Links = ledger.DecodeLinks(nil, r.Blob())
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
		var q query
		f.Choose(crawl, &q)
		chunk := make([]ledger.Page, 0, min(n, 512))
		err := l.read(ctx, func(c *sqlite.Conn) error {
			err := q.run(c, selectPage, "ORDER BY id", int64(n), func(r ledger.Reader) { chunk = append(chunk, ledger.ScanPage(r)) })
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
	tail, err := f.Order()
	if err != nil {
		return err
	}
	var q query
	f.Choose(crawl, &q)
	var ids []int64
	err = l.read(ctx, func(c *sqlite.Conn) error {
		return q.run(c, "SELECT id FROM pages", tail, noLimit(f.Limit), func(r ledger.Reader) { ids = append(ids, r.Int()) })
	})
	for err == nil && len(ids) > 0 {
		n := min(len(ids), chunkRows)
		chunk := make([]ledger.Page, 0, n)
		err = l.read(ctx, func(c *sqlite.Conn) error {
			s, err := c.Prepare(selectPage + " WHERE id = ?1")
			for i := 0; err == nil && i < n; i++ {
				err = each(bindInts(s, ids[i]), func(r ledger.Reader) error {
					chunk = append(chunk, ledger.ScanPage(r))
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

// PageCounts counts a crawl's pages by outcome; sitemaps and outside indexes
// are no pages.
func (l *Ledger) PageCounts(ctx context.Context, crawl int64) (map[outcome.Outcome]int64, error) {
	counts := map[outcome.Outcome]int64{}
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT outcome, count(*) FROM pages WHERE id > ?1 AND id < ?2 AND ifnull(kind, 'page') = 'page' GROUP BY outcome")
		if err != nil {
			return err
		}
		return each(bindInts(s, ledger.BeforePages(crawl), ledger.AfterPages(crawl)), func(r ledger.Reader) error {
			o := r.Outcome()
			counts[o] += r.Int()
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("count pages of crawl %d: %w", crawl, err)
	}
	return counts, nil
}
