package sqlite

import (
	"context"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
)

var (
	createCrawl = "INSERT INTO crawls (" + ledger.CrawlTable.From(1).List() + ") VALUES (" + placeholders(len(ledger.CrawlTable.Names)-1) + ")"
	changeCrawl = "UPDATE crawls SET " + assignments(ledger.UpdatedColumns, 3) + " WHERE id = ?1 AND (epoch <= ?2 OR ?3 = 'running' AND status = 'running')"
)

// CreateCrawl stores a new crawl, gives it its ID, and returns it.
func (l *Ledger) CreateCrawl(ctx context.Context, crawl *ledger.Crawl) (int64, error) {
	var id int64
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(createCrawl)
		if err != nil {
			return err
		}
		ledger.PutCrawl(bind(s), crawl)
		if err := step(s); err != nil {
			return err
		}
		id = c.LastInsertRowID()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("create crawl: %w", err)
	}
	crawl.ID = id
	return id, nil
}

// UpdateCrawl stores a crawl's status, reason, times and counters; its seeds,
// settings and start stay as they were created. Settings that differ from the
// last ones are remembered beside them, from Updated on. The crawl has its next
// epoch then.
func (l *Ledger) UpdateCrawl(ctx context.Context, crawl *ledger.Crawl) error {
	return l.write(ctx, func(c *sqlite.Conn) error {
		err := each(bindInts(c.Prep("UPDATE crawls SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch"), crawl.ID), func(r ledger.Reader) error {
			crawl.Epoch = r.Int()
			return nil
		})
		if err != nil {
			return err
		}
		if err := updateCrawl(c, crawl, math.MaxInt64, ledger.ErrNoCrawl); err != nil || len(crawl.Spec) == 0 || crawl.Updated.IsZero() {
			return err
		}
		s, err := c.Prepare(`INSERT OR REPLACE INTO crawl_settings (crawl_id, since_ms, spec)
			SELECT ?1, ?2, ?3 WHERE ?3 <> coalesce(
				(SELECT spec FROM crawl_settings WHERE crawl_id = ?1 ORDER BY since_ms DESC LIMIT 1),
				(SELECT spec FROM crawls WHERE id = ?1), '')`)
		if err != nil {
			return err
		}
		b := bind(s)
		b.Int(crawl.ID)
		b.Int(crawl.Updated.UnixMilli())
		b.Must(string(crawl.Spec))
		return step(s)
	})
}

// Settings returns what every crawl worked with and from when on, the oldest
// first.
func (l *Ledger) Settings(ctx context.Context) ([]ledger.Settings, error) {
	var all []ledger.Settings
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(`SELECT id, coalesce(started_ms, 0) AS since, spec FROM crawls
			UNION ALL SELECT crawl_id, since_ms, spec FROM crawl_settings ORDER BY 2, 1`)
		if err != nil {
			return err
		}
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.Settings{Crawl: r.Int(), Since: r.MS(), Spec: []byte(r.Text())})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return all, nil
}

// updateCrawl fails with none if there is no such crawl that was opened by then.
// Who only says that a crawl runs which another one has ended is left out.
func updateCrawl(c *sqlite.Conn, crawl *ledger.Crawl, epoch int64, none error) error {
	s, err := c.Prepare(changeCrawl)
	if err != nil {
		return err
	}
	b := bind(s)
	b.Int(crawl.ID)
	b.Int(epoch)
	ledger.PutUpdate(b, crawl)
	if err := step(s); err != nil {
		return err
	}
	if c.Changes() == 0 && !(crawl.Status == ledger.Running && none == ledger.ErrTakenOver) {
		return fmt.Errorf("update crawl %d: %w", crawl.ID, none)
	}
	return nil
}

// Crawl returns one crawl, or ledger.ErrNoCrawl.
func (l *Ledger) Crawl(ctx context.Context, id int64) (ledger.Crawl, error) {
	all, err := l.crawls(ctx, "WHERE id = ?1", id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("crawl %d: %w", id, ledger.ErrNoCrawl)
	}
	if err != nil {
		return ledger.Crawl{}, err
	}
	return all[0], nil
}

// LatestCrawl returns the crawl created last, or ledger.ErrNoCrawl.
func (l *Ledger) LatestCrawl(ctx context.Context) (ledger.Crawl, error) {
	all, err := l.crawls(ctx, "ORDER BY id DESC LIMIT 1")
	if err == nil && len(all) == 0 {
		err = ledger.ErrNoCrawl
	}
	if err != nil {
		return ledger.Crawl{}, err
	}
	return all[0], nil
}

// Crawls returns every crawl, newest first.
func (l *Ledger) Crawls(ctx context.Context) ([]ledger.Crawl, error) {
	return l.crawls(ctx, "ORDER BY id DESC")
}

func (l *Ledger) crawls(ctx context.Context, where string, args ...int64) ([]ledger.Crawl, error) {
	var all []ledger.Crawl
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT " + ledger.CrawlTable.List() + " FROM crawls " + where)
		if err != nil {
			return err
		}
		return each(bindInts(s, args...), func(r ledger.Reader) error {
			crawl, err := ledger.ScanCrawl(r)
			all = append(all, crawl)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read crawls: %w", err)
	}
	return all, nil
}

// Totals adds up a crawl's requests and pages from the rows themselves.
func (l *Ledger) Totals(ctx context.Context, crawl int64) (ledger.Totals, error) {
	var t ledger.Totals
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(`SELECT count(*), coalesce(sum(status = 429), 0), coalesce(sum(cause = 'retry'), 0)
			FROM requests WHERE crawl_id = ?1`)
		if err != nil {
			return err
		}
		err = each(bindInts(s, crawl), func(r ledger.Reader) error {
			t.Requests, t.HTTP429, t.Retries = r.Int(), r.Int(), r.Int()
			return nil
		})
		if err != nil {
			return err
		}
		t.Bytes, err = sqlitex.ResultInt64(bindInts(
			c.Prep("SELECT coalesce(sum(wire_size), 0) FROM pages WHERE id > ?1 AND id < ?2"), ledger.BeforePages(crawl), ledger.AfterPages(crawl)))
		return err
	})
	if err != nil {
		return t, fmt.Errorf("add up crawl %d: %w", crawl, err)
	}
	return t, nil
}
