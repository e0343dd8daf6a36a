package sqlite

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The migrations are goose files, as those of the other databases are, and a
// test applies them with goose. Here they are applied by hand: goose would
// not be slow (0.4 ms on a ledger that is up to date), but it needs
// database/sql, a second driver for the same file registered in a global
// table, and a table of its own, where SQLite has user_version, which changes
// in the same transaction as the schema and which any client can read.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a file as ours ("tipt"), so that no other program's
// database is ever migrated.
const applicationID = 0x74697074

type migration struct {
	version int64
	name    string
	up      string
}

// migrate brings the schema to the newest version this program knows.
func migrate(c *sqlite.Conn) error {
	known, err := parseMigrations()
	if err != nil {
		return err
	}
	newest := known[len(known)-1].version
	have, err := version(c)
	if err != nil || have == newest {
		return err
	}
	if have > newest {
		return newerError(have, newest)
	}
	if err := exec(c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = upgrade(c, known)
	if err == nil {
		err = exec(c, "COMMIT")
	}
	if err != nil && !c.AutocommitEnabled() {
		err = errors.Join(err, exec(c, "ROLLBACK"))
	}
	return err
}

// upgrade runs inside the write lock and asks for the version again: another
// process may have been faster.
func upgrade(c *sqlite.Conn, known []migration) error {
	have, err := version(c)
	if err != nil {
		return err
	}
	for _, m := range known {
		if m.version <= have {
			continue
		}
		if err := sqlitex.ExecuteScript(c, m.up, nil); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
		have = m.version
	}
	if err := exec(c, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	return exec(c, fmt.Sprintf("PRAGMA user_version = %d", have))
}

// checkReadable tells whether this program understands the file as it is.
func checkReadable(c *sqlite.Conn) error {
	known, err := parseMigrations()
	if err != nil {
		return err
	}
	newest := known[len(known)-1].version
	have, err := version(c)
	switch {
	case err != nil:
		return err
	case have > newest:
		return newerError(have, newest)
	case have < newest:
		return fmt.Errorf("its schema is version %d and this tiptoe reads version %d: resume the crawl, or start one with this data directory, to upgrade it", have, newest)
	}
	return nil
}

func newerError(have, newest int64) error {
	return fmt.Errorf("it was written by a newer tiptoe (schema version %d, this one knows up to %d): use that tiptoe, or another data directory", have, newest)
}

// version returns the schema's version, 0 for an empty file, and an error
// for a file that is not a ledger.
func version(c *sqlite.Conn) (int64, error) {
	v, err := sqlitex.ResultInt64(c.Prep("PRAGMA user_version"))
	if err != nil {
		return 0, notALedger(err)
	}
	id, err := sqlitex.ResultInt64(c.Prep("PRAGMA application_id"))
	if err != nil {
		return 0, notALedger(err)
	}
	tables, err := sqlitex.ResultInt64(c.Prep("SELECT count(*) FROM sqlite_schema"))
	if err != nil {
		return 0, notALedger(err)
	}
	if id != applicationID && (tables > 0 || v > 0) {
		return 0, errors.New("it is a database of another program, not a tiptoe ledger")
	}
	return v, nil
}

func notALedger(err error) error {
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultNotADB {
		return fmt.Errorf("it is not a tiptoe ledger: %w", err)
	}
	return err
}

func parseMigrations() ([]migration, error) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, f := range files {
		text, err := migrations.ReadFile(path.Join("migrations", f.Name()))
		if err != nil {
			return nil, err
		}
		m, err := parseMigration(f.Name(), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return all, nil
}

// parseMigration takes the part of a goose file between Up and Down.
func parseMigration(name, text string) (migration, error) {
	number, _, _ := strings.Cut(name, "_")
	v, err := strconv.ParseInt(number, 10, 32)
	if err != nil || v < 1 {
		return migration{}, fmt.Errorf("migration %s: its name does not begin with a version", name)
	}
	_, up, ok := strings.Cut(text, "-- +goose Up")
	if !ok {
		return migration{}, fmt.Errorf("migration %s: no Up section", name)
	}
	up, _, _ = strings.Cut(up, "-- +goose Down")
	return migration{version: v, name: name, up: up}, nil
}
