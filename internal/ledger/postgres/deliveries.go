package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

const (
	deliveryColumns = "tenant_id, job_id, event, url, body, created_ms, attempts, next_ms, done_ms, status, error"
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
		n, err := change(ctx, tx, "UPDATE webhook_deliveries SET (attempts, next_ms, done_ms, status, error) = ROW("+params(2, 5)+") WHERE id = $1",
			append([]any{d.ID}, attemptArgs(&d)...)...)
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
	all, err := list(ctx, l, func(r *scanner) ledger.Delivery {
		return ledger.Delivery{ID: r.int(), Tenant: r.text(), Job: r.text(), Event: r.text(), URL: r.text(), Body: r.text(),
			Created: r.ms(), Attempts: int(r.int()), Next: r.ms(), Done: r.ms(), Status: int(r.int()), Error: r.text()}
	}, sql, clean(args)...)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return all, nil
}

func queueDelivery(b *pgx.Batch, d *ledger.Delivery) {
	args := append([]any{d.Tenant, d.Job, d.Event, d.URL, longText(d.Body), nullMS(d.Created)}, attemptArgs(d)...)
	b.Queue("INSERT INTO webhook_deliveries ("+deliveryColumns+") VALUES ("+params(1, 11)+")", clean(args)...)
}

// attemptArgs sees to it that a message whose story is over is never due.
func attemptArgs(d *ledger.Delivery) []any {
	if !d.Done.IsZero() {
		d.Next = time.Time{}
	}
	return []any{int64(d.Attempts), nullMS(d.Next), nullMS(d.Done), nullInt(int64(d.Status)), shortText(d.Error)}
}
