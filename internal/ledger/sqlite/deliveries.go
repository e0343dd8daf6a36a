package sqlite

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

var (
	putDeliveries  = "INSERT INTO webhook_deliveries (" + strings.Join(ledger.DeliveryColumns, ", ") + ") VALUES (" + placeholders(len(ledger.DeliveryColumns)) + ")"
	attempt        = ledger.DeliveryColumns[len(ledger.DeliveryColumns)-ledger.AttemptColumns:]
	updateDelivery = "UPDATE webhook_deliveries SET " + assignments(attempt, 2) + " WHERE id = ?1"
)

const (
	ofJob         = "WHERE job_id = ?1 ORDER BY id"
	dueDeliveries = "FROM webhook_deliveries WHERE next_ms <= ?1 ORDER BY next_ms, id LIMIT ?2"
)

// DueDeliveries returns the messages that are due, the longest overdue first.
func (l *Ledger) DueDeliveries(ctx context.Context, now time.Time, limit int) ([]ledger.Delivery, error) {
	return l.deliveries(ctx, dueDeliveries, now.UnixMilli(), noLimit(limit))
}

// NextDelivery returns when the next message is due, zero if none ever is.
func (l *Ledger) NextDelivery(ctx context.Context) (time.Time, error) {
	all, err := l.deliveries(ctx, dueDeliveries, int64(math.MaxInt64), int64(1))
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Next, nil
}

// DeliveriesOf returns the messages about a job, oldest first.
func (l *Ledger) DeliveriesOf(ctx context.Context, job string) ([]ledger.Delivery, error) {
	return l.deliveries(ctx, "FROM webhook_deliveries "+ofJob, job)
}

// ClaimDelivery begins an attempt at a message that DueDeliveries returned: it
// counts it, and the next is due at until. false: somebody else has begun one
// since, or the message is gone.
func (l *Ledger) ClaimDelivery(ctx context.Context, d ledger.Delivery, until time.Time) (ours bool, err error) {
	err = l.write(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, "UPDATE webhook_deliveries SET attempts = attempts + 1, next_ms = ?1 WHERE id = ?2 AND attempts = ?3 AND done_ms IS NULL",
			until.UnixMilli(), d.ID, int64(d.Attempts))
		if err != nil {
			return err
		}
		if err := step(s); err != nil {
			return err
		}
		ours = c.Changes() == 1
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("claim delivery %d: %w", d.ID, err)
	}
	return ours, nil
}

// UpdateDelivery stores how an attempt went. A message is gone with its job:
// then it is ledger.ErrNoJob.
func (l *Ledger) UpdateDelivery(ctx context.Context, d ledger.Delivery) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare(updateDelivery)
		if err != nil {
			return err
		}
		b := bind(s)
		b.Int(d.ID)
		ledger.PutAttempt(b, &d)
		if err := step(s); err != nil {
			return err
		}
		if c.Changes() == 0 {
			return ledger.ErrNoJob
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("update delivery %d: %w", d.ID, err)
	}
	return nil
}

func (l *Ledger) deliveries(ctx context.Context, from string, args ...any) ([]ledger.Delivery, error) {
	var all []ledger.Delivery
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, "SELECT id, "+strings.Join(ledger.DeliveryColumns, ", ")+" "+from, args...)
		if err != nil {
			return err
		}
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.ScanDelivery(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return all, nil
}

func putDelivery(c *sqlite.Conn, d *ledger.Delivery) error {
	s, err := c.Prepare(putDeliveries)
	if err != nil {
		return err
	}
	ledger.PutDelivery(bind(s), d)
	return step(s)
}
