package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

var (
	tenantColumns = strings.Join(ledger.TenantColumns, ", ")
	tenantChanges = ledger.TenantColumns[ledger.TenantFixed:]
	insertTenant  = "INSERT INTO tenants (" + tenantColumns + ") VALUES (" + params(1, len(ledger.TenantColumns)) + ")"
	updateTenant  = "UPDATE tenants SET (" + strings.Join(tenantChanges, ", ") + ") = ROW(" + params(2, len(tenantChanges)) + ") WHERE id = $1"

	actionColumns = strings.Join(ledger.ActionColumns, ", ")
	insertAction  = "INSERT INTO operator_log (" + actionColumns + ") VALUES (" + params(1, len(ledger.ActionColumns)) + ")"

	selectTenant = "SELECT " + tenantColumns + " FROM tenants WHERE id = $1"
)

// CreateTenant stores a new tenant, or returns ledger.ErrExists.
func (l *Ledger) CreateTenant(ctx context.Context, t ledger.Tenant) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		_, err := change(ctx, tx, insertTenant, argsOf(ledger.PutTenant, &t)...)
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
		_, err = change(ctx, tx, updateTenant, argsOf(ledger.PutTenantChanging, &t, id)...)
		return err
	})
	if err != nil {
		return ledger.Tenant{}, fmt.Errorf("update tenant: %w", err)
	}
	return t, nil
}

// Tenant returns one tenant, or ledger.ErrNoTenant.
func (l *Ledger) Tenant(ctx context.Context, id string) (ledger.Tenant, error) {
	t, found, err := one(ctx, l, ledger.ScanTenant, selectTenant, ledger.Unbounded(id))
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
	all, err := list(ctx, l, ledger.ScanTenant, "SELECT "+tenantColumns+" FROM tenants ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return all, nil
}

// holdTenant reads a tenant and keeps others from holding it too until the
// transaction ends.
func holdTenant(ctx context.Context, tx pgx.Tx, id string) (ledger.Tenant, error) {
	return single(ctx, tx, ledger.ErrNoTenant, ledger.ScanTenant, selectTenant+hold, id)
}

// LogAction remembers what an operator did.
func (l *Ledger) LogAction(ctx context.Context, a ledger.Action) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		_, err := change(ctx, tx, insertAction, argsOf(ledger.PutAction, &a)...)
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
	all, err := list(ctx, l, ledger.ScanAction, "SELECT id, "+actionColumns+" FROM operator_log WHERE id < $1 ORDER BY id DESC LIMIT $2",
		noBound(before), noLimit(limit))
	if err != nil {
		return nil, fmt.Errorf("read the operators' log: %w", err)
	}
	return all, nil
}
