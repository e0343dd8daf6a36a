package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

var domainShape = shape{ledger.DomainTable}

var (
	putDomains   = domainShape.upsert("domains", 1)
	selectDomain = "SELECT " + domainShape.List() + " FROM domains"
)

// SetDomain stores what is known about one host.
func (l *Ledger) SetDomain(ctx context.Context, d ledger.Domain) error {
	if err := l.commit(ctx, &ledger.Batch{Domains: []ledger.Domain{d}}); err != nil {
		return fmt.Errorf("store domain %s: %w", d.Host, err)
	}
	return nil
}

// DeleteDomain forgets a host and reports whether it was known.
func (l *Ledger) DeleteDomain(ctx context.Context, host string) (bool, error) {
	known := false
	err := l.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "DELETE FROM domains WHERE host = $1", ledger.Unbounded(host))
		known = known || tag.RowsAffected() > 0 // an attempt whose answer was lost has found it
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget domain %s: %w", host, err)
	}
	return known, nil
}

// Domain returns what is known about one host.
func (l *Ledger) Domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	d, found, err := one(ctx, l, ledger.ScanDomain, selectDomain+" WHERE host = $1", ledger.Unbounded(host))
	if err != nil {
		return d, false, fmt.Errorf("read domain %s: %w", host, err)
	}
	return d, found, nil
}

// Domains lists hosts in the order of their names.
func (l *Ledger) Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error] {
	return func(yield func(ledger.Domain, error) bool) {
		after := ""
		err := chunks(f.Limit, yield, func(n int) ([]ledger.Domain, error) {
			var q query
			f.Choose(after, &q)
			chunk, err := list(ctx, l, ledger.ScanDomain, fmt.Sprintf("%s %s ORDER BY host LIMIT %d", selectDomain, q.where(), n), q.args...)
			if len(chunk) > 0 {
				after = chunk[len(chunk)-1].Host
			}
			return chunk, err
		})
		if err != nil {
			yield(ledger.Domain{}, fmt.Errorf("list domains: %w", err))
		}
	}
}
