package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

// Usage returns what a tenant spent in a month, or all of them together for
// the operator. A month nobody used is zero.
func (l *Ledger) Usage(ctx context.Context, tenant, month string) (ledger.Usage, error) {
	var u ledger.Usage
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		u, err = usageOf(c, tenant, month)
		return err
	})
	if err != nil {
		return u, fmt.Errorf("read usage: %w", err)
	}
	return u, nil
}

func usageOf(c *sqlite.Conn, tenant, month string) (ledger.Usage, error) {
	u := ledger.Usage{Tenant: tenant, Month: month}
	q, args := "SELECT used, reserved FROM usage WHERE month = ?1 AND tenant_id = ?2", []any{month, tenant}
	if tenant == "" {
		q, args = "SELECT sum(used), sum(reserved) FROM usage WHERE month = ?1", args[:1]
	}
	s, err := bindAll(c, q, args...)
	if err != nil {
		return u, err
	}
	return u, each(s, func(r ledger.Reader) error {
		u.Used, u.Reserved = r.Int(), r.Int()
		return nil
	})
}

// addUsage never lets the reserved pages fall below none, also if somebody
// removed the month.
func addUsage(c *sqlite.Conn, j *ledger.Job, reserved, used int64) error {
	if reserved == 0 && used == 0 {
		return nil
	}
	s, err := bindAll(c, `INSERT INTO usage (tenant_id, month, reserved, used) VALUES (?1, ?2, max(?3, 0), ?4)
		ON CONFLICT (tenant_id, month) DO UPDATE SET reserved = max(reserved + ?3, 0), used = used + ?4`, j.Tenant, j.Month, reserved, used)
	if err != nil {
		return err
	}
	return step(s)
}
