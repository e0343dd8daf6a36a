package app

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"tiptoe/internal/crawl"
	"tiptoe/internal/explain"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/postgres"
	"tiptoe/internal/ledger/sqlite"
)

// Ledger is all that the program asks of a ledger, whichever it is.
type Ledger interface {
	crawl.Ledger
	explain.Ledger
	job.Store

	Crawls(ctx context.Context) ([]ledger.Crawl, error)
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
	LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error)
	Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error]
	Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error]
	DeleteDomain(ctx context.Context, host string) (bool, error)
	Close() error
}

var (
	_ Ledger = (*sqlite.Ledger)(nil)
	_ Ledger = (*postgres.Ledger)(nil)
)

// openLedger opens the ledger for writing: in the database that is named, or
// in the data directory.
func openLedger(dir, databaseURL string) (Ledger, error) {
	if databaseURL != "" {
		l, err := postgres.Open(context.Background(), databaseURL)
		if err != nil {
			return nil, fmt.Errorf("--database-url: %w", err)
		}
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	return sqlite.Open(filepath.Join(dir, LedgerFile))
}
