package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tiptoe/internal/ledger"
)

// selectCrawls adds to each crawl what the workers of a fleet counted so far.
const selectCrawls = `SELECT id, status, reason, seeds, spec, started_ms, ended_ms, crawls.updated_ms,
	crawls.processed + coalesce(p.processed, 0), crawls.successful + coalesce(p.successful, 0), crawls.failed + coalesce(p.failed, 0),
	crawls.throttled + coalesce(p.throttled, 0), crawls.blocked + coalesce(p.blocked, 0), crawls.skipped + coalesce(p.skipped, 0),
	crawls.timeouts + coalesce(p.timeouts, 0), crawls.requests + coalesce(p.requests, 0), crawls.http_429 + coalesce(p.http_429, 0),
	crawls.retries + coalesce(p.retries, 0), crawls.bytes + coalesce(p.bytes, 0)
	FROM crawls LEFT JOIN LATERAL (SELECT sum(processed)::bigint AS processed, sum(successful)::bigint AS successful,
		sum(failed)::bigint AS failed, sum(throttled)::bigint AS throttled, sum(blocked)::bigint AS blocked, sum(skipped)::bigint AS skipped,
		sum(timeouts)::bigint AS timeouts, sum(requests)::bigint AS requests, sum(http_429)::bigint AS http_429,
		sum(retries)::bigint AS retries, sum(bytes)::bigint AS bytes FROM crawl_parts WHERE crawl_id = crawls.id) p ON true `

var crawlShape = newShape(`id bigint
	status text
	reason text
	seeds text
	spec text
	started_ms bigint
	ended_ms bigint
	updated_ms bigint
	processed bigint
	successful bigint
	failed bigint
	throttled bigint
	blocked bigint
	skipped bigint
	timeouts bigint
	requests bigint
	http_429 bigint
	retries bigint
	bytes bigint`)

// CreateCrawl stores a new crawl, gives it its ID, and returns it. The ID is
// asked for first, so that a repeated attempt stores the same row.
func (l *Ledger) CreateCrawl(ctx context.Context, crawl *ledger.Crawl) (int64, error) {
	seeds := crawl.Seeds
	if seeds == nil {
		seeds = []string{}
	}
	text, err := json.Marshal(seeds)
	if err != nil {
		return 0, fmt.Errorf("create crawl: %w", err)
	}
	if l.readOnly {
		return 0, fmt.Errorf("create crawl: %w", ErrReadOnly)
	}
	id, _, err := one(ctx, l, (*scanner).int, "SELECT nextval(pg_get_serial_sequence('crawls', 'id'))")
	if err != nil {
		return 0, fmt.Errorf("create crawl: %w", err)
	}
	var r rows
	r.reset(crawlShape)
	r.int(id)
	r.must(string(crawl.Status))
	r.text(crawl.Reason)
	r.must(string(text))
	r.url(string(crawl.Spec))
	r.ms(crawl.Started)
	r.ms(crawl.Ended)
	r.ms(crawl.Updated)
	for _, n := range counters(&crawl.Counters) {
		r.int(*n)
	}
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
// last ones are remembered beside them, from Updated on.
func (l *Ledger) UpdateCrawl(ctx context.Context, crawl *ledger.Crawl) error {
	return l.write(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		queueUpdate(b, crawl)
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
// ErrNoCrawl if there is no such crawl.
func queueUpdate(b *pgx.Batch, crawl *ledger.Crawl) {
	if crawl.Worker != "" {
		queuePart(b, crawl)
		return
	}
	args := []any{crawl.ID, string(crawl.Status), nullText(ledger.Text(crawl.Reason)), nullMS(crawl.Ended), nullMS(crawl.Updated)}
	for _, n := range counters(&crawl.Counters) {
		args = append(args, *n)
	}
	b.Queue(`UPDATE crawls SET status = $2, reason = $3, ended_ms = $4, updated_ms = $5,
		processed = $6, successful = $7, failed = $8, throttled = $9, blocked = $10, skipped = $11, timeouts = $12,
		requests = $13, http_429 = $14, retries = $15, bytes = $16 WHERE id = $1`, args...).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return fmt.Errorf("update crawl %d: %w", crawl.ID, ledger.ErrNoCrawl)
			}
			return nil
		})
	if crawl.Status != ledger.Running {
		b.Queue("DELETE FROM crawl_parts WHERE crawl_id = $1", crawl.ID)
	}
}

// queuePart adds what one worker counted. A crawl that is over has no parts: a
// worker that was late with its own is not counted twice.
func queuePart(b *pgx.Batch, crawl *ledger.Crawl) {
	args := []any{crawl.ID, ledger.Text(crawl.Worker), nullMS(crawl.Updated)}
	for _, n := range counters(&crawl.Counters) {
		args = append(args, *n)
	}
	b.Queue(`INSERT INTO crawl_parts SELECT $1, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint,
			$10::bigint, $11::bigint, $12::bigint, $13::bigint, $14::bigint
		WHERE EXISTS (SELECT FROM crawls WHERE id = $1 AND status IN ('running', 'queued'))
		ON CONFLICT (crawl_id, worker) DO UPDATE SET updated_ms = excluded.updated_ms, processed = excluded.processed,
			successful = excluded.successful, failed = excluded.failed, throttled = excluded.throttled, blocked = excluded.blocked,
			skipped = excluded.skipped, timeouts = excluded.timeouts, requests = excluded.requests, http_429 = excluded.http_429,
			retries = excluded.retries, bytes = excluded.bytes`, args...)
}

// counters in the order of their columns.
func counters(n *ledger.Counters) []*int64 {
	return []*int64{&n.Processed, &n.Successful, &n.Failed, &n.Throttled, &n.Blocked, &n.Skipped,
		&n.Timeouts, &n.Requests, &n.HTTP429, &n.Retries, &n.Bytes}
}

// Settings returns what every crawl worked with and from when on, the oldest
// first.
func (l *Ledger) Settings(ctx context.Context) ([]ledger.Settings, error) {
	all, err := list(ctx, l, func(r *scanner) ledger.Settings {
		return ledger.Settings{Crawl: r.int(), Since: r.ms(), Spec: []byte(r.text())}
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
	all, err := list(ctx, l, func(r *scanner) ledger.Crawl {
		c := ledger.Crawl{ID: r.int(), Status: ledger.Status(r.text()), Reason: r.text()}
		if err := json.Unmarshal(r.next(), &c.Seeds); err != nil {
			broken = fmt.Errorf("seeds of crawl %d: %w", c.ID, err)
		}
		c.Spec = r.blob()
		c.Started, c.Ended, c.Updated = r.ms(), r.ms(), r.ms()
		for _, n := range counters(&c.Counters) {
			*n = r.int()
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
	t, _, err := one(ctx, l, func(r *scanner) ledger.Totals {
		return ledger.Totals{Requests: r.int(), HTTP429: r.int(), Retries: r.int(), Bytes: r.int()}
	}, `SELECT count(*), count(*) FILTER (WHERE status = 429), count(*) FILTER (WHERE cause = 'retry'),
			(SELECT coalesce(sum(wire_size), 0)::bigint FROM pages WHERE id > $2 AND id < $3)
		FROM requests WHERE crawl_id = $1`, crawl, firstID(crawl), endID(crawl))
	if err != nil {
		return t, fmt.Errorf("add up crawl %d: %w", crawl, err)
	}
	return t, nil
}
