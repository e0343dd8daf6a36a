package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

var (
	deliveryColumns = strings.Join(ledger.DeliveryColumns, ", ")
	attemptColumns  = ledger.DeliveryColumns[len(ledger.DeliveryColumns)-ledger.AttemptColumns:]
	insertDelivery  = "INSERT INTO webhook_deliveries (" + deliveryColumns + ") VALUES (" + params(1, len(ledger.DeliveryColumns)) + ")"
	updateDelivery  = "UPDATE webhook_deliveries SET (" + strings.Join(attemptColumns, ", ") + ") = ROW(" + params(2, len(attemptColumns)) + ") WHERE id = $1"
	selectDelivery  = "SELECT id, " + deliveryColumns + " FROM webhook_deliveries "
	dueDeliveries   = selectDelivery + "WHERE next_ms <= $1 ORDER BY next_ms, id LIMIT $2"
)

// DueDeliveries returns the messages that are due, the longest overdue first.
func (l *Ledger) DueDeliveries(ctx context.Context, now time.Time, limit int) ([]ledger.Delivery, error) {
	return l.deliveries(ctx, dueDeliveries, now.UnixMilli(), noLimit(limit))
}

// NextDelivery returns when the next message is due, zero if none ever is.
func (l *Ledger) NextDelivery(ctx context.Context) (time.Time, error) {
	all, err := l.deliveries(ctx, dueDeliveries, int64(math.MaxInt64), 1)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Next, nil
}

// DeliveriesOf returns the messages about a job, oldest first.
func (l *Ledger) DeliveriesOf(ctx context.Context, job string) ([]ledger.Delivery, error) {
	return l.deliveries(ctx, selectDelivery+"WHERE job_id = $1 ORDER BY id", job)
}

// ClaimDelivery begins an attempt at a message that DueDeliveries returned: it
// counts it, and the next is due at until. false: somebody else has begun one
// since, or the message is gone.
func (l *Ledger) ClaimDelivery(ctx context.Context, d ledger.Delivery, until time.Time) (ours bool, err error) {
	err = l.once(ctx, func(tx pgx.Tx) error {
		n, err := change(ctx, tx, "UPDATE webhook_deliveries SET attempts = attempts + 1, next_ms = $1 WHERE id = $2 AND attempts = $3 AND done_ms IS NULL",
			until.UnixMilli(), d.ID, int64(d.Attempts))
		ours = n == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("claim delivery %d: %w", d.ID, err)
	}
	return ours, nil
}

// UpdateDelivery stores how an attempt went. A message is gone with its job:
// then it is ledger.ErrNoJob.
func (l *Ledger) UpdateDelivery(ctx context.Context, d ledger.Delivery) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		n, err := change(ctx, tx, updateDelivery, argsOf(ledger.PutAttempt, &d, d.ID)...)
		if err == nil && n == 0 {
			err = ledger.ErrNoJob
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update delivery %d: %w", d.ID, err)
	}
	return nil
}

func (l *Ledger) deliveries(ctx context.Context, sql string, args ...any) ([]ledger.Delivery, error) {
	all, err := list(ctx, l, ledger.ScanDelivery, sql, clean(args)...)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return all, nil
}

func queueDelivery(b *pgx.Batch, d *ledger.Delivery) {
	b.Queue(insertDelivery, argsOf(ledger.PutDelivery, d)...)
}
