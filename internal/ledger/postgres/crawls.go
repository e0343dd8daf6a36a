package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tiptoe/internal/ledger"
)

var (
	crawlShape  = shape{ledger.CrawlTable}
	updateCrawl = "UPDATE crawls SET (" + strings.Join(ledger.UpdatedColumns, ", ") + ") = ROW(" + params(3, len(ledger.UpdatedColumns)) +
		") WHERE id = $1 AND (epoch <= $2 OR $3 = 'running' AND status = 'running')"

	// What one worker of a fleet counted of a crawl. A crawl that is over has no
	// parts: a worker that was late with its own is not counted twice.
	partShape = shape{ledger.NewTable("crawl_id bigint\nworker text\nupdated_ms bigint\n" + strings.Join(ledger.CounterNames, " bigint\n") + " bigint")}
	putPart   = "INSERT INTO crawl_parts (" + partShape.List() + ") SELECT " + partShape.List() + " FROM " + partShape.unnest(1) +
		" WHERE EXISTS (SELECT FROM crawls WHERE id = t.crawl_id AND status IN ('running', 'queued'))" +
		" ON CONFLICT (crawl_id, worker) DO UPDATE SET " + partShape.excluded(2) +
		" WHERE coalesce(crawl_parts.updated_ms, 0) <= coalesce(excluded.updated_ms, 0)" // one that is written again may be older

	// withoutParts leaves in a crawl's own counters what no part of it holds.
	withoutParts = "UPDATE crawls SET (" + strings.Join(ledger.CounterNames, ", ") + ") = (SELECT " +
		each("greatest(crawls.%[1]s - coalesce(sum(p.%[1]s), 0), 0)", ledger.CounterNames) + " FROM crawl_parts p WHERE p.crawl_id = crawls.id) WHERE id = $1"

	// selectCrawls adds to each crawl what the workers of a fleet counted so far.
	selectCrawls = "SELECT " + each("crawls.%s", crawlShape.Names[:len(crawlShape.Names)-len(ledger.CounterNames)]) + ", " +
		each("crawls.%[1]s + coalesce(p.%[1]s, 0)", ledger.CounterNames) +
		" FROM crawls LEFT JOIN LATERAL (SELECT " + each("sum(%[1]s)::bigint AS %[1]s", ledger.CounterNames) +
		" FROM crawl_parts WHERE crawl_id = crawls.id) p ON true "
)

// each fills a pattern with each of the names.
func each(pattern string, names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf(pattern, name)
	}
	return strings.Join(list, ", ")
}

// CreateCrawl stores a new crawl, gives it its ID, and returns it. The ID is
// asked for first, so that a repeated attempt stores the same row.
func (l *Ledger) CreateCrawl(ctx context.Context, crawl *ledger.Crawl) (int64, error) {
	if l.readOnly {
		return 0, fmt.Errorf("create crawl: %w", ErrReadOnly)
	}
	id, _, err := one(ctx, l, ledger.Reader.Int, "SELECT nextval(pg_get_serial_sequence('crawls', 'id'))")
	if err != nil {
		return 0, fmt.Errorf("create crawl: %w", err)
	}
	var r rows
	r.reset(crawlShape)
	r.Int(id)
	ledger.PutCrawl(ledger.Writer{Row: &r}, crawl)
	err = l.write(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		r.queue(b, crawlShape.upsert("crawls", 1))
		b.Queue("INSERT INTO page_numbers (crawl_id, last) VALUES ($1, 0) ON CONFLICT DO NOTHING", id)
		return tx.SendBatch(ctx, b).Close()
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
// epoch then, also if the answer was lost. If it names a worker, which then
// begins its part anew, the counters are those of the whole crawl: what the
// others' parts hold is not counted twice.
func (l *Ledger) UpdateCrawl(ctx context.Context, crawl *ledger.Crawl) error {
	return l.write(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("UPDATE crawls SET epoch = epoch + 1 WHERE id = $1 RETURNING epoch", crawl.ID).Query(func(r pgx.Rows) error {
			_, err := pgx.ForEachRow(r, []any{&crawl.Epoch}, func() error { return nil })
			return err
		})
		whole := *crawl
		whole.Worker = ""
		queueUpdate(b, &whole, math.MaxInt64, ledger.ErrNoCrawl)
		if crawl.Worker != "" {
			b.Queue("DELETE FROM crawl_parts WHERE crawl_id = $1 AND worker = $2", crawl.ID, ledger.Text(crawl.Worker))
			b.Queue(withoutParts, crawl.ID)
		}
		if len(crawl.Spec) > 0 && !crawl.Updated.IsZero() {
			b.Queue(`INSERT INTO crawl_settings (crawl_id, since_ms, spec)
				SELECT $1, $2, $3::text WHERE $3::text <> coalesce(
					(SELECT spec FROM crawl_settings WHERE crawl_id = $1 ORDER BY since_ms DESC LIMIT 1),
					(SELECT spec FROM crawls WHERE id = $1), '')
				ON CONFLICT (crawl_id, since_ms) DO UPDATE SET spec = excluded.spec`,
				crawl.ID, crawl.Updated.UnixMilli(), ledger.Unbounded(string(crawl.Spec)))
		}
		return tx.SendBatch(ctx, b).Close()
	})
}

// queueUpdate adds the update of one crawl to a batch, which then fails with
// an error if there is no such crawl that was opened by then: none is it. Who
// only says that a crawl runs which another one has ended is left out.
func queueUpdate(b *pgx.Batch, crawl *ledger.Crawl, epoch int64, none error) {
	if crawl.Worker != "" {
		queuePart(b, crawl)
		return
	}
	b.Queue(updateCrawl, argsOf(ledger.PutUpdate, crawl, crawl.ID, epoch)...).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 && !(crawl.Status == ledger.Running && none == ledger.ErrTakenOver) {
				return fmt.Errorf("update crawl %d: %w", crawl.ID, none)
			}
			return nil
		})
	if crawl.Status != ledger.Running {
		b.Queue("DELETE FROM crawl_parts WHERE crawl_id = $1", crawl.ID)
	}
}

// queuePart adds what one worker counted.
func queuePart(b *pgx.Batch, crawl *ledger.Crawl) {
	var r rows
	r.reset(partShape)
	w := ledger.Writer{Row: &r}
	w.Int(crawl.ID)
	w.Must(ledger.Text(crawl.Worker))
	w.MS(crawl.Updated)
	ledger.PutCounters(w, &crawl.Counters)
	r.queue(b, putPart)
}

// Settings returns what every crawl worked with and from when on, the oldest
// first.
func (l *Ledger) Settings(ctx context.Context) ([]ledger.Settings, error) {
	all, err := list(ctx, l, func(r ledger.Reader) ledger.Settings {
		return ledger.Settings{Crawl: r.Int(), Since: r.MS(), Spec: []byte(r.Text())}
	}, `SELECT id, coalesce(started_ms, 0) AS since, spec FROM crawls
		UNION ALL SELECT crawl_id, since_ms, spec FROM crawl_settings ORDER BY 2, 1`)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return all, nil
}

// Crawl returns one crawl, or ledger.ErrNoCrawl.
func (l *Ledger) Crawl(ctx context.Context, id int64) (ledger.Crawl, error) {
	all, err := l.crawls(ctx, "WHERE id = $1", id)
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

func (l *Ledger) crawls(ctx context.Context, where string, args ...any) ([]ledger.Crawl, error) {
	var broken error
	all, err := list(ctx, l, func(r ledger.Reader) ledger.Crawl {
		c, err := ledger.ScanCrawl(r)
		if err != nil {
			broken = err
		}
		return c
	}, selectCrawls+where, args...)
	if err == nil {
		err = broken
	}
	if err != nil {
		return nil, fmt.Errorf("read crawls: %w", err)
	}
	return all, nil
}

// Totals adds up a crawl's requests and pages from the rows themselves.
func (l *Ledger) Totals(ctx context.Context, crawl int64) (ledger.Totals, error) {
	t, _, err := one(ctx, l, func(r ledger.Reader) ledger.Totals {
		return ledger.Totals{Requests: r.Int(), HTTP429: r.Int(), Retries: r.Int(), Bytes: r.Int()}
	}, `SELECT count(*), count(*) FILTER (WHERE status = 429), count(*) FILTER (WHERE cause = 'retry'),
			(SELECT coalesce(sum(wire_size), 0)::bigint FROM pages WHERE id > $2 AND id < $3)
		FROM requests WHERE crawl_id = $1`, crawl, ledger.BeforePages(crawl), ledger.AfterPages(crawl))
	if err != nil {
		return t, fmt.Errorf("add up crawl %d: %w", crawl, err)
	}
	return t, nil
}
