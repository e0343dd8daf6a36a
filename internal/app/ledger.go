package app

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"tiptoe/internal/audit"
	"tiptoe/internal/config"
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
	audit.Log

	Crawls(ctx context.Context) ([]ledger.Crawl, error)
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
	LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error)
	Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error]
	Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error]
	SetDomain(ctx context.Context, d ledger.Domain) error
	DeleteDomain(ctx context.Context, host string) (bool, error)
	Close() error
}

var (
	_ Ledger = (*sqlite.Ledger)(nil)
	_ Ledger = (*postgres.Ledger)(nil)
)

// Exists reports whether dir holds a ledger.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, LedgerFile))
	return err == nil
}

// OpenLedger opens results for reading only: nothing is written, nor brought
// up to date, whatever is found.
func OpenLedger(ctx context.Context, r config.Results) (Ledger, error) {
	if r.DatabaseURL != "" {
		return database(postgres.OpenReadOnly(ctx, r.DatabaseURL))
	}
	if !Exists(r.DataDir) {
		return nil, fmt.Errorf("there is no crawl in %s; name its folder with --data-dir, or start one with tiptoe crawl URL", r.DataDir)
	}
	return file(sqlite.OpenReadOnly(filepath.Join(r.DataDir, LedgerFile)))
}

// UpgradeLedger opens results for a command that is going to write them: what
// an older tiptoe left, or one that was killed before there were tables, is
// brought up to date.
func UpgradeLedger(ctx context.Context, r config.Results) (Ledger, error) {
	if r.DatabaseURL == "" {
		if l, err := OpenLedger(ctx, r); err == nil || !Exists(r.DataDir) {
			return l, err
		}
	}
	return openLedger(ctx, r)
}

// openLedger opens the ledger for writing.
func openLedger(ctx context.Context, r config.Results) (Ledger, error) {
	if r.DatabaseURL != "" {
		return database(postgres.Open(ctx, r.DatabaseURL))
	}
	if err := os.MkdirAll(r.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	return file(sqlite.Open(filepath.Join(r.DataDir, LedgerFile)))
}

// A nil pointer in an interface is not nil, so errors are told apart here.

func database(l *postgres.Ledger, err error) (Ledger, error) {
	if err != nil {
		return nil, fmt.Errorf("--database-url: %w", err)
	}
	return l, nil
}

func file(l *sqlite.Ledger, err error) (Ledger, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
