package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"tiptoe/internal/ledger"
)

// replay joins a throttled request with its evidence, which is found by the
// time at which the answer ended: both carry it, one to the microsecond, one to
// the millisecond.
var replay = `SELECT ` + requestColumns + `,
		CASE WHEN r.outcome = 'throttled' THEN (
			SELECT e.content FROM evidence_log AS e
			WHERE e.crawl_id = r.crawl_id AND e.fp = r.fp AND e.type = 'throttled' AND e.at_ms = r.ended_us / 1000) END
	FROM requests AS r WHERE r.started_us IS NOT NULL
		AND ($1::bigint = 0 OR r.pace_group IN (SELECT pace_group FROM requests WHERE crawl_id = $1))
	ORDER BY r.pace_group, r.started_us, r.permit`

// errStopped says that the caller left the loop: it must not be called again.
var errStopped = errors.New("the loop was left")

// Replay lists the requests of all crawls, one pace group after the other, in
// each by the time of their start. With a crawl's number only the groups are
// listed that this crawl made requests to, still with everybody's requests:
// what one crawl does to a host can only be judged beside the others. The URL
// of a page's request is empty, as in Requests.
//
// The sort is the server's and spills to its disk, so memory does not grow
// with the log. All of it is one snapshot and one statement, which takes one
// of the readers' connections until the loop is left; it is not tried again
// once it has begun.
func (l *Ledger) Replay(ctx context.Context, crawl int64) iter.Seq2[ledger.Replayed, error] {
	return func(yield func(ledger.Replayed, error) bool) {
		err := l.reader(ctx, func(ctx context.Context) error {
			return l.each(ctx, replay, []any{crawl}, func(r ledger.Reader) error {
				v := ledger.Replayed{Request: ledger.ScanRequest(r)}
				v.RetryAfter = retryAfter(r.Blob())
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

// retryAfter takes the header out of the evidence's JSON.
func retryAfter(content []byte) string {
	var v struct {
		RetryAfter any `json:"retryAfter"`
	}
	if json.Unmarshal(content, &v) != nil || v.RetryAfter == nil {
		return ""
	}
	return fmt.Sprint(v.RetryAfter)
}

// Judgements lists what was decided about the pages of all crawls, in the order
// in which they lie on disk: a join of a million requests with their pages would
// be as many random reads.
func (l *Ledger) Judgements(ctx context.Context) iter.Seq2[ledger.Judged, error] {
	return func(yield func(ledger.Judged, error) bool) {
		var after int64
		err := chunks(0, yield, func(n int) ([]ledger.Judged, error) {
			return list(ctx, l, func(r ledger.Reader) ledger.Judged {
				after = r.Int()
				return ledger.ScanJudged(r)
			}, "SELECT id, "+ledger.JudgedColumns+" FROM pages WHERE id > $1 ORDER BY id LIMIT $2", after, n)
		})
		if err != nil {
			yield(ledger.Judged{}, fmt.Errorf("read what was decided about pages: %w", err))
		}
	}
}
