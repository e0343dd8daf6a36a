package sqlite

import (
	"context"
	"fmt"
	"iter"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

var (
	selectDomain = "SELECT " + ledger.DomainTable.List() + " FROM domains"
	putDomains   = "INSERT OR REPLACE INTO domains (" + ledger.DomainTable.List() + ") VALUES (" + placeholders(len(ledger.DomainTable.Names)) + ")"
)

// SetDomain stores what is known about one host.
func (l *Ledger) SetDomain(ctx context.Context, d ledger.Domain) error {
	err := l.write(ctx, func(c *sqlite.Conn) error { return putDomain(c, &d) })
	if err != nil {
		return fmt.Errorf("store domain %s: %w", d.Host, err)
	}
	return nil
}

// DeleteDomain forgets a host and reports whether it was known.
func (l *Ledger) DeleteDomain(ctx context.Context, host string) (bool, error) {
	known := false
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("DELETE FROM domains WHERE host = ?1")
		if err != nil {
			return err
		}
		s.BindText(1, ledger.Unbounded(host))
		err = step(s)
		known = c.Changes() > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget domain %s: %w", host, err)
	}
	return known, nil
}

func putDomain(c *sqlite.Conn, d *ledger.Domain) error {
	s, err := c.Prepare(putDomains)
	if err != nil {
		return err
	}
	ledger.PutDomain(bind(s), d)
	return step(s)
}

// Domain returns what is known about one host.
func (l *Ledger) Domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	var d ledger.Domain
	found := false
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(selectDomain + " WHERE host = ?1")
		if err != nil {
			return err
		}
		s.BindText(1, ledger.Unbounded(host))
		return each(s, func(r ledger.Reader) error {
			d, found = ledger.ScanDomain(r), true
			return nil
		})
	})
	if err != nil {
		return d, false, fmt.Errorf("read domain %s: %w", host, err)
	}
	return d, found, nil
}

// Domains lists hosts in the order of their names.
func (l *Ledger) Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error] {
	return func(yield func(ledger.Domain, error) bool) {
		after, left := "", f.Limit
		for {
			n := chunkRows
			if f.Limit > 0 {
				n = min(n, left)
			}
			chunk, err := l.domainChunk(ctx, f, after, n)
			if err != nil {
				yield(ledger.Domain{}, fmt.Errorf("list domains: %w", err))
				return
			}
			for _, d := range chunk {
				if !yield(d, nil) {
					return
				}
			}
			left -= len(chunk)
			if len(chunk) < n || f.Limit > 0 && left == 0 {
				return
			}
			after = chunk[len(chunk)-1].Host
		}
	}
}

func (l *Ledger) domainChunk(ctx context.Context, f ledger.DomainFilter, after string, n int) ([]ledger.Domain, error) {
	var q query
	f.Choose(after, &q)
	var all []ledger.Domain
	err := l.read(ctx, func(c *sqlite.Conn) error {
		return q.run(c, selectDomain, "ORDER BY host", int64(n), func(r ledger.Reader) { all = append(all, ledger.ScanDomain(r)) })
	})
	return all, err
}
