package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

const (
	tenantColumns = "id, created_ms, name, plan, weight, disabled, webhook_secret"
	selectTenant  = "SELECT " + tenantColumns + " FROM tenants WHERE id = $1"
)

// CreateTenant stores a new tenant, or returns ledger.ErrExists.
func (l *Ledger) CreateTenant(ctx context.Context, t ledger.Tenant) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		_, err := change(ctx, tx, "INSERT INTO tenants ("+tenantColumns+") VALUES ("+params(1, 7)+")",
			append([]any{t.ID, nullMS(t.Created)}, tenantArgs(&t)...)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("create tenant %s: %w", t.ID, err)
	}
	return nil
}

// UpdateTenant changes a tenant; its id and age stay. fn must not use the
// Ledger.
func (l *Ledger) UpdateTenant(ctx context.Context, id string, fn func(*ledger.Tenant) error) (ledger.Tenant, error) {
	var t ledger.Tenant
	err := l.once(ctx, func(tx pgx.Tx) (err error) {
		if t, err = holdTenant(ctx, tx, id); err != nil {
			return err
		}
		old := t
		if err := fn(&t); err != nil {
			return err
		}
		t.ID, t.Created = old.ID, old.Created
		_, err = change(ctx, tx, "UPDATE tenants SET (name, plan, weight, disabled, webhook_secret) = ROW("+params(2, 5)+") WHERE id = $1",
			append([]any{id}, tenantArgs(&t)...)...)
		return err
	})
	if err != nil {
		return ledger.Tenant{}, fmt.Errorf("update tenant: %w", err)
	}
	return t, nil
}

// Tenant returns one tenant, or ledger.ErrNoTenant.
func (l *Ledger) Tenant(ctx context.Context, id string) (ledger.Tenant, error) {
	t, found, err := one(ctx, l, scanTenant, selectTenant, ledger.Unbounded(id))
	if err == nil && !found {
		err = ledger.ErrNoTenant
	}
	if err != nil {
		return t, fmt.Errorf("read tenant: %w", err)
	}
	return t, nil
}

// Tenants returns every tenant in the order of their ids.
func (l *Ledger) Tenants(ctx context.Context) ([]ledger.Tenant, error) {
	all, err := list(ctx, l, scanTenant, "SELECT "+tenantColumns+" FROM tenants ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return all, nil
}

// holdTenant reads a tenant and keeps others from holding it too until the
// transaction ends.
func holdTenant(ctx context.Context, tx pgx.Tx, id string) (ledger.Tenant, error) {
	return single(ctx, tx, ledger.ErrNoTenant, scanTenant, selectTenant+hold, id)
}

func tenantArgs(t *ledger.Tenant) []any {
	t.Weight = max(t.Weight, 1)
	return []any{shortText(t.Name), shortText(t.Plan), int64(t.Weight), t.Disabled, longText(t.WebhookSecret)}
}

func scanTenant(r *scanner) ledger.Tenant {
	return ledger.Tenant{ID: r.text(), Created: r.ms(), Name: r.text(), Plan: r.text(), Weight: int(r.int()), Disabled: r.bool(),
		WebhookSecret: r.text()}
}

// LogAction remembers what an operator did.
func (l *Ledger) LogAction(ctx context.Context, a ledger.Action) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		_, err := change(ctx, tx, "INSERT INTO operator_log (at_ms, key_id, action, target, detail, remote) VALUES ("+params(1, 6)+")",
			nullMS(a.At), shortText(a.Key), ledger.Text(a.Action), shortText(a.Target), longText(a.Detail), shortText(a.Remote))
		return err
	})
	if err != nil {
		return fmt.Errorf("log an operator's action: %w", err)
	}
	return nil
}

// Actions lists what operators did before an action, newest first; before 0
// begins with the newest, limit 0 is no limit.
func (l *Ledger) Actions(ctx context.Context, before int64, limit int) ([]ledger.Action, error) {
	all, err := list(ctx, l, func(r *scanner) ledger.Action {
		return ledger.Action{ID: r.int(), At: r.ms(), Key: r.text(), Action: r.text(), Target: r.text(), Detail: r.text(), Remote: r.text()}
	}, "SELECT id, at_ms, key_id, action, target, detail, remote FROM operator_log WHERE id < $1 ORDER BY id DESC LIMIT $2",
		noBound(before), noLimit(limit))
	if err != nil {
		return nil, fmt.Errorf("read the operators' log: %w", err)
	}
	return all, nil
}
