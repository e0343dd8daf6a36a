package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

// A database that replicates asynchronously and fails over loses what its
// replica had not received, although it was acknowledged; and the frontier,
// which was told, never offers those pages again. So a Ledger keeps its last
// batches. When it has made a connection, which may lead to another server, it
// looks after the next commit whether they are still there, and writes those
// again that are not: all rows carry their identity, so it makes no difference
// if some of them are.
//
// What is not kept: who was killed at the same moment keeps nothing, and the
// job side (orders, ends, usage) is not repeated.

// What is kept at the most: a few seconds of a fast crawl.
const (
	keepBatches = 64
	keepPages   = 4096
)

// kept are the batches that were acknowledged last.
type kept struct {
	mu      sync.Mutex
	batches []*ledger.Batch // oldest first
	pages   int             // in them
	gone    *ledger.Request // one of the newest batch that is not kept any more
	log     *slog.Logger

	unsure atomic.Bool // they may not be there: a connection was made since
}

// Log is told of what the database has lost.
func (l *Ledger) Log(log *slog.Logger) {
	l.kept.mu.Lock()
	defer l.kept.mu.Unlock()
	l.kept.log = log
}

// keep adds a batch that was acknowledged. Of one without a request nobody could
// tell whether it is there.
func (k *kept) keep(b *ledger.Batch) {
	if len(b.Requests) == 0 {
		return
	}
	k.batches, k.pages = append(k.batches, b), k.pages+len(b.Pages)
	for len(k.batches) > keepBatches || k.pages > keepPages && len(k.batches) > 1 {
		old := k.batches[0]
		k.gone = &old.Requests[len(old.Requests)-1]
		k.batches[0], k.batches, k.pages = nil, k.batches[1:], k.pages-len(old.Pages)
	}
}

// acknowledged keeps a batch, and repairs what was lost before it.
func (l *Ledger) acknowledged(ctx context.Context, b *ledger.Batch) {
	k := &l.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unsure.Swap(false) && l.repair(ctx) != nil {
		k.unsure.Store(true) // the next one tries
	}
	k.keep(b)
}

// repair writes what is missing of the batches that are kept.
func (l *Ledger) repair(ctx context.Context) error {
	k := &l.kept
	asked := make([]*ledger.Request, len(k.batches), len(k.batches)+1)
	for i, b := range k.batches {
		asked[i] = &b.Requests[len(b.Requests)-1]
	}
	if k.gone != nil {
		asked = append(asked, k.gone)
	}
	if len(asked) == 0 {
		return nil
	}
	missing, err := l.missing(ctx, asked)
	if err != nil || len(missing) == 0 {
		return err
	}
	again := 0
	for _, i := range missing {
		if int(i) == len(k.batches) {
			l.lost("the database has lost pages that it had stored: it failed over to a replica that was far behind; they are not fetched again, so crawls that run are not complete",
				"crawl", k.gone.Crawl)
			k.gone = nil
			continue
		}
		b := *k.batches[i]
		b.Domains = nil // others may know better by now
		if err := l.put(ctx, &b); err != nil && !errors.Is(err, ledger.ErrNoCrawl) && !errors.Is(err, ledger.ErrTakenOver) {
			return err
		}
		again += len(b.Pages)
	}
	l.lost("the database had lost what it had stored: it failed over to a replica that was behind; it was stored again", "pages", again)
	return nil
}

func (l *Ledger) lost(what string, args ...any) {
	if l.kept.log != nil {
		l.kept.log.Error(what, args...)
	}
}

// missing are the places of those requests that are not stored, of crawls that
// are.
func (l *Ledger) missing(ctx context.Context, asked []*ledger.Request) ([]int64, error) {
	crawls, permits := make([]int64, len(asked)), make([]int64, len(asked))
	for i, q := range asked {
		crawls[i], permits[i] = q.Crawl, int64(q.Permit)
	}
	// By the writer's connection: a commit waits for no reader.
	var places []int64
	err := l.write(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT place - 1 FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (crawl, permit, place)
			WHERE EXISTS (SELECT FROM crawls WHERE id = crawl) AND NOT EXISTS (SELECT FROM requests AS r WHERE r.crawl_id = crawl AND r.permit = asked.permit)
			ORDER BY place`, crawls, permits)
		if err != nil {
			return err
		}
		places, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for what was stored: %w", err)
	}
	return places, nil
}
