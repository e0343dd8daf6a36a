package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

// A database that replicates asynchronously and fails over loses what its
// replica had not received, although it was acknowledged; and the frontier,
// which was told, never offers those pages again. So a Ledger keeps its last
// batches. When it has made a connection, which may lead to another server, it
// looks whether they are still there, and writes those again that are not: all
// rows carry their identity, so it makes no difference if some of them are.
//
// It looks at once, and no commit comes before that: after a crawl's end its
// pages would be late.
//
// What is not kept: who was killed at the same moment keeps nothing, and the
// job side (orders, ends, usage) is not repeated. Nor is the row of a whole
// crawl, which may have ended since.

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

	made    atomic.Int64  // connections
	doubts  atomic.Int64  // reasons to look whether the batches are there
	settled atomic.Int64  // of those
	looking chan struct{} // one look at a time
	wake    chan struct{} // there is a doubt
}

// errUnsure ends a commit that found a connection by which nobody has looked yet.
var errUnsure = errors.New("what was stored may be lost")

func (k *kept) unsure() bool { return k.doubts.Load() != k.settled.Load() }

// connected notes that a connection was made.
func (k *kept) connected() {
	k.made.Add(1)
	k.doubt()
}

func (k *kept) doubt() {
	k.doubts.Add(1)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Log is told of what the database has lost.
func (l *Ledger) Log(log *slog.Logger) {
	l.kept.mu.Lock()
	defer l.kept.mu.Unlock()
	l.kept.log = log
}

// keep adds a batch that was acknowledged, and that was begun when so many
// connections were made: a look for the sake of a later one may have come before
// this. Of a batch without a request nobody could tell whether it is there.
func (k *kept) keep(b ledger.Batch, made int64) {
	if len(b.Requests) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made.Load() != made {
		k.doubt()
	}
	k.batches, k.pages = append(k.batches, &b), k.pages+len(b.Pages)
	for len(k.batches) > keepBatches || k.pages > keepPages && len(k.batches) > 1 {
		old := k.batches[0]
		k.gone = &old.Requests[len(old.Requests)-1]
		k.batches[0], k.batches, k.pages = nil, k.batches[1:], k.pages-len(old.Pages)
	}
}

// watch repairs for those who commit nothing: a worker that waits for work.
func (l *Ledger) watch() {
	for {
		select {
		case <-l.kept.wake:
			_ = l.assure(l.life) // the next commit tries again, and says what is wrong
		case <-l.life.Done():
			return
		}
	}
}

// assure returns when what was acknowledged is there.
func (l *Ledger) assure(ctx context.Context) error {
	k := &l.kept
	select {
	case k.looking <- struct{}{}:
		defer func() { <-k.looking }()
	case <-ctx.Done():
		return ctx.Err()
	case <-l.life.Done():
		return ErrClosed
	}
	for k.unsure() {
		doubts := k.doubts.Load()
		if err := l.repair(ctx); err != nil {
			return err
		}
		k.settled.Store(doubts)
	}
	return nil
}

// repair writes what is missing of the batches that are kept.
func (l *Ledger) repair(ctx context.Context) error {
	k := &l.kept
	k.mu.Lock()
	batches, gone := slices.Clone(k.batches), k.gone
	k.mu.Unlock()

	asked := make([]*ledger.Request, len(batches), len(batches)+1)
	for i, b := range batches {
		asked[i] = &b.Requests[len(b.Requests)-1]
	}
	if gone != nil {
		asked = append(asked, gone)
	}
	if len(asked) == 0 {
		return nil
	}
	missing, err := l.missing(ctx, asked)
	if err != nil || len(missing) == 0 {
		return err
	}
	again, lost, some := 0, 0, false
	defer func() {
		if some {
			l.lost("the database had lost what it had stored: it failed over to a replica that was behind; it was stored again", "pages", again)
		}
		if lost > 0 {
			l.lost("the database has lost pages that it had stored: it failed over to a replica that was behind; their crawls have ended, so they are not stored again", "pages", lost)
		}
	}()
	for _, i := range missing {
		if int(i) == len(batches) {
			l.lost("the database has lost pages that it had stored: it failed over to a replica that was far behind; they are not fetched again, so crawls that run are not complete",
				"crawl", gone.Crawl)
			k.mu.Lock()
			if k.gone == gone {
				k.gone = nil
			}
			k.mu.Unlock()
			continue
		}
		b := *batches[i]
		b.Domains = nil // others may know better by now
		b.Crawls = slices.DeleteFunc(slices.Clone(b.Crawls), func(c ledger.Crawl) bool { return c.Worker == "" })
		stored, err := l.put(ctx, &b, false)
		switch {
		case errors.Is(err, ledger.ErrNoCrawl):
			stored = &ledger.Batch{}
		case err != nil:
			return err
		}
		again, lost = again+len(stored.Pages), lost+len(b.Pages)-len(stored.Pages)
		some = some || len(stored.Requests) > 0
		k.instead(batches[i], stored)
	}
	return nil
}

// instead keeps of a batch what was stored again, so that the rest is missed once.
func (k *kept) instead(b, stored *ledger.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(k.batches, b)
	if i < 0 {
		return
	}
	k.pages += len(stored.Pages) - len(b.Pages)
	if len(stored.Requests) > 0 {
		k.batches[i] = stored
	} else {
		k.batches = slices.Delete(k.batches, i, i+1)
	}
}

func (l *Ledger) lost(what string, args ...any) {
	l.kept.mu.Lock()
	log := l.kept.log
	l.kept.mu.Unlock()
	if log != nil {
		log.Error(what, args...)
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
