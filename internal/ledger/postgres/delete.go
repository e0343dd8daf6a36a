package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Advisory locks ("wipe" in ASCII, and the crawl, whose number has 23 bits):
// shared by those who store rows of a crawl, alone for the one who deletes it.
// A lock of the crawl's row would not do: those who share it go on sharing it
// past somebody who waits to have it alone.
const (
	shareCrawls = "SELECT pg_advisory_xact_lock_shared(2003398757, (id & 2147483647)::int) FROM unnest($1::bigint[]) AS id"
	takeCrawl   = "SELECT pg_advisory_xact_lock(2003398757, ($1::bigint & 2147483647)::int)"
)

var deleteChunks = []string{
	"DELETE FROM pages WHERE id IN (SELECT id FROM pages WHERE id >= $1::bigint << 40 AND id < ($1::bigint + 1) << 40 ORDER BY id LIMIT $2)",
	"DELETE FROM requests WHERE crawl_id = $1 AND permit IN (SELECT permit FROM requests WHERE crawl_id = $1 ORDER BY permit LIMIT $2)",
	`DELETE FROM evidence_log WHERE (crawl_id, fp, type, at_ms) IN
		(SELECT crawl_id, fp, type, at_ms FROM evidence_log WHERE crawl_id = $1 ORDER BY fp, type, at_ms LIMIT $2)`,
}

// deleteRest goes from the crawl downwards: whoever updates the crawl holds
// its row while it writes to the others.
var deleteRest = []string{
	"DELETE FROM crawls WHERE id = $1",
	"DELETE FROM crawl_settings WHERE crawl_id = $1",
	"DELETE FROM crawl_parts WHERE crawl_id = $1",
	"DELETE FROM page_numbers WHERE crawl_id = $1",
	"DELETE FROM pages WHERE id >= $1::bigint << 40 AND id < ($1::bigint + 1) << 40",
	"DELETE FROM requests WHERE crawl_id = $1",
	"DELETE FROM evidence_log WHERE crawl_id = $1",
}

// DeleteCrawl removes everything the ledger holds of a crawl: nearly all of it
// in short transactions, and in the last one the crawl itself with what was
// stored meanwhile. Cut off half-way, it is still there to be deleted again.
// One that does not exist is no error.
func (l *Ledger) DeleteCrawl(ctx context.Context, crawl int64) error {
	var err error
	for more := true; more && err == nil; {
		err = l.write(ctx, func(tx pgx.Tx) error {
			more = false
			for _, q := range deleteChunks {
				tag, err := tx.Exec(ctx, q, crawl, chunkRows)
				if err != nil {
					return err
				}
				more = more || tag.RowsAffected() == chunkRows
			}
			return nil
		})
	}
	if err == nil {
		err = l.write(ctx, func(tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(takeCrawl, crawl)
			for _, q := range deleteRest {
				b.Queue(q, crawl)
			}
			return tx.SendBatch(ctx, b).Close()
		})
	}
	if err != nil {
		return fmt.Errorf("delete crawl %d: %w", crawl, err)
	}
	return nil
}
