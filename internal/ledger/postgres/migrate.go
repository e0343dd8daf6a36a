package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"tiptoe/internal/ledger"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// versionTable is goose's, under a name that says whose it is.
	versionTable = "tiptoe_schema"
	// migrationLock is the advisory lock ("tiptoe" in ASCII) under which the
	// schema changes.
	migrationLock = 0x746970746f65
)

// migrate brings the schema to the newest version this program knows. Of many
// processes that start at once one does it; the others wait and find it done.
func (l *Ledger) migrate(ctx context.Context) error {
	have, newest, err := l.versions(ctx)
	if err != nil || have == newest {
		return err
	}
	if have > newest {
		return fmt.Errorf("it was written by a newer tiptoe (schema version %d, this one knows up to %d): use that tiptoe, or another database", have, newest)
	}
	if l.readOnly && have == 0 {
		return ErrEmpty
	}
	if l.readOnly {
		return fmt.Errorf("its schema is version %d and this tiptoe reads version %d: start a crawl, a server or a worker of this version with it, to upgrade it", have, newest)
	}
	return l.retry(ctx, readTries, func(ctx context.Context) error { // each migration is one transaction
		db := stdlib.OpenDB(*l.pool.Config().ConnConfig)
		defer db.Close()
		p, err := provider(db)
		if err != nil {
			return err
		}
		_, err = p.Up(ctx)
		if code(err) == "42P07" { // duplicate table
			return fmt.Errorf("the database has tables of another program: give tiptoe a database of its own, or a schema (?search_path=tiptoe): %w", err)
		}
		return err
	})
}

// provider is goose for this schema.
func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versionTable),
		goose.WithSessionLocker(locker{}), goose.WithDisableGlobalRegistry(true))
}

// locker waits for the lock inside the server, where goose's own asks for it
// again every few seconds. A session that dies lets go of it. The price: a
// migration must not create an index concurrently, which would wait for those
// who wait for the lock.
type locker struct{}

func (locker) SessionLock(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock)
	return err
}

func (locker) SessionUnlock(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", migrationLock)
	return err
}

// versions returns the schema's version, 0 if there is none, and the newest
// one that this program knows.
func (l *Ledger) versions(ctx context.Context) (have, newest int64, err error) {
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) == 0 {
		return 0, 0, errors.Join(errors.New("there are no migrations"), err)
	}
	if newest, err = goose.NumericComponent(files[len(files)-1].Name()); err != nil {
		return 0, 0, err
	}
	known, _, err := one(ctx, l, ledger.Reader.Bool, "SELECT to_regclass($1) IS NOT NULL", versionTable)
	if err == nil && known {
		have, _, err = one(ctx, l, ledger.Reader.Int, "SELECT coalesce(max(version_id), 0) FROM "+versionTable+" WHERE is_applied")
	}
	return have, newest, err
}

// Identity tells this ledger from every other one. It is made with the schema.
func (l *Ledger) Identity(ctx context.Context) (string, error) {
	id, _, err := one(ctx, l, ledger.Reader.Text, "SELECT id FROM ledger_identity")
	if err != nil {
		return "", fmt.Errorf("read the ledger's identity: %w", err)
	}
	return id, nil
}
