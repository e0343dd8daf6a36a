package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

var (
	selectKey = "SELECT " + strings.Join(ledger.KeyColumns, ", ") + " FROM api_keys "
	insertKey = "INSERT INTO api_keys (" + strings.Join(ledger.KeyColumns, ", ") + ") VALUES (" + placeholders(len(ledger.KeyColumns)) + ")"
)

// CreateKey stores a new key. One without a tenant is the operator's own.
func (l *Ledger) CreateKey(ctx context.Context, k ledger.Key) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		if k.Tenant != "" {
			if _, err := tenant(c, k.Tenant); err != nil {
				return err
			}
		}
		s, err := c.Prepare(insertKey)
		if err != nil {
			return err
		}
		ledger.PutKey(bind(s), &k)
		return stepUnique(s)
	})
	if err != nil {
		return fmt.Errorf("create key %s: %w", k.ID, err)
	}
	return nil
}

// Key returns one key, also a revoked one, or ledger.ErrNoKey.
func (l *Ledger) Key(ctx context.Context, id string) (ledger.Key, error) {
	all, err := l.keys(ctx, "WHERE id = ?1", id)
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
	const order = "ORDER BY created_ms DESC, id DESC"
	if tenant == "" {
		return l.keys(ctx, order)
	}
	return l.keys(ctx, "WHERE tenant_id = ?1 "+order, tenant)
}

func (l *Ledger) keys(ctx context.Context, where string, args ...any) ([]ledger.Key, error) {
	var all []ledger.Key
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		all, err = readKeys(c, where, args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return all, nil
}

// RevokeKey ends a key's life, once: the time of the first call stays.
func (l *Ledger) RevokeKey(ctx context.Context, tenant, id string, at time.Time) (ledger.Key, error) {
	var k ledger.Key
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, "UPDATE api_keys SET revoked_ms = coalesce(revoked_ms, ?3) "+byID, id, tenant, at.UnixMilli())
		if err != nil {
			return err
		}
		if err := step(s); err != nil {
			return err
		}
		all, err := readKeys(c, byID, id, tenant)
		if err != nil || len(all) == 0 {
			return errors.Join(err, ledger.ErrNoKey)
		}
		k = all[0]
		return nil
	})
	if err != nil {
		return ledger.Key{}, fmt.Errorf("revoke key: %w", err)
	}
	return k, nil
}

// TouchKey remembers when a key was last used; it never goes back.
func (l *Ledger) TouchKey(ctx context.Context, id string, at time.Time) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, "UPDATE api_keys SET last_used_ms = max(coalesce(last_used_ms, 0), ?2) WHERE id = ?1", id, at.UnixMilli())
		if err != nil {
			return err
		}
		if err := step(s); err != nil {
			return err
		}
		if c.Changes() == 0 {
			return ledger.ErrNoKey
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("touch key: %w", err)
	}
	return nil
}

func readKeys(c *sqlite.Conn, where string, args ...any) ([]ledger.Key, error) {
	s, err := bindAll(c, selectKey+where, args...)
	if err != nil {
		return nil, err
	}
	var all []ledger.Key
	err = each(s, func(r ledger.Reader) error {
		k, err := ledger.ScanKey(r)
		all = append(all, k)
		return err
	})
	return all, err
}
