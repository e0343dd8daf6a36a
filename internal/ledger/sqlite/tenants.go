package sqlite

import (
	"context"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

var (
	selectTenant = "SELECT " + strings.Join(ledger.TenantColumns, ", ") + " FROM tenants "
	insertTenant = "INSERT INTO tenants (" + strings.Join(ledger.TenantColumns, ", ") + ") VALUES (" + placeholders(len(ledger.TenantColumns)) + ")"
	updateTenant = "UPDATE tenants SET " + assignments(ledger.TenantColumns[ledger.TenantFixed:], 2) + " WHERE id = ?1"

	actionColumns = strings.Join(ledger.ActionColumns, ", ")
)

// CreateTenant stores a new tenant, or returns ledger.ErrExists.
func (l *Ledger) CreateTenant(ctx context.Context, t ledger.Tenant) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(insertTenant)
		if err != nil {
			return err
		}
		ledger.PutTenant(bind(s), &t)
		return stepUnique(s)
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
	err := l.write(ctx, func(c *sqlite.Conn) (err error) {
		if t, err = tenant(c, id); err != nil {
			return err
		}
		created := t.Created
		if err := fn(&t); err != nil {
			return err
		}
		t.ID, t.Created = id, created
		s, err := c.Prepare(updateTenant)
		if err != nil {
			return err
		}
		b := bind(s)
		b.Must(id)
		ledger.PutTenantChanging(b, &t)
		return step(s)
	})
	if err != nil {
		return ledger.Tenant{}, fmt.Errorf("update tenant: %w", err)
	}
	return t, nil
}

// Tenant returns one tenant, or ledger.ErrNoTenant.
func (l *Ledger) Tenant(ctx context.Context, id string) (ledger.Tenant, error) {
	var t ledger.Tenant
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		t, err = tenant(c, id)
		return err
	})
	if err != nil {
		return t, fmt.Errorf("read tenant: %w", err)
	}
	return t, nil
}

// Tenants returns every tenant in the order of their ids.
func (l *Ledger) Tenants(ctx context.Context) ([]ledger.Tenant, error) {
	var all []ledger.Tenant
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(selectTenant + "ORDER BY id")
		if err != nil {
			return err
		}
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.ScanTenant(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return all, nil
}

func tenant(c *sqlite.Conn, id string) (ledger.Tenant, error) {
	t, err := ledger.Tenant{}, ledger.ErrNoTenant
	s, perr := bindAll(c, selectTenant+"WHERE id = ?1", id)
	if perr != nil {
		return t, perr
	}
	rerr := each(s, func(r ledger.Reader) error {
		t, err = ledger.ScanTenant(r), nil
		return nil
	})
	if rerr != nil {
		return t, rerr
	}
	return t, err
}

// LogAction remembers what an operator did.
func (l *Ledger) LogAction(ctx context.Context, a ledger.Action) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("INSERT INTO operator_log (" + actionColumns + ") VALUES (" + placeholders(len(ledger.ActionColumns)) + ")")
		if err != nil {
			return err
		}
		ledger.PutAction(bind(s), &a)
		return step(s)
	})
	if err != nil {
		return fmt.Errorf("log an operator's action: %w", err)
	}
	return nil
}

// Actions lists what operators did before an action, newest first; before 0
// begins with the newest, limit 0 is no limit.
func (l *Ledger) Actions(ctx context.Context, before int64, limit int) ([]ledger.Action, error) {
	var all []ledger.Action
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT id, " + actionColumns + " FROM operator_log WHERE id < ?1 ORDER BY id DESC LIMIT ?2")
		if err != nil {
			return err
		}
		return each(bindInts(s, noBound(before), noLimit(limit)), func(r ledger.Reader) error {
			all = append(all, ledger.ScanAction(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the operators' log: %w", err)
	}
	return all, nil
}
