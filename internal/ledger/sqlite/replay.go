package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// replay joins each request with its page and, if it was throttled, with the
// evidence for that. Evidence is found by the time at which the answer ended:
// both carry it, one to the microsecond, one to the millisecond.
const replay = `SELECT ` + requestColumns + `,
		p.outcome, p.robots_allowed, p.robots_ignored, p.crawl_delay_ms, p.robots_fetched_ms,
		CASE WHEN r.outcome = 'throttled' THEN (
			SELECT json_extract(e.content, '$.retryAfter') FROM evidence_log AS e
			WHERE e.crawl_id = r.crawl_id AND e.fp = r.fp AND e.type = 'throttled' AND e.at_ms = r.ended_us / 1000) END
	FROM requests AS r LEFT JOIN pages AS p ON p.crawl_id = r.crawl_id AND p.fp = r.fp
	WHERE r.started_us IS NOT NULL`

// Replay lists the requests of all crawls, one pace group after the other, in
// each by the time of their start. With a crawl's number only the groups are
// listed that this crawl made requests to, still with everybody's requests:
// what one crawl does to a host can only be judged beside the others. The URL
// of a page's request is empty, as in Requests.
//
// The sort is SQLite's and spills to disk, so memory does not grow with the
// log. All of it is one snapshot: while it is read, the WAL of a running crawl
// is not folded back.
func (l *Ledger) Replay(ctx context.Context, crawl int64) iter.Seq2[ledger.Replayed, error] {
	return func(yield func(ledger.Replayed, error) bool) {
		err := l.read(ctx, func(c *sqlite.Conn) error {
			q := replay
			if crawl != 0 {
				q += " AND r.pace_group IN (SELECT DISTINCT pace_group FROM requests WHERE crawl_id = ?1)"
			}
			s, _, err := c.PrepareTransient(q + " ORDER BY r.pace_group, r.started_us, r.permit")
			if err != nil {
				return err
			}
			defer s.Finalize()
			if crawl != 0 {
				s.BindInt64(1, crawl)
			}
			return each(s, func(r scanner) error {
				if !yield(scanReplayed(r), nil) {
					return errStopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Replayed{}, fmt.Errorf("replay requests: %w", err))
		}
	}
}

func scanReplayed(r scanner) ledger.Replayed {
	v := ledger.Replayed{Request: scanRequest(&r)}
	v.HasPage = r.s.ColumnType(r.i) != sqlite.TypeNull
	v.PageOutcome = r.outcome()
	v.Robots.Decided = r.s.ColumnType(r.i) != sqlite.TypeNull
	v.Robots.Allowed, v.Robots.Ignored = r.bool(), r.bool()
	v.Robots.CrawlDelay, v.Robots.FetchedAt = r.durMS(), r.ms()
	v.RetryAfter = r.text()
	return v
}

// RequestsOf returns the requests for one URL in the order of their start. It
// walks over the crawl's requests: nobody else asks by URL, and an index would
// cost every request a write.
func (l *Ledger) RequestsOf(ctx context.Context, crawl int64, fp weburl.Fingerprint) ([]ledger.Request, error) {
	var all []ledger.Request
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT " + requestColumns + " FROM requests AS r WHERE crawl_id = ?1 AND fp = ?2 ORDER BY started_us, permit")
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.int(crawl)
		b.fp(fp)
		return each(s, func(r scanner) error {
			all = append(all, scanRequest(&r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read requests of a URL: %w", err)
	}
	return all, nil
}
