package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

const tenantColumns = "id, name, plan, weight, disabled, webhook_secret, created_ms"

// CreateTenant stores a new tenant, or returns ledger.ErrExists.
func (l *Ledger) CreateTenant(ctx context.Context, t ledger.Tenant) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("INSERT INTO tenants (" + tenantColumns + ") VALUES (" + placeholders(7) + ")")
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.must(t.ID)
		bindTenant(&b, &t)
		b.ms(t.Created)
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
		s, err := c.Prepare("UPDATE tenants SET name = ?1, plan = ?2, weight = ?3, disabled = ?4, webhook_secret = ?5 WHERE id = ?6")
		if err != nil {
			return err
		}
		b := binder{s: s}
		bindTenant(&b, &t)
		b.must(id)
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
		s, err := c.Prepare("SELECT " + tenantColumns + " FROM tenants ORDER BY id")
		if err != nil {
			return err
		}
		return each(s, func(r scanner) error {
			all = append(all, scanTenant(r))
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
	s, perr := bindAll(c, "SELECT "+tenantColumns+" FROM tenants WHERE id = ?1", id)
	if perr != nil {
		return t, perr
	}
	rerr := each(s, func(r scanner) error {
		t, err = scanTenant(r), nil
		return nil
	})
	if rerr != nil {
		return t, rerr
	}
	return t, err
}

func bindTenant(b *binder, t *ledger.Tenant) {
	t.Weight = max(t.Weight, 1)
	b.text(t.Name)
	b.text(t.Plan)
	b.int(int64(t.Weight))
	b.bool(t.Disabled)
	b.url(t.WebhookSecret)
}

func scanTenant(r scanner) ledger.Tenant {
	return ledger.Tenant{ID: r.text(), Name: r.text(), Plan: r.text(), Weight: int(r.int()), Disabled: r.bool(),
		WebhookSecret: r.text(), Created: r.ms()}
}

// LogAction remembers what an operator did.
func (l *Ledger) LogAction(ctx context.Context, a ledger.Action) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("INSERT INTO operator_log (at_ms, key_id, action, target, detail, remote) VALUES (" + placeholders(6) + ")")
		if err != nil {
			return err
		}
		b := binder{s: s}
		b.ms(a.At)
		b.text(a.Key)
		b.must(ledger.Text(a.Action))
		b.text(a.Target)
		b.url(a.Detail)
		b.text(a.Remote)
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
		s, err := c.Prepare("SELECT id, at_ms, key_id, action, target, detail, remote FROM operator_log WHERE id < ?1 ORDER BY id DESC LIMIT ?2")
		if err != nil {
			return err
		}
		return each(bindInts(s, noBound(before), noLimit(limit)), func(r scanner) error {
			all = append(all, ledger.Action{ID: r.int(), At: r.ms(), Key: r.text(), Action: r.text(), Target: r.text(), Detail: r.text(), Remote: r.text()})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the operators' log: %w", err)
	}
	return all, nil
}
