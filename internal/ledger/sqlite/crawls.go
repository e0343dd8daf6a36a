package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
)

const crawlColumns = `status, reason, seeds, spec, started_ms, ended_ms, updated_ms,
	processed, successful, failed, throttled, blocked, skipped, timeouts, requests, http_429, retries, bytes`

// CreateCrawl stores a new crawl, gives it its ID, and returns it.
func (l *Ledger) CreateCrawl(ctx context.Context, crawl *ledger.Crawl) (int64, error) {
	seeds := crawl.Seeds
	if seeds == nil {
		seeds = []string{}
	}
	list, err := json.Marshal(seeds)
	if err != nil {
		return 0, fmt.Errorf("create crawl: %w", err)
	}
	var id int64
	err = l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("INSERT INTO crawls (" + crawlColumns + ") VALUES (" + placeholders(18) + ")")
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.must(string(crawl.Status))
		b.text(crawl.Reason)
		b.must(string(list))
		b.url(string(crawl.Spec))
		b.ms(crawl.Started)
		b.ms(crawl.Ended)
		b.ms(crawl.Updated)
		bindCounters(&b, &crawl.Counters)
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
// last ones are remembered beside them, from Updated on.
func (l *Ledger) UpdateCrawl(ctx context.Context, crawl *ledger.Crawl) error {
	return l.write(ctx, func(c *sqlite.Conn) error {
		if err := updateCrawl(c, crawl); err != nil || len(crawl.Spec) == 0 || crawl.Updated.IsZero() {
			return err
		}
		s, err := c.Prepare(`INSERT OR REPLACE INTO crawl_settings (crawl_id, since_ms, spec)
			SELECT ?1, ?2, ?3 WHERE ?3 <> coalesce(
				(SELECT spec FROM crawl_settings WHERE crawl_id = ?1 ORDER BY since_ms DESC LIMIT 1),
				(SELECT spec FROM crawls WHERE id = ?1), '')`)
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.int(crawl.ID)
		b.int(crawl.Updated.UnixMilli())
		b.must(string(crawl.Spec))
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
		return each(s, func(r scanner) error {
			all = append(all, ledger.Settings{Crawl: r.int(), Since: r.ms(), Spec: []byte(r.text())})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return all, nil
}

func updateCrawl(c *sqlite.Conn, crawl *ledger.Crawl) error {
	s, err := c.Prepare(`UPDATE crawls SET status = ?1, reason = ?2, ended_ms = ?3, updated_ms = ?4,
		processed = ?5, successful = ?6, failed = ?7, throttled = ?8, blocked = ?9, skipped = ?10, timeouts = ?11,
		requests = ?12, http_429 = ?13, retries = ?14, bytes = ?15 WHERE id = ?16`)
	if err != nil {
		return err
	}
	b := binder{s: s}
	b.must(string(crawl.Status))
	b.text(crawl.Reason)
	b.ms(crawl.Ended)
	b.ms(crawl.Updated)
	bindCounters(&b, &crawl.Counters)
	b.int(crawl.ID)
	if err := step(s); err != nil {
		return err
	}
	if c.Changes() == 0 {
		return fmt.Errorf("update crawl %d: %w", crawl.ID, ledger.ErrNoCrawl)
	}
	return nil
}

func bindCounters(b *binder, n *ledger.Counters) {
	for _, v := range [...]int64{n.Processed, n.Successful, n.Failed, n.Throttled, n.Blocked, n.Skipped,
		n.Timeouts, n.Requests, n.HTTP429, n.Retries, n.Bytes} {
		b.int(v)
	}
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
		s, err := c.Prepare("SELECT id, " + crawlColumns + " FROM crawls " + where)
		if err != nil {
			return err
		}
		return each(bindInts(s, args...), func(r scanner) error {
			crawl, err := scanCrawl(r)
			all = append(all, crawl)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read crawls: %w", err)
	}
	return all, nil
}

func scanCrawl(r scanner) (ledger.Crawl, error) {
	c := ledger.Crawl{ID: r.int(), Status: ledger.Status(r.text()), Reason: r.text()}
	if err := json.Unmarshal([]byte(r.text()), &c.Seeds); err != nil {
		return c, fmt.Errorf("seeds of crawl %d: %w", c.ID, err)
	}
	if spec := r.text(); spec != "" {
		c.Spec = []byte(spec)
	}
	c.Started, c.Ended, c.Updated = r.ms(), r.ms(), r.ms()
	n := &c.Counters
	for _, v := range [...]*int64{&n.Processed, &n.Successful, &n.Failed, &n.Throttled, &n.Blocked, &n.Skipped,
		&n.Timeouts, &n.Requests, &n.HTTP429, &n.Retries, &n.Bytes} {
		*v = r.int()
	}
	return c, nil
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
		err = each(bindInts(s, crawl), func(r scanner) error {
			t.Requests, t.HTTP429, t.Retries = r.int(), r.int(), r.int()
			return nil
		})
		if err != nil {
			return err
		}
		t.Bytes, err = sqlitex.ResultInt64(bindInts(
			c.Prep("SELECT coalesce(sum(wire_size), 0) FROM pages WHERE id > ?1 AND id < ?2"), firstID(crawl), endID(crawl)))
		return err
	})
	if err != nil {
		return t, fmt.Errorf("add up crawl %d: %w", crawl, err)
	}
	return t, nil
}
