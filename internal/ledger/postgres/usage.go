package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

const selectUsage = "SELECT used, reserved FROM usage WHERE month = $1 AND tenant_id = $2"

// Usage returns what a tenant spent in a month, or all of them together for
// the operator. A month nobody used is zero.
func (l *Ledger) Usage(ctx context.Context, tenant, month string) (ledger.Usage, error) {
	sql, args := selectUsage, []any{month, tenant}
	if tenant == "" {
		sql, args = "SELECT sum(used)::bigint, sum(reserved)::bigint FROM usage WHERE month = $1", args[:1]
	}
	u, _, err := one(ctx, l, scanUsage(tenant, month), sql, clean(args)...)
	if err != nil {
		return u, fmt.Errorf("read usage: %w", err)
	}
	u.Tenant, u.Month = tenant, month
	return u, nil
}

func scanUsage(tenant, month string) func(ledger.Reader) ledger.Usage {
	return func(r ledger.Reader) ledger.Usage {
		return ledger.Usage{Tenant: tenant, Month: month, Used: r.Int(), Reserved: r.Int()}
	}
}

// queueUsage never lets the reserved pages fall below none, also if somebody
// removed the month.
func queueUsage(b *pgx.Batch, j *ledger.Job, reserved, used int64) {
	if reserved == 0 && used == 0 {
		return
	}
	b.Queue(`INSERT INTO usage (tenant_id, month, reserved, used) VALUES ($1, $2, greatest($3::bigint, 0), $4::bigint)
		ON CONFLICT (tenant_id, month) DO UPDATE SET reserved = greatest(usage.reserved + $3, 0), used = usage.used + $4`,
		clean([]any{j.Tenant, j.Month, reserved, used})...)
}
