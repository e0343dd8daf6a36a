package sqlite

import (
	"context"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// idBits is the room for page numbers inside a page's id.
const idBits = 40

// firstID and endID enclose the ids of a crawl's pages: [firstID, endID).
func firstID(crawl int64) int64 { return crawl << idBits }
func endID(crawl int64) int64   { return (crawl + 1) << idBits }

// pageColumns in the order of bindPage and scanPage.
var pageColumns = strings.Fields(`id crawl_id fp url host kind via found_on depth tries outcome status error
	content_type charset size wire_size
	dns_us connect_us tls_us ttfb_us transfer_us total_us conn_reused
	fetched_ms redirect_to title description canonical lang hreflang noindex nofollow
	last_modified_ms content_hash link_count
	robots_allowed robots_rule robots_line crawl_delay_ms robots_fetched_ms robots_confidence robots_ignored`)

// The statement for a new page does nothing if the page exists; then the
// second, with the same parameters, replaces it. RETURNING on the first would
// save that detour for the rare page at the price of an ephemeral table for
// every one.
var (
	insertPage = "INSERT INTO pages (" + strings.Join(pageColumns, ", ") + ") VALUES (" +
		placeholders(len(pageColumns)) + ") ON CONFLICT (crawl_id, fp) DO NOTHING"
	updatePage = "UPDATE pages SET " + assignments(pageColumns[3:], 4) + " WHERE crawl_id = ?2 AND fp = ?3 RETURNING id"

	putLinks = "INSERT INTO page_links (page_id, targets) VALUES (?1, ?2) ON CONFLICT (page_id) DO UPDATE SET targets = excluded.targets"

	putRequest = `INSERT OR REPLACE INTO requests (crawl_id, permit, pace_group, kind, cause, outcome, status,
		started_us, ended_us, gap_owed_us, in_flight, cap, fp, url, error,
		granted_us, gap_why, asked_until_us, asked_after, retry_at_us, retry_why) VALUES (` + placeholders(21) + ")"

	putEvidence = `INSERT OR REPLACE INTO evidence_log (crawl_id, fp, type, at_ms, url, content, metadata, confidence)
		VALUES (` + placeholders(8) + ")"
)

// encoder keeps the scratch memory of Commit.
type encoder struct {
	blob  []byte
	pages map[pageKey]struct{}
}

type pageKey struct {
	crawl int64
	fp    weburl.Fingerprint
}

// Commit writes a batch in one transaction. After an error nothing of it is
// stored, unless the error came from the commit itself and its answer was
// lost; committing the batch again is right in either case.
func (l *Ledger) Commit(ctx context.Context, b *ledger.Batch) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		if err := checkCrawls(c, b); err != nil {
			return err
		}
		if err := l.enc.putPages(c, b.Pages); err != nil {
			return fmt.Errorf("pages: %w", err)
		}
		if err := l.enc.putRequests(c, b); err != nil {
			return fmt.Errorf("requests: %w", err)
		}
		if err := putEvidenceRows(c, b.Evidence); err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
		for i := range b.Domains {
			if err := putDomain(c, &b.Domains[i]); err != nil {
				return fmt.Errorf("domain %s: %w", b.Domains[i].Host, err)
			}
		}
		for i := range b.Crawls {
			if err := updateCrawl(c, &b.Crawls[i]); err != nil {
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
// foreign key would ask once a row.
func checkCrawls(c *sqlite.Conn, b *ledger.Batch) error {
	last := int64(0)
	check := func(id int64) error {
		if id == last {
			return nil
		}
		n, err := sqlitex.ResultInt64(bindInts(c.Prep("SELECT count(*) FROM crawls WHERE id = ?1"), id))
		if err != nil {
			return err
		}
		if n == 0 || id <= 0 {
			return fmt.Errorf("crawl %d: %w", id, ledger.ErrNoCrawl)
		}
		last = id
		return nil
	}
	for i := range b.Pages {
		if err := check(b.Pages[i].Crawl); err != nil {
			return err
		}
	}
	for i := range b.Requests {
		if err := check(b.Requests[i].Crawl); err != nil {
			return err
		}
	}
	for i := range b.Evidence {
		if err := check(b.Evidence[i].Crawl); err != nil {
			return err
		}
	}
	return nil
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
		bindPage(insert, p, next)
		if err := step(insert); err != nil {
			return err
		}
		id, fresh := next, c.Changes() == 1
		if fresh {
			next++
		} else if id, err = replacePage(c, p); err != nil {
			return err
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
		c.Prep("SELECT coalesce(max(id), ?1) + 1 FROM pages WHERE id > ?1 AND id < ?2"), firstID(crawl), endID(crawl)))
}

func replacePage(c *sqlite.Conn, p *ledger.Page) (int64, error) {
	s, err := c.Prepare(updatePage)
	if err != nil {
		return 0, err
	}
	bindPage(s, p, 0)
	row, err := s.Step()
	if err != nil {
		return 0, err
	}
	if !row {
		s.Reset()
		return 0, fmt.Errorf("page %s is neither new nor stored", p.URL)
	}
	id := s.ColumnInt64(0)
	return id, drain(s)
}

func bindPage(s *sqlite.Stmt, p *ledger.Page, id int64) {
	answered := p.Status != 0
	b := binder{s: s}
	b.int(id)
	b.int(p.Crawl)
	b.fp(p.FP)
	b.must(p.URL)
	b.must(p.Host)
	b.text(p.Kind)
	b.text(p.Via)
	b.url(p.FoundOn)
	b.int(int64(p.Depth))
	b.int(int64(p.Tries))
	b.must(p.Outcome.String())
	b.intOrNull(int64(p.Status))
	b.text(p.Error)
	b.text(p.ContentType)
	b.text(p.Charset)
	b.known(p.Size, answered || p.Size != 0)
	b.known(p.WireSize, answered || p.WireSize != 0)
	b.durUS(p.Timing.DNS)
	b.durUS(p.Timing.Connect)
	b.durUS(p.Timing.TLS)
	b.durUS(p.Timing.TTFB)
	b.durUS(p.Timing.Transfer)
	b.durUS(p.Timing.Total)
	b.bool(p.Timing.Reused)
	b.ms(p.FetchedAt)
	b.url(p.RedirectTo)
	b.text(p.Title)
	b.text(p.Description)
	b.url(p.Canonical)
	b.text(p.Lang)
	b.url(p.Hreflang)
	b.bool(p.NoIndex)
	b.bool(p.NoFollow)
	b.ms(p.LastModified)
	b.intOrNull(int64(p.ContentHash))
	b.known(int64(p.LinkCount), answered || p.LinkCount != 0)
	bindRobots(&b, &p.Robots)
}

func bindRobots(b *binder, r *ledger.RobotsDecision) {
	if !r.Decided {
		for range 7 {
			b.null()
		}
		return
	}
	b.bool(r.Allowed)
	b.text(r.Rule)
	b.intOrNull(int64(r.Line))
	b.intOrNull(r.CrawlDelay.Milliseconds())
	b.ms(r.FetchedAt)
	b.float(r.Confidence)
	b.bool(r.Ignored)
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
		url := r.URL
		if _, ok := e.pages[pageKey{r.Crawl, r.FP}]; ok {
			url = ""
		}
		w := binder{s: s}
		w.int(r.Crawl)
		w.int(int64(r.Permit))
		w.must(r.Group)
		w.must(r.Kind)
		w.text(r.Cause)
		w.must(r.Outcome.String())
		w.intOrNull(int64(r.Status))
		w.us(r.Started)
		w.us(r.Ended)
		w.int(r.GapOwed.Microseconds())
		w.int(int64(r.InFlight))
		w.int(int64(r.Cap))
		w.fp(r.FP)
		w.url(url)
		w.text(r.Error)
		w.us(r.Granted)
		w.whole(r.GapWhy)
		w.us(r.AskedUntil)
		w.intOrNull(int64(r.AskedAfter))
		w.us(r.RetryAt)
		w.whole(r.RetryWhy)
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

func putEvidenceRows(c *sqlite.Conn, rows []ledger.Evidence) error {
	if len(rows) == 0 {
		return nil
	}
	s, err := c.Prepare(putEvidence)
	if err != nil {
		return err
	}
	for i := range rows {
		e := &rows[i]
		w := binder{s: s}
		w.int(e.Crawl)
		w.fp(e.FP)
		w.must(e.Type)
		w.int(e.At.UnixMilli())
		w.must(e.URL)
		w.url(e.Content)
		w.url(e.Metadata)
		w.float(e.Confidence)
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}
