// Package postgres answers: where is the ledger of many machines kept?
//
// In a PostgreSQL database, in the tables that package sqlite keeps in a file:
// the same names, the same columns, the same meaning (migrations/ has them).
// It is meant to be queried by people: outcomes are names, times and durations
// say their unit, unknown is NULL.
//
// # Guarantees
//
// They are those of package sqlite. Commit writes one batch in one
// transaction: all of it or nothing, and when it returns nil the batch is on
// stable storage, even where the server's configuration would not wait for it.
// Committing the same batch twice leaves the same rows as once. A page that
// was committed earlier is replaced by a later attempt and keeps its ID. Texts
// are valid UTF-8 without NUL. Order is byte by byte, whatever language the
// database speaks.
//
// # When the server is away
//
// A write that fails because the server restarts, crashed, failed over, has no
// connection free or chose it to end a deadlock is done again, with pauses of
// 20 ms to 2 s, until its context ends; Trouble says what it waits for. That is
// safe because the rows carry their identity: a batch whose commit took effect
// and whose answer was lost finds its own rows. An attempt lasts a minute at
// most: a server that falls silent is asked anew. Reads are tried for about
// three seconds. What a server refuses for good (a missing right, a full disk) is
// returned at once. A URL with several hosts finds the one that takes writes, also
// after a fail-over.
//
// # Many writers
//
// Batches of different processes write at the same time. All take the same
// tables in the same order, in each table rows by key, so batches that overlap
// wait for each other and never deadlock.
//
// Page IDs are the one thing that batches of one crawl share. They come from a
// row a crawl in page_numbers, which a batch holds from its pages to its
// commit. So IDs become visible in their order: whoever has read up to a page
// and asks for what comes after it misses nothing, with no help from the
// reader. A sequence would be faster and wrong: a batch that took its numbers
// early and committed late would appear behind the cursors of its readers. The
// price is that batches of one crawl store their pages one after the other;
// their requests, evidence and domains, and all of other crawls, they do not.
// Pages are sent as one statement, and a session that is frozen in a
// transaction is ended after 15 s, so a stopped process cannot hold the row.
//
// # Connections
//
// A Ledger has up to 8 (pool_max_conns in the URL), of which readers leave one
// to writers. Listings read chunkRows rows at a time and hold none while the
// caller works, so a listing of a running crawl is not one snapshot: rows
// committed meanwhile may show up at the end, none twice, none skipped. Replay
// is one snapshot and holds one. A pooler in between must pool sessions, not
// transactions. Reads go to the primary.
//
// # What a crash loses
//
// The batch whose Commit had not returned, whole, and nothing else. With
// asynchronous replication a fail-over also loses what the old primary had not
// sent; a Ledger that is still there writes its last batches again (kept.go).
//
// # What it costs
//
// A page with 60 links and one request, in batches of 500, on one two-core
// machine with the server beside it: 11 µs of CPU time here and 30 µs in the
// server, 24,000 pages/s from one committer; from four 34,000 into one crawl
// and 41,000 into four. SQLite takes 18 µs and stores 50,000 pages/s
// (BenchmarkCommit here and there).
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connections bounds those of one Ledger, unless the URL says otherwise
	// (pool_max_conns): ten processes fit into a server's default of 100.
	connections = 8
	// connectTimeout bounds one attempt to connect, unless the URL says
	// otherwise (connect_timeout).
	connectTimeout = 10 * time.Second
	// openPatience is how long Open waits for a server that is not there yet.
	openPatience = 10 * time.Second
	// chunkRows is how many rows a listing holds in memory at a time.
	chunkRows = 500
)

// Ledger is an open ledger. It is safe for concurrent use.
type Ledger struct {
	pool     *pgxpool.Pool
	readOnly bool
	patience time.Duration // with one attempt at a write
	reading  chan struct{} // one place a reader; one connection fewer than there are
	life     context.Context
	end      context.CancelFunc // of life
	closed   sync.Once
	trouble  atomic.Pointer[trouble]
	kept     kept
	watching sync.WaitGroup
}

// ErrReadOnly is returned by every write on a ledger from OpenReadOnly.
var ErrReadOnly = errors.New("the ledger is open for reading only")

// ErrEmpty is returned by OpenReadOnly for a database without a ledger.
var ErrEmpty = errors.New("no tiptoe has written to it yet: is this the right database? A crawl with the same address begins a ledger in it")

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the ledger is closed")

// Open connects to the database that a postgres:// URL names and brings its
// schema up to date. A server that is not there yet, or that is starting, is
// waited for, for a few seconds.
func Open(ctx context.Context, url string) (*Ledger, error) {
	return open(ctx, url, false)
}

// OpenReadOnly opens a ledger for reading. The database user needs no right
// but SELECT.
func OpenReadOnly(ctx context.Context, url string) (*Ledger, error) {
	return open(ctx, url, true)
}

func open(ctx context.Context, url string, readOnly bool) (*Ledger, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open ledger: the database URL is not right (postgres://user:password@host/database is): %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = connections
	}
	config.MaxConns = max(config.MaxConns, 2) // a reader and a writer
	if !strings.Contains(url, "connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "tiptoe"
	}
	if several(config.ConnConfig) && !readOnly && !strings.Contains(url, "target_session_attrs") {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	l := &Ledger{readOnly: readOnly, patience: attemptTimeout, reading: make(chan struct{}, config.MaxConns-1)}
	l.kept.looking, l.kept.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		l.kept.connected()
		return prepare(ctx, c, readOnly)
	}
	if l.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l.life, l.end = context.WithCancel(context.Background())
	if !readOnly {
		l.watching.Go(l.watch)
	}

	patience, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	err = cause(l.retry(patience, 0, l.pool.Ping))
	if why, _ := l.Trouble(); why != nil && patience.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no PostgreSQL answered within %v; is it running, and is this its address? %w", openPatience, cause(why))
	}
	if err == nil {
		err = l.migrate(ctx)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open ledger in database %q on %s: %w", config.ConnConfig.Database, config.ConnConfig.Host, err)
	}
	return l, nil
}

// several reports whether a URL names more than one server: then the one that
// takes writes is looked for.
func several(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// cause is the one reason in the many lines that the driver has for a
// connection that it could not make.
func cause(err error) error {
	var refused *pgconn.PgError
	var unreachable *net.OpError
	var failed *pgconn.ConnectError
	switch {
	case !errors.As(err, &failed):
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &unreachable):
		return unreachable
	}
	return err
}

// Close interrupts readers and commits that wait for the server, lets those
// that run come to their end, and closes the connections. Calls after it
// fail; a second Close does nothing.
func (l *Ledger) Close() error {
	l.closed.Do(func() {
		l.end()
		l.watching.Wait()
		l.pool.Close()
	})
	return nil
}

// prepare sets what a session must not leave to the server's configuration.
// An operator may ask for more durability than "on", and loses none by it, but
// with "off" a commit that returned could be gone after a crash. A process
// that is frozen inside a transaction must not hold its locks for ever.
func prepare(ctx context.Context, c *pgx.Conn, readOnly bool) error {
	registerColumns(c.TypeMap())
	_, err := c.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', '15s', false),
		CASE WHEN $1::bool THEN set_config('default_transaction_read_only', 'on', false) END,
		CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`, readOnly)
	return err
}
