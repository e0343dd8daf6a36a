package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// The job side of the ledger is not idempotent: an order, an event, a page
// paid for must not be stored twice because the answer to a commit was lost on
// the way. So each of these transactions begins with a receipt that its
// repetitions share: who finds it there already was committed, and who meets
// an earlier attempt that the server has not decided about yet waits for it.
// The number of a transaction would not do: after a crash PostgreSQL gives
// away again the numbers that it had not written down.
//
// Receipts are kept for receiptAge, which is how long a caller can go on
// trying while the database is away from it and not from others; each new one
// takes a few old ones with it.
//
// # Locks, in the order in which they are taken
//
// a receipt · the lock of the queue (StartNext) · a tenant (its orders and
// schedules come one after the other) · a job, several by id · a month's usage.

const receipt = `WITH old AS (
		DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE at_ms < $2 ORDER BY at_ms LIMIT 5 FOR UPDATE SKIP LOCKED)
	)
	INSERT INTO receipts (id, at_ms) VALUES ($1, $3) ON CONFLICT (id) DO NOTHING`

const receiptAge = time.Hour

// errNothing ends a transaction that has nothing to store.
var errNothing = errors.New("there is nothing to store")

// once runs fn in one transaction and has it take effect once, also if the
// server goes away in the middle of the commit. fn runs again after a failure
// that is not its own; an error from it, or a panic, undoes the transaction.
func (l *Ledger) once(ctx context.Context, fn func(pgx.Tx) error) error {
	var id [16]byte
	rand.Read(id[:])
	err := l.write(ctx, func(tx pgx.Tx) error {
		now := time.Now()
		tag, err := tx.Exec(ctx, receipt, id, now.Add(-receiptAge).UnixMilli(), now.UnixMilli())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errNothing // any more: an earlier attempt was committed
		}
		return fn(tx)
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// snapshot runs fn in a transaction that reads one state of the database.
func (l *Ledger) snapshot(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return l.reader(ctx, func(ctx context.Context) error {
		return l.retry(ctx, readTries, func(ctx context.Context) error {
			return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
				err := fn(ctx, tx)
				if err != nil && tx.Conn().IsClosed() {
					return &lostError{err}
				}
				return err
			})
		})
	})
}

// inside is list in a transaction.
func inside[T any](ctx context.Context, tx pgx.Tx, scan func(ledger.Reader) T, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, clean(args)...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		all = append(all, scan(reader(rows.RawValues())))
	}
	return all, rows.Err()
}

// single is inside for one row, or the error that says there is none.
func single[T any](ctx context.Context, tx pgx.Tx, none error, scan func(ledger.Reader) T, sql string, args ...any) (v T, err error) {
	all, err := inside(ctx, tx, scan, sql, args...)
	if err != nil || len(all) == 0 {
		return v, errors.Join(err, none)
	}
	return all[0], nil
}

// change executes a statement and reports how many rows it touched. A key that
// is taken is ledger.ErrExists.
func change(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, sql, clean(args)...)
	if code(err) == "23505" {
		return 0, ledger.ErrExists
	}
	return tag.RowsAffected(), err
}

// clean makes texts storable, which those of a caller of the API may not be.
func clean(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = ledger.Unbounded(s)
		}
	}
	return args
}

// params are n parameters from $first on.
func params(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", first+i)
	}
	return strings.Join(list, ", ")
}

// args are the arguments of a statement for one row.
type args []any

func (a *args) Null()                   { *a = append(*a, nil) }
func (a *args) Int(v int64)             { *a = append(*a, v) }
func (a *args) Float(v float64)         { *a = append(*a, v) }
func (a *args) Bool(v bool)             { *a = append(*a, v) }
func (a *args) String(v string)         { *a = append(*a, v) }
func (a *args) Blob(v []byte)           { *a = append(*a, append([]byte{}, v...)) } // never NULL
func (a *args) FP(f weburl.Fingerprint) { *a = append(*a, ledger.AppendFP(nil, f)) }

// argsOf are first and then what put writes of v.
func argsOf[T any](put func(ledger.Writer, T), v T, first ...any) []any {
	a := args(first)
	put(ledger.Writer{Row: &a}, v)
	return a
}

// noBound turns a cursor that was not given into one behind every row, and
// noLimit a limit that was not given into SQL's.
func noBound(before int64) int64 {
	if before <= 0 {
		return math.MaxInt64
	}
	return before
}

func noLimit(n int) *int64 {
	if n <= 0 {
		return nil
	}
	limit := int64(n)
	return &limit
}
