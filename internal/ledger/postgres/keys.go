package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

var (
	keyColumns = strings.Join(ledger.KeyColumns, ", ")
	insertKey  = "INSERT INTO api_keys (" + keyColumns + ") VALUES (" + params(1, len(ledger.KeyColumns)) + ")"
)

// CreateKey stores a new key. One without a tenant is the operator's own.
func (l *Ledger) CreateKey(ctx context.Context, k ledger.Key) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		if k.Tenant != "" {
			if _, err := single(ctx, tx, ledger.ErrNoTenant, ledger.ScanTenant, selectTenant, k.Tenant); err != nil {
				return err
			}
		}
		_, err := change(ctx, tx, insertKey, argsOf(ledger.PutKey, &k)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("create key %s: %w", k.ID, err)
	}
	return nil
}

// Key returns one key, also a revoked one, or ledger.ErrNoKey.
func (l *Ledger) Key(ctx context.Context, id string) (ledger.Key, error) {
	all, err := l.keys(ctx, "WHERE id = $1", id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("read key: %w", ledger.ErrNoKey)
	}
	if err != nil {
		return ledger.Key{}, err
	}
	return all[0], nil
}

// Keys returns a tenant's keys, or all of them for the operator, newest first.
func (l *Ledger) Keys(ctx context.Context, tenant string) ([]ledger.Key, error) {
	const order = "ORDER BY created_ms DESC NULLS LAST, id DESC"
	if tenant == "" {
		return l.keys(ctx, order)
	}
	return l.keys(ctx, "WHERE tenant_id = $1 "+order, tenant)
}

func (l *Ledger) keys(ctx context.Context, where string, args ...any) ([]ledger.Key, error) {
	var broken error
	all, err := list(ctx, l, scanKey(&broken), "SELECT "+keyColumns+" FROM api_keys "+where, clean(args)...)
	if err == nil {
		err = broken
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return all, nil
}

// RevokeKey ends a key's life, once: the time of the first call stays.
func (l *Ledger) RevokeKey(ctx context.Context, tenant, id string, at time.Time) (ledger.Key, error) {
	var k ledger.Key
	err := l.once(ctx, func(tx pgx.Tx) (err error) {
		var broken error
		k, err = single(ctx, tx, ledger.ErrNoKey, scanKey(&broken),
			"UPDATE api_keys SET revoked_ms = coalesce(revoked_ms, $3) "+byID+" RETURNING "+keyColumns, id, tenant, at.UnixMilli())
		if err != nil {
			return err
		}
		return broken
	})
	if err != nil {
		return ledger.Key{}, fmt.Errorf("revoke key: %w", err)
	}
	return k, nil
}

// TouchKey remembers when a key was last used; it never goes back.
func (l *Ledger) TouchKey(ctx context.Context, id string, at time.Time) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		n, err := change(ctx, tx, "UPDATE api_keys SET last_used_ms = greatest(last_used_ms, $2) WHERE id = $1", id, at.UnixMilli())
		if err == nil && n == 0 {
			err = ledger.ErrNoKey
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("touch key: %w", err)
	}
	return nil
}

func scanKey(broken *error) func(ledger.Reader) ledger.Key {
	return func(r ledger.Reader) ledger.Key {
		k, err := ledger.ScanKey(r)
		if err != nil {
			*broken = err
		}
		return k
	}
}
