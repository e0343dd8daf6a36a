// Package sqlite answers: where is the ledger of one machine kept?
//
// In one SQLite file in the data directory, in pure Go, readable by any
// SQLite client while the crawl runs (WAL mode: readers never wait for the
// writer, nor the writer for readers). The schema is in migrations/; it is
// meant to be queried by people: outcomes are names, times and durations say
// their unit, unknown is NULL.
//
// # Guarantees
//
// Commit writes one batch in one transaction: all of it or nothing, and when
// it returns nil the batch is on stable storage (synchronous=FULL), so it
// survives a power cut, not only a crash. Committing the same batch twice
// leaves the same rows as once. A page that was committed earlier is
// replaced by a later attempt at the same URL and keeps its ID. The robots
// decision is columns of the page's row, and other evidence commits with its
// page, so neither exists without the other.
//
// Texts are stored as valid UTF-8 without NUL and, unless they are URLs or
// JSON, at most ledger.MaxText bytes. Times are kept to the millisecond, the
// times of requests and all timings to the microsecond.
//
// # One writer, many readers
//
// A Ledger has one writing connection, used by one goroutine at a time, and
// a few reading ones. Another process may write too (a second tiptoe, a
// person with a client): a write waits up to busyTimeout for it. Listings
// read in short transactions of chunkRows rows, and no connection is held
// while the caller handles a row: a slow reader cannot keep the WAL from
// being folded back, and a caller may use the Ledger inside the loop. The
// price is that a listing of a running crawl is not one snapshot: rows
// committed meanwhile may show up at the end, none twice, none skipped.
//
// # What a crash loses
//
// kill -9 or a power cut lose the batch whose Commit had not returned, whole,
// and nothing else; the next Open needs no repair step.
//
// # Why this driver
//
// All pure-Go choices run the same engine and differ in the way into it. A
// page with 60 links and one request, in batches of 500, cost on one busy
// two-core machine 20 µs of CPU time and no allocation this way, 31 µs and
// 112 allocations through the statements of the other driver, 36 µs and 121
// through database/sql: BenchmarkCommit, BenchmarkDriverStatements,
// BenchmarkDatabaseSQL. Half of the 20 µs is SQLite's own virtual machine.
//
// The cost grows with the crawl, to 27-30 µs at 600,000 pages: fingerprints
// are random, so nearly every page changes another leaf of the index on them,
// and each changed leaf is a whole page in the WAL. Page sizes from 4 to 16
// KiB and larger WALs moved this by less than the noise.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	// busyTimeout bounds the wait for another process's write lock.
	busyTimeout = 30 * time.Second
	// readers bounds the reading connections of one Ledger.
	readers = 4
	// chunkRows is how many rows a listing holds in memory at a time.
	chunkRows = 500
)

// Ledger is an open ledger file. It is safe for concurrent use.
type Ledger struct {
	path   string
	writer chan *sqlite.Conn // holds the one connection when nobody writes; nil if read-only
	pool   *sqlitex.Pool
	once   sync.Once // of Close

	enc encoder // only with the writer in hand
}

// ErrReadOnly is returned by every write on a ledger from OpenReadOnly.
var ErrReadOnly = errors.New("the ledger is open for reading only")

// ErrClosed is returned by every write after Close.
var ErrClosed = errors.New("the ledger is closed")

// Open opens the ledger at path, creates it if there is none, and brings its
// schema up to date.
func Open(path string) (*Ledger, error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	c.SetBusyTimeout(busyTimeout)
	if err := prepareWriter(c, path); err != nil {
		c.Close()
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	c.SetBlockOnBusy()
	pool, err := openPool(path)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	l := &Ledger{path: path, writer: make(chan *sqlite.Conn, 1), pool: pool}
	l.writer <- c
	return l, nil
}

// OpenReadOnly opens an existing ledger for reading, also one that another
// process is writing.
func OpenReadOnly(path string) (*Ledger, error) {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open ledger: there is none at %s: %w", path, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	c.SetBusyTimeout(busyTimeout)
	err = checkReadable(c)
	c.Close()
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	pool, err := openPool(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	return &Ledger{path: path, pool: pool}, nil
}

// Path returns the file's path as it was given.
func (l *Ledger) Path() string { return l.path }

// Close interrupts readers, waits for the writer, folds the WAL back and
// closes the file. Calls after it fail; a second Close does nothing.
func (l *Ledger) Close() error {
	var err error
	l.once.Do(func() {
		err = l.pool.Close() // first: the last connection folds the WAL back, and readers cannot
		if l.writer != nil {
			c := <-l.writer
			close(l.writer)
			err = errors.Join(err, c.Close())
		}
	})
	if err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// prepareWriter sets what a connection forgets and what a file keeps. The
// page size only takes in a file that has no tables yet.
func prepareWriter(c *sqlite.Conn, path string) error {
	for _, q := range []string{
		"PRAGMA page_size = 8192",
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL",
		"PRAGMA wal_autocheckpoint = 4000",      // 32 MiB: index pages written often are folded back once
		"PRAGMA journal_size_limit = 134217728", // after a reader held the WAL back
		"PRAGMA cache_size = -65536",
		"PRAGMA temp_store = MEMORY",
	} {
		if err := exec(c, q); err != nil {
			return notALedger(err)
		}
	}
	return migrate(c)
}

func openPool(path string) (*sqlitex.Pool, error) {
	return sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags:    sqlite.OpenReadOnly,
		PoolSize: readers,
		PrepareConn: func(c *sqlite.Conn) error {
			c.SetBusyTimeout(busyTimeout)
			return exec(c, "PRAGMA cache_size = -16384")
		},
	})
}

// write runs fn in one transaction, which is committed if fn returns nil and
// undone otherwise, also when fn panics.
func (l *Ledger) write(ctx context.Context, fn func(*sqlite.Conn) error) (err error) {
	if l.writer == nil {
		return ErrReadOnly
	}
	var c *sqlite.Conn
	select {
	case c = <-l.writer:
		if c == nil {
			return ErrClosed
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.writer <- c }()

	if err := begin(ctx, c); err != nil {
		return err
	}
	c.SetInterrupt(ctx.Done())
	defer func() {
		c.SetInterrupt(nil)
		if !c.AutocommitEnabled() { // some failures, a full disk for one, have undone it already
			if rerr := exec(c, "ROLLBACK"); rerr != nil {
				err = errors.Join(err, rerr)
			}
		}
		err = withCause(ctx, err)
	}()
	if err := fn(c); err != nil {
		return err
	}
	return exec(c, "COMMIT")
}

// begin takes the write lock. A connection that waits for it can be
// interrupted, which neither a timeout of SQLite's own nor its sleep can.
func begin(ctx context.Context, c *sqlite.Conn) error {
	wait, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	c.SetInterrupt(wait.Done())
	defer c.SetInterrupt(nil)
	err := exec(c, "BEGIN IMMEDIATE")
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return fmt.Errorf("another program has held the ledger's write lock for %v: %w", busyTimeout, err)
	}
	return withCause(ctx, err)
}

// read runs fn on a reading connection. What fn reads is one snapshot only
// within one statement.
func (l *Ledger) read(ctx context.Context, fn func(*sqlite.Conn) error) error {
	c, err := l.pool.Take(ctx)
	if err != nil {
		return withCause(ctx, err)
	}
	defer l.pool.Put(c)
	return withCause(ctx, fn(c))
}

// snapshot is read with one snapshot for all that fn reads.
func (l *Ledger) snapshot(ctx context.Context, fn func(*sqlite.Conn) error) error {
	return l.read(ctx, func(c *sqlite.Conn) error {
		if err := exec(c, "BEGIN"); err != nil {
			return err
		}
		err := fn(c)
		c.SetInterrupt(nil) // the snapshot is given up also when the context has ended
		return errors.Join(err, exec(c, "ROLLBACK"))
	})
}

// withCause makes an interrupted statement recognisable as the context's end.
func withCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w (%v)", ctx.Err(), err)
	}
	return err
}
