package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

// deleteRows bounds the rows of a table that one transaction removes: other
// writers wait for a few milliseconds, not for a crawl of a million pages.
const deleteRows = 500

var deleteChunks = []string{
	"DELETE FROM page_links WHERE page_id IN (SELECT page_id FROM page_links WHERE page_id >= ?2 AND page_id < ?3 LIMIT ?4)",
	"DELETE FROM pages WHERE id IN (SELECT id FROM pages WHERE id >= ?2 AND id < ?3 LIMIT ?4)",
	"DELETE FROM requests WHERE crawl_id = ?1 AND permit IN (SELECT permit FROM requests WHERE crawl_id = ?1 LIMIT ?4)",
	`DELETE FROM evidence_log WHERE (crawl_id, fp, type, at_ms) IN
		(SELECT crawl_id, fp, type, at_ms FROM evidence_log WHERE crawl_id = ?1 LIMIT ?4)`,
}

// DeleteCrawl removes everything the ledger holds of a crawl, in short
// transactions. The crawl itself goes with the last of them: cut off half-way,
// it is still there to be deleted again. One that does not exist is no error.
func (l *Ledger) DeleteCrawl(ctx context.Context, crawl int64) error {
	for more := true; more; {
		err := l.write(ctx, func(c *sqlite.Conn) error {
			more = false
			for _, q := range deleteChunks {
				if err := deleteSome(c, q, crawl); err != nil {
					return err
				}
				more = more || c.Changes() == deleteRows
			}
			if more {
				return nil
			}
			for _, q := range []string{"DELETE FROM crawl_settings WHERE crawl_id = ?1", "DELETE FROM crawls WHERE id = ?1"} {
				if err := deleteSome(c, q, crawl); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("delete crawl %d: %w", crawl, err)
		}
	}
	return nil
}

func deleteSome(c *sqlite.Conn, query string, crawl int64) error {
	s, err := c.Prepare(query)
	if err != nil {
		return err
	}
	return step(bindInts(s, []int64{crawl, ledger.BeforePages(crawl), ledger.AfterPages(crawl), deleteRows}[:s.BindParamCount()]...))
}
