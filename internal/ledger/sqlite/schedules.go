package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
)

var (
	selectSchedule = "SELECT " + strings.Join(ledger.ScheduleColumns, ", ") + " "
	insertSchedule = "INSERT INTO schedules (" + strings.Join(ledger.ScheduleColumns, ", ") + ") VALUES (" + placeholders(len(ledger.ScheduleColumns)) + ")"
	updateSchedule = "UPDATE schedules SET " + assignments(ledger.ScheduleColumns[ledger.ScheduleFixed:], 2) + " WHERE id = ?1"
)

// The schedules of a disabled tenant rest: they are due when it is back.
const dueSchedules = "FROM schedules WHERE next_ms <= ?1 AND tenant_id NOT IN (SELECT id FROM tenants WHERE disabled) ORDER BY next_ms, id LIMIT ?2"

// CreateSchedule stores a new schedule, unless its tenant has as many already
// as it may have.
func (l *Ledger) CreateSchedule(ctx context.Context, s ledger.Schedule, most int) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		if _, err := tenant(c, s.Tenant); err != nil {
			return err
		}
		count, err := bindAll(c, "SELECT count(*) FROM schedules WHERE tenant_id = ?1", s.Tenant)
		if err != nil {
			return err
		}
		n, err := sqlitex.ResultInt(count)
		if err != nil {
			return err
		}
		if most > 0 && n >= most {
			return ledger.ErrFull
		}
		insert, err := c.Prepare(insertSchedule)
		if err != nil {
			return err
		}
		ledger.PutSchedule(bind(insert), &s)
		return stepUnique(insert)
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
	err := l.write(ctx, func(c *sqlite.Conn) (err error) {
		if s, err = scheduleOf(c, tenant, id); err != nil {
			return err
		}
		old := s
		if err := fn(&s); err != nil {
			return err
		}
		s.ID, s.Tenant, s.Created = old.ID, old.Tenant, old.Created
		update, err := c.Prepare(updateSchedule)
		if err != nil {
			return err
		}
		b := bind(update)
		b.Must(id)
		ledger.PutScheduleChanging(b, &s)
		return step(update)
	})
	if err != nil {
		return ledger.Schedule{}, fmt.Errorf("update schedule: %w", err)
	}
	return s, nil
}

// Schedule returns one schedule, or ledger.ErrNoSchedule.
func (l *Ledger) Schedule(ctx context.Context, tenant, id string) (ledger.Schedule, error) {
	var s ledger.Schedule
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		s, err = scheduleOf(c, tenant, id)
		return err
	})
	if err != nil {
		return s, fmt.Errorf("read schedule: %w", err)
	}
	return s, nil
}

// Schedules returns a tenant's schedules, or all of them for the operator, in
// the order in which they were created.
func (l *Ledger) Schedules(ctx context.Context, tenant string) ([]ledger.Schedule, error) {
	const order = "ORDER BY created_ms, id"
	if tenant == "" {
		return l.schedules(ctx, "FROM schedules "+order)
	}
	return l.schedules(ctx, "FROM schedules WHERE tenant_id = ?1 "+order, tenant)
}

// DeleteSchedule removes a schedule; the jobs that it ordered stay.
func (l *Ledger) DeleteSchedule(ctx context.Context, tenant, id string) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, "DELETE FROM schedules "+byID, id, tenant)
		if err != nil {
			return err
		}
		if err := step(s); err != nil {
			return err
		}
		if c.Changes() == 0 {
			return ledger.ErrNoSchedule
		}
		return nil
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
	all, err := l.schedules(ctx, dueSchedules, int64(math.MaxInt64), int64(1))
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Next, nil
}

func (l *Ledger) schedules(ctx context.Context, from string, args ...any) ([]ledger.Schedule, error) {
	var all []ledger.Schedule
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		all, err = readSchedules(c, from, args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return all, nil
}

func scheduleOf(c *sqlite.Conn, tenant, id string) (ledger.Schedule, error) {
	all, err := readSchedules(c, "FROM schedules "+byID, id, tenant)
	if err != nil || len(all) == 0 {
		return ledger.Schedule{}, errors.Join(err, ledger.ErrNoSchedule)
	}
	return all[0], nil
}

func readSchedules(c *sqlite.Conn, from string, args ...any) ([]ledger.Schedule, error) {
	s, err := bindAll(c, selectSchedule+from, args...)
	if err != nil {
		return nil, err
	}
	var all []ledger.Schedule
	err = each(s, func(r ledger.Reader) error {
		all = append(all, ledger.ScanSchedule(r))
		return nil
	})
	return all, err
}
