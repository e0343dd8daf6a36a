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
	scheduleColumns = strings.Join(ledger.ScheduleColumns, ", ")
	scheduleChanges = ledger.ScheduleColumns[ledger.ScheduleFixed:]
	selectSchedule  = "SELECT " + scheduleColumns + " FROM schedules "
	insertSchedule  = "INSERT INTO schedules (" + scheduleColumns + ") VALUES (" + params(1, len(ledger.ScheduleColumns)) + ")"
	updateSchedule  = "UPDATE schedules SET (" + strings.Join(scheduleChanges, ", ") + ") = ROW(" + params(2, len(scheduleChanges)) + ") WHERE id = $1"

	// The schedules of a disabled tenant rest: they are due when it is back.
	dueSchedules = selectSchedule + `WHERE next_ms <= $1 AND NOT EXISTS (SELECT 1 FROM tenants AS t WHERE t.id = tenant_id AND t.disabled)
		ORDER BY next_ms, id LIMIT $2`
)

// CreateSchedule stores a new schedule, unless its tenant has as many already
// as it may have.
func (l *Ledger) CreateSchedule(ctx context.Context, s ledger.Schedule, most int) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		if _, err := holdTenant(ctx, tx, s.Tenant); err != nil {
			return err
		}
		n, err := single(ctx, tx, nil, ledger.Reader.Int, "SELECT count(*) FROM schedules WHERE tenant_id = $1", s.Tenant)
		if err != nil {
			return err
		}
		if most > 0 && n >= int64(most) {
			return ledger.ErrFull
		}
		_, err = change(ctx, tx, insertSchedule, argsOf(ledger.PutSchedule, &s)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("create schedule: %w", err)
	}
	return nil
}

// UpdateSchedule changes a schedule; its id, tenant and age stay. fn must not
// use the Ledger.
func (l *Ledger) UpdateSchedule(ctx context.Context, tenant, id string, fn func(*ledger.Schedule) error) (ledger.Schedule, error) {
	var s ledger.Schedule
	err := l.once(ctx, func(tx pgx.Tx) (err error) {
		if s, err = single(ctx, tx, ledger.ErrNoSchedule, ledger.ScanSchedule, selectSchedule+byID+hold, id, tenant); err != nil {
			return err
		}
		old := s
		if err := fn(&s); err != nil {
			return err
		}
		s.ID, s.Tenant, s.Created = old.ID, old.Tenant, old.Created
		_, err = change(ctx, tx, updateSchedule, argsOf(ledger.PutScheduleChanging, &s, id)...)
		return err
	})
	if err != nil {
		return ledger.Schedule{}, fmt.Errorf("update schedule: %w", err)
	}
	return s, nil
}

// Schedule returns one schedule, or ledger.ErrNoSchedule.
func (l *Ledger) Schedule(ctx context.Context, tenant, id string) (ledger.Schedule, error) {
	s, found, err := one(ctx, l, ledger.ScanSchedule, selectSchedule+byID, clean([]any{id, tenant})...)
	if err == nil && !found {
		err = ledger.ErrNoSchedule
	}
	if err != nil {
		return s, fmt.Errorf("read schedule: %w", err)
	}
	return s, nil
}

// Schedules returns a tenant's schedules, or all of them for the operator, in
// the order in which they were created.
func (l *Ledger) Schedules(ctx context.Context, tenant string) ([]ledger.Schedule, error) {
	const order = "ORDER BY created_ms NULLS FIRST, id"
	if tenant == "" {
		return l.schedules(ctx, selectSchedule+order)
	}
	return l.schedules(ctx, selectSchedule+"WHERE tenant_id = $1 "+order, tenant)
}

// DeleteSchedule removes a schedule; the jobs that it ordered stay.
func (l *Ledger) DeleteSchedule(ctx context.Context, tenant, id string) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		n, err := change(ctx, tx, "DELETE FROM schedules "+byID, id, tenant)
		if err == nil && n == 0 {
			err = ledger.ErrNoSchedule
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete schedule: %w", err)
	}
	return nil
}

// DueSchedules returns the schedules that are due, the longest overdue first.
func (l *Ledger) DueSchedules(ctx context.Context, now time.Time, limit int) ([]ledger.Schedule, error) {
	return l.schedules(ctx, dueSchedules, now.UnixMilli(), noLimit(limit))
}

// NextSchedule returns when the next schedule is due, zero if none ever is.
func (l *Ledger) NextSchedule(ctx context.Context) (time.Time, error) {
	all, err := l.schedules(ctx, dueSchedules, int64(math.MaxInt64), 1)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Next, nil
}

func (l *Ledger) schedules(ctx context.Context, sql string, args ...any) ([]ledger.Schedule, error) {
	all, err := list(ctx, l, ledger.ScanSchedule, sql, clean(args)...)
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return all, nil
}
