package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tiptoe/internal/ledger"
)

const (
	// readTries is how often a read is tried: about three seconds, enough for
	// a restart, short enough for somebody who waits for an answer.
	readTries = 8
	// attemptTimeout bounds one attempt at a write: a server that went away
	// without a word must not hold a batch for ever.
	attemptTimeout = time.Minute

	firstPause = 20 * time.Millisecond
	longPause  = 2 * time.Second
)

// trouble is what keeps writes from getting through.
type trouble struct {
	why   error
	since time.Time
}

// Trouble says since when writes wait for the database, and for what; nil if
// they do not.
func (l *Ledger) Trouble() (why error, since time.Time) {
	if t := l.trouble.Load(); t != nil {
		return t.why, t.since
	}
	return nil, time.Time{}
}

// write runs fn in one transaction, which is committed if fn returns nil and
// undone otherwise. After a failure that is not fn's fault (see transient) all
// of it is done again, with growing pauses, until ctx ends. So what fn does
// must be idempotent: the answer to a commit may have been lost, and fn may
// find its own rows.
func (l *Ledger) write(ctx context.Context, fn func(pgx.Tx) error) error {
	if l.readOnly {
		return ErrReadOnly
	}
	return l.retry(ctx, 0, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, l.patience)
		defer cancel()
		err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			wire := tx.Conn().PgConn().Conn() // fn waits on it with a context that may have no end
			defer context.AfterFunc(ctx, func() { wire.SetDeadline(time.Unix(1, 0)) })()
			err := fn(tx)
			if err != nil && tx.Conn().IsClosed() {
				return &lostError{err}
			}
			return err
		})
		if code(err) == readOnlyServer || err != nil && ctx.Err() != nil {
			l.pool.Reset() // it is not the primary any more, or gone; other connections lead to it too
		}
		return err
	})
}

// list returns what scan makes of each row of a query. It is tried a few
// times. What it reads is one snapshot.
func list[T any](ctx context.Context, l *Ledger, scan func(ledger.Reader) T, sql string, args ...any) ([]T, error) {
	var all []T
	err := l.reader(ctx, func(ctx context.Context) error {
		return l.retry(ctx, readTries, func(ctx context.Context) error {
			all = nil
			return l.each(ctx, sql, args, func(r ledger.Reader) error {
				all = append(all, scan(r))
				return nil
			})
		})
	})
	return all, err
}

// one is list for a query that has one row at most.
func one[T any](ctx context.Context, l *Ledger, scan func(ledger.Reader) T, sql string, args ...any) (v T, found bool, err error) {
	all, err := list(ctx, l, scan, sql, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// reader runs fn with one of the connections that readers may use: one is
// always left to writers. It ends with the ledger.
func (l *Ledger) reader(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
	}
	err := fn(ctx)
	if err != nil && l.life.Err() != nil {
		return ErrClosed
	}
	return err
}

// each runs a query once.
func (l *Ledger) each(ctx context.Context, sql string, args []any, row func(ledger.Reader) error) error {
	rows, err := l.pool.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(reader(rows.RawValues())); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		if c := rows.Conn(); c != nil && c.IsClosed() {
			return &lostError{err}
		}
		return err
	}
	return nil
}

// retry calls attempt until it succeeds, fails for good, has failed tries
// times (0 is no bound), or until ctx or the ledger ends.
func (l *Ledger) retry(ctx context.Context, tries int, attempt func(context.Context) error) error {
	for n := 1; ; n++ {
		if l.life.Err() != nil {
			return ErrClosed
		}
		err := attempt(ctx)
		if err == nil {
			if tries == 0 && l.trouble.Load() != nil {
				l.trouble.Store(nil)
			}
			return nil
		}
		if ctx.Err() != nil {
			return withCause(ctx, err)
		}
		if !transient(err) || n == tries {
			return err
		}
		if tries == 0 {
			l.note(err)
		}
		pause := min(firstPause<<min(n-1, 10), longPause)
		t := time.NewTimer(pause/2 + rand.N(pause/2)) // jittered: a fleet must not come back in step
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return withCause(ctx, err)
		case <-l.life.Done():
			t.Stop()
			return fmt.Errorf("%w (it waited for the database: %v)", ErrClosed, err)
		}
	}
}

func (l *Ledger) note(err error) {
	now := &trouble{why: err, since: time.Now()}
	if before := l.trouble.Load(); before != nil {
		now.since = before.since
	}
	l.trouble.Store(now)
}

// lostError is a failure after which the connection was gone.
type lostError struct{ err error }

func (e *lostError) Error() string { return "connection lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

const readOnlyServer = "25006"

// transient reports whether a later attempt at the same may succeed: the
// server restarts, failed over, was read-only for a moment, has no connection
// free, or chose this transaction to end a deadlock; or the way to it broke.
// A server that answers and refuses (a password, a missing database or table,
// a full disk) is not waited for: a person must do something.
func transient(err error) bool {
	if c := code(err); c != "" {
		switch c {
		case "57P01", "57P02", "57P03", // shut down by an administrator, crashed, starting
			readOnlyServer, // a primary that became a standby
			"25P03",        // we were frozen in a transaction
			"40001", "40P01",
			"53300": // too many connections
			return true
		}
		return c[:2] == "08"
	}
	var lost *lostError
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &lost) || errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || // an attempt's own; retry has looked at the caller's
		pgconn.SafeToRetry(err)
}

// code is the server's code for an error, empty if it did not come from it.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 {
		return pg.Code
	}
	return ""
}

// withCause makes an interrupted query recognisable as the context's end.
func withCause(ctx context.Context, err error) error {
	if !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w (%v)", ctx.Err(), err)
	}
	return err
}
