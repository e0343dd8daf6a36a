package sqlite

import (
	"context"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// The statement for a new page does nothing if the page exists; then the
// second, with the same parameters, replaces it. RETURNING on the first would
// save that detour for the rare page at the price of an ephemeral table for
// every one.
var (
	insertPage = "INSERT INTO pages (" + ledger.PageTable.List() + ", id) VALUES (" +
		placeholders(len(ledger.PageTable.Names)+1) + ") ON CONFLICT (crawl_id, fp) DO NOTHING"
	updatePage = "UPDATE pages SET " + assignments(ledger.PageTable.Names[2:], 3) + " WHERE crawl_id = ?1 AND fp = ?2 AND NOT " +
		ledger.PageKeeps(fmt.Sprintf("?%d", slices.Index(ledger.PageTable.Names, "fetched_ms")+1)) + " RETURNING id"

	putLinks = "INSERT INTO page_links (page_id, targets) VALUES (?1, ?2) ON CONFLICT (page_id) DO UPDATE SET targets = excluded.targets"

	putRequest = "INSERT OR REPLACE INTO requests (" + ledger.RequestTable.List() + ") VALUES (" +
		placeholders(len(ledger.RequestTable.Names)) + ")"

	putEvidence = "INSERT OR REPLACE INTO evidence_log (" + ledger.EvidenceTable.List() + ") VALUES (" +
		placeholders(len(ledger.EvidenceTable.Names)) + ")"
)

// encoder keeps the scratch memory of Commit.
type encoder struct {
	blob   []byte
	pages  map[pageKey]struct{}
	params params
}

// row is bind without memory of its own; there is one at a time.
func (e *encoder) row(s *sqlite.Stmt) ledger.Writer {
	e.params = params{s: s}
	return ledger.Writer{Row: &e.params}
}

type pageKey struct {
	crawl int64
	fp    weburl.Fingerprint
}

// Commit writes a batch in one transaction. After an error nothing of it is
// stored, unless the error came from the commit itself and its answer was
// lost; committing the batch again is right in either case.
func (l *Ledger) Commit(ctx context.Context, b *ledger.Batch) error {
	whole := b
	err := l.write(ctx, func(c *sqlite.Conn) error {
		b := whole
		late, err := checkCrawls(c, b)
		if err != nil {
			return err
		}
		b.Late = nil
		if late != nil {
			rest := b.Without(late)
			b.Late, b = rest.Late, rest
		}
		if err := l.enc.putPages(c, b.Pages); err != nil {
			return fmt.Errorf("pages: %w", err)
		}
		if err := l.enc.putRequests(c, b); err != nil {
			return fmt.Errorf("requests: %w", err)
		}
		if err := l.enc.putEvidence(c, b.Evidence); err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
		for i := range b.Domains {
			if err := putDomain(c, &b.Domains[i]); err != nil {
				return fmt.Errorf("domain %s: %w", b.Domains[i].Host, err)
			}
		}
		for i := range b.Crawls {
			if err := updateCrawl(c, &b.Crawls[i], b.Crawls[i].Epoch, ledger.ErrTakenOver); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit a batch to the ledger: %w", err)
	}
	return nil
}

// checkCrawls refuses rows of crawls that do not exist: once a batch, since a
// foreign key would ask once a row. It returns those that have ended, or were
// deleted after it, and of which the batch is one worker's part.
func checkCrawls(c *sqlite.Conn, b *ledger.Batch) (late []int64, err error) {
	last := int64(0)
	check := func(id int64) error {
		if id == last {
			return nil
		}
		var status ledger.Status
		err := each(bindInts(c.Prep("SELECT status FROM crawls WHERE id = ?1"), id), func(r ledger.Reader) error {
			status = ledger.Status(r.Text())
			return nil
		})
		if err != nil {
			return err
		}
		switch over := status == "" || status.Done(); {
		case over && b.PartOf(id):
			if !slices.Contains(late, id) {
				late = append(late, id)
			}
		case status == "" || id <= 0:
			return fmt.Errorf("crawl %d: %w", id, ledger.ErrNoCrawl)
		}
		last = id
		return nil
	}
	for i := range b.Pages {
		if err := check(b.Pages[i].Crawl); err != nil {
			return nil, err
		}
	}
	for i := range b.Requests {
		if err := check(b.Requests[i].Crawl); err != nil {
			return nil, err
		}
	}
	for i := range b.Evidence {
		if err := check(b.Evidence[i].Crawl); err != nil {
			return nil, err
		}
	}
	for i := range b.Crawls {
		if err := check(b.Crawls[i].ID); err != nil {
			return nil, err
		}
	}
	return late, nil
}

func (e *encoder) putPages(c *sqlite.Conn, pages []ledger.Page) error {
	if len(pages) == 0 {
		return nil
	}
	insert, err := c.Prepare(insertPage)
	if err != nil {
		return err
	}
	links, err := c.Prepare(putLinks)
	if err != nil {
		return err
	}
	crawl, next := int64(0), int64(0)
	for i := range pages {
		p := &pages[i]
		if p.Crawl != crawl {
			crawl = p.Crawl
			if next, err = nextID(c, crawl); err != nil {
				return err
			}
		}
		row := e.row(insert)
		ledger.PutPage(row, p)
		row.Int(next)
		if err := step(insert); err != nil {
			return err
		}
		id, fresh := next, c.Changes() == 1
		if fresh {
			next++
		} else if id, err = e.replacePage(c, p); err != nil {
			return err
		} else if id == 0 {
			continue // the stored one is newer
		}
		if len(p.Links) == 0 {
			if !fresh {
				if err := drain(bindInts(c.Prep("DELETE FROM page_links WHERE page_id = ?1"), id)); err != nil {
					return err
				}
			}
			continue
		}
		e.blob = ledger.EncodeLinks(e.blob[:0], p.Links)
		links.BindInt64(1, id)
		links.BindBytes(2, e.blob)
		if err := step(links); err != nil {
			return err
		}
	}
	return nil
}

// nextID is asked for in every batch: it is one look-up, and another process
// may write to the same crawl.
func nextID(c *sqlite.Conn, crawl int64) (int64, error) {
	return sqlitex.ResultInt64(bindInts(
		c.Prep("SELECT coalesce(max(id), ?1) + 1 FROM pages WHERE id > ?1 AND id < ?2"), ledger.BeforePages(crawl), ledger.AfterPages(crawl)))
}

// replacePage returns the page's ID, or 0 if the stored one stays.
func (e *encoder) replacePage(c *sqlite.Conn, p *ledger.Page) (int64, error) {
	s, err := c.Prepare(updatePage)
	if err != nil {
		return 0, err
	}
	ledger.PutPage(e.row(s), p)
	row, err := s.Step()
	if err != nil {
		return 0, err
	}
	if !row {
		return 0, s.Reset()
	}
	id := s.ColumnInt64(0)
	return id, drain(s)
}

// putRequests leaves out the URL of a request whose page is in the same
// batch, which is nearly all: the page's row has it.
func (e *encoder) putRequests(c *sqlite.Conn, b *ledger.Batch) error {
	if len(b.Requests) == 0 {
		return nil
	}
	if e.pages == nil {
		e.pages = make(map[pageKey]struct{}, len(b.Pages))
	}
	clear(e.pages)
	for i := range b.Pages {
		e.pages[pageKey{b.Pages[i].Crawl, b.Pages[i].FP}] = struct{}{}
	}
	s, err := c.Prepare(putRequest)
	if err != nil {
		return err
	}
	for i := range b.Requests {
		r := &b.Requests[i]
		_, paged := e.pages[pageKey{r.Crawl, r.FP}]
		ledger.PutRequest(e.row(s), r, paged)
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) putEvidence(c *sqlite.Conn, rows []ledger.Evidence) error {
	if len(rows) == 0 {
		return nil
	}
	s, err := c.Prepare(putEvidence)
	if err != nil {
		return err
	}
	for i := range rows {
		ledger.PutEvidence(e.row(s), &rows[i])
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}
