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

// replay joins a throttled request with its evidence, which is found by the
// time at which the answer ended: both carry it, one to the microsecond, one to
// the millisecond.
var replay = `SELECT ` + requestColumns + `,
		CASE WHEN r.outcome = 'throttled' THEN (
			SELECT json_extract(e.content, '$.retryAfter') FROM evidence_log AS e
			WHERE e.crawl_id = r.crawl_id AND e.fp = r.fp AND e.type = 'throttled' AND e.at_ms = r.ended_us / 1000) END
	FROM requests AS r WHERE r.started_us IS NOT NULL`

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
			return each(s, func(r ledger.Reader) error {
				v := ledger.Replayed{Request: ledger.ScanRequest(r)}
				v.RetryAfter = r.Text()
				if !yield(v, nil) {
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

// Judgements lists what was decided about the pages of all crawls, in the order
// in which they lie on disk: a join of a million requests with their pages would
// be as many random reads.
func (l *Ledger) Judgements(ctx context.Context) iter.Seq2[ledger.Judged, error] {
	return func(yield func(ledger.Judged, error) bool) {
		err := l.read(ctx, func(c *sqlite.Conn) error {
			s, err := c.Prepare("SELECT " + ledger.JudgedColumns + " FROM pages ORDER BY id")
			if err != nil {
				return err
			}
			return each(s, func(r ledger.Reader) error {
				if !yield(ledger.ScanJudged(r), nil) {
					return errStopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Judged{}, fmt.Errorf("read what was decided about pages: %w", err))
		}
	}
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
		b := bind(s)
		b.Int(crawl)
		b.FP(fp)
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.ScanRequest(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read requests of a URL: %w", err)
	}
	return all, nil
}
