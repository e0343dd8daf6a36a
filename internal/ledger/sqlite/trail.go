package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// Evidence returns every stored reason about one URL, the robots decision
// included, oldest first.
func (l *Ledger) Evidence(ctx context.Context, crawl int64, url string) ([]ledger.Evidence, error) {
	var all []ledger.Evidence
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT " + ledger.EvidenceColumns + " FROM evidence WHERE crawl_id = ?1 AND fp = ?2 ORDER BY at_ms, type")
		if err != nil {
			return err
		}
		b := bind(s)
		b.Int(crawl)
		b.FP(weburl.FromCanonical(url).Fingerprint())
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.ScanEvidence(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return all, nil
}

// Requests lists a crawl's requests in the order in which they started. The
// URL of a page's request is empty: PageByFP has it. It costs eight bytes of
// memory a request.
func (l *Ledger) Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error] {
	return func(yield func(ledger.Request, error) bool) {
		if err := l.requests(ctx, crawl, yield); err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Request{}, fmt.Errorf("list requests of crawl %d: %w", crawl, err))
		}
	}
}

func (l *Ledger) requests(ctx context.Context, crawl int64, yield func(ledger.Request, error) bool) error {
	var permits []int64
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT permit FROM requests WHERE crawl_id = ?1 ORDER BY started_us, permit")
		if err != nil {
			return err
		}
		return each(bindInts(s, crawl), func(r ledger.Reader) error {
			permits = append(permits, r.Int())
			return nil
		})
	})
	for err == nil && len(permits) > 0 {
		n := min(len(permits), chunkRows)
		chunk := make([]ledger.Request, 0, n)
		err = l.read(ctx, func(c *sqlite.Conn) error {
			s, err := c.Prepare("SELECT " + requestColumns + " FROM requests AS r WHERE crawl_id = ?1 AND permit = ?2")
			for i := 0; err == nil && i < n; i++ {
				err = each(bindInts(s, crawl, permits[i]), func(r ledger.Reader) error {
					chunk = append(chunk, ledger.ScanRequest(r))
					return nil
				})
			}
			return err
		})
		for i := 0; err == nil && i < len(chunk); i++ {
			if !yield(chunk[i], nil) {
				return errStopped
			}
		}
		permits = permits[n:]
	}
	return err
}

var requestColumns = "r." + strings.Join(ledger.RequestTable.Names, ", r.")

// LinksTo finds the pages that link to any of the targets, which are low
// halves of fingerprints, and names the first perTarget of them for each (all
// if 0). It reads every link of the crawl once.
func (l *Ledger) LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error) {
	found := make(map[uint64]*ledger.Linkers, len(targets))
	for _, t := range targets {
		found[t] = &ledger.Linkers{}
	}
	after := ledger.BeforePages(crawl)
	var err error
	for err == nil {
		n := 0
		err = l.read(ctx, func(c *sqlite.Conn) error {
			s, err := c.Prepare("SELECT page_id, targets FROM page_links WHERE page_id > ?1 AND page_id < ?2 ORDER BY page_id LIMIT ?3")
			if err != nil {
				return err
			}
			var blob []byte
			return each(bindInts(s, after, ledger.AfterPages(crawl), chunkRows), func(r ledger.Reader) error {
				n++
				after = r.Int()
				if size := s.ColumnLen(1); cap(blob) < size {
					blob = make([]byte, size)
				}
				blob = blob[:s.ColumnBytes(1, blob[:cap(blob)])]
				for b := blob; len(b) >= 8; b = b[8:] {
					if w := found[binary.LittleEndian.Uint64(b)]; w != nil {
						w.Add(after, perTarget)
					}
				}
				return nil
			})
		})
		if n < chunkRows {
			break
		}
	}
	if err == nil {
		var result map[uint64]ledger.LinkSources
		if result, err = l.nameLinkers(ctx, found); err == nil {
			return result, nil
		}
	}
	return nil, fmt.Errorf("find links: %w", err)
}

func (l *Ledger) nameLinkers(ctx context.Context, found map[uint64]*ledger.Linkers) (map[uint64]ledger.LinkSources, error) {
	names := map[int64]string{} // a page with one broken link often has more
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT url FROM pages WHERE id = ?1")
		for _, w := range found {
			for _, id := range w.IDs {
				if _, ok := names[id]; ok || err != nil {
					continue
				}
				err = each(bindInts(s, id), func(r ledger.Reader) error { names[id] = r.Text(); return nil })
			}
		}
		return err
	})
	return ledger.Sources(found, names), err
}
