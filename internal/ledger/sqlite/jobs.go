package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

const (
	// The empty tenant is the operator. A foreign job is no other than a
	// missing one.
	byID          = "WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)"
	byIdempotency = "WHERE tenant_id = ?1 AND idempotency = ?2"
)

var (
	selectJob = "SELECT seq, " + strings.Join(ledger.JobColumns, ", ") + " FROM jobs"
	insertJob = "INSERT INTO jobs (" + strings.Join(ledger.JobColumns, ", ") + ") VALUES (" + placeholders(len(ledger.JobColumns)) + ")"
	updateJob = "UPDATE jobs SET " + assignments(ledger.JobColumns[ledger.JobFixed:], 2) + " WHERE seq = ?1"
)

// CreateJob stores a new job, unless its tenant has one of the same
// idempotency name, which it then returns. decide must not use the Ledger: the
// transaction around it holds the one connection that writes.
func (l *Ledger) CreateJob(ctx context.Context, j *ledger.Job, decide func(ledger.Usage) (ledger.JobChange, error)) (existing *ledger.Job, err error) {
	err = l.write(ctx, func(c *sqlite.Conn) error {
		if _, err := tenant(c, j.Tenant); err != nil {
			return err
		}
		if j.Idempotency != "" {
			old, err := oneJob(c, byIdempotency, j.Tenant, j.Idempotency)
			if err == nil {
				existing = &old
			}
			if !errors.Is(err, ledger.ErrNoJob) {
				return err
			}
		}
		usage, err := usageOf(c, j.Tenant, j.Month)
		if err != nil {
			return err
		}
		change, err := decide(usage)
		if err != nil {
			return err
		}
		reserved, used, err := ledger.Settle(ledger.Job{}, j)
		if err != nil {
			return err
		}
		s, err := c.Prepare(insertJob)
		if err != nil {
			return err
		}
		b := bind(s)
		ledger.PutJobFixed(b, j)
		ledger.PutJobChanging(b, j)
		if err := stepUnique(s); err != nil {
			return fmt.Errorf("job %s: %w", j.ID, err)
		}
		j.Seq = c.LastInsertRowID()
		if err := addUsage(c, j, reserved, used); err != nil {
			return err
		}
		return putChange(c, j, change)
	})
	if err != nil {
		return nil, fmt.Errorf("create job: %w", err)
	}
	return existing, nil
}

// UpdateJob changes one job. Like decide of CreateJob, fn must not use the
// Ledger.
func (l *Ledger) UpdateJob(ctx context.Context, tenant, id string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, error) {
	var j ledger.Job
	err := l.write(ctx, func(c *sqlite.Conn) (err error) {
		if j, err = jobOf(c, tenant, id); err != nil {
			return err
		}
		return changeJob(c, &j, fn)
	})
	if err != nil {
		return ledger.Job{}, fmt.Errorf("update job: %w", err)
	}
	return j, nil
}

// changeJob applies fn to a job that was read in the same transaction.
func changeJob(c *sqlite.Conn, j *ledger.Job, fn func(*ledger.Job) (ledger.JobChange, error)) error {
	old := *j
	change, err := fn(j)
	if err != nil {
		return err
	}
	reserved, used, err := ledger.Settle(old, j)
	if err != nil {
		return err
	}
	s, err := c.Prepare(updateJob)
	if err != nil {
		return err
	}
	b := bind(s)
	b.Int(j.Seq)
	ledger.PutJobChanging(b, j)
	if err := step(s); err != nil {
		return err
	}
	if err := addUsage(c, j, reserved, used); err != nil {
		return err
	}
	return putChange(c, j, change)
}

// Job returns one job, or ledger.ErrNoJob.
func (l *Ledger) Job(ctx context.Context, tenant, id string) (ledger.Job, error) {
	var j ledger.Job
	err := l.read(ctx, func(c *sqlite.Conn) (err error) {
		j, err = jobOf(c, tenant, id)
		return err
	})
	if err != nil {
		return ledger.Job{}, fmt.Errorf("read job: %w", err)
	}
	return j, nil
}

// Jobs lists jobs, newest first. Each status is looked up by itself, so that
// few running jobs are found as fast among many that ended.
func (l *Ledger) Jobs(ctx context.Context, f ledger.JobFilter) ([]ledger.Job, error) {
	var all []ledger.Job
	err := l.snapshot(ctx, func(c *sqlite.Conn) error {
		statuses := slices.Compact(slices.Sorted(slices.Values(f.Statuses)))
		if len(statuses) == 0 {
			statuses = append(statuses, "")
		}
		for _, status := range statuses {
			var damage error
			q := jobQuery(f, status)
			err := q.run(c, selectJob, newestFirst, noLimit(f.Limit), func(r ledger.Reader) {
				j, err := ledger.ScanJob(r)
				all, damage = append(all, j), errors.Join(damage, err)
			})
			if err = errors.Join(err, damage); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	slices.SortFunc(all, func(a, b ledger.Job) int { return int(b.Seq - a.Seq) })
	if f.Limit > 0 && len(all) > f.Limit {
		all = all[:f.Limit]
	}
	return all, nil
}

const newestFirst = "ORDER BY seq DESC"

func jobQuery(f ledger.JobFilter, status ledger.Status) (q query) {
	q.And("seq < ?", noBound(f.Before))
	for _, c := range []struct{ column, value string }{
		{"tenant_id", f.Tenant}, {"status", string(status)}, {"type", f.Type}, {"schedule_id", f.Schedule},
	} {
		if c.value != "" {
			q.And(c.column+" = ?", c.value)
		}
	}
	if f.Type == "" {
		q.And("type <> ?", ledger.TypeFetch)
	}
	if f.Match != "" {
		q.And("(instr(id, ?) > 0 OR EXISTS (SELECT 1 FROM json_each(seeds) WHERE instr(value, ?) > 0))", f.Match, f.Match)
	}
	return q
}

// DeleteJob removes a job that has ended, its events and its deliveries. What
// it cost stays.
func (l *Ledger) DeleteJob(ctx context.Context, tenant, id string) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		j, err := jobOf(c, tenant, id)
		if err != nil {
			return err
		}
		if !j.Status.Done() {
			return fmt.Errorf("job %s is %s: %w", id, j.Status, ledger.ErrNotEnded)
		}
		for _, q := range []string{
			"DELETE FROM job_events WHERE job_id = ?1",
			"DELETE FROM webhook_deliveries WHERE job_id = ?1",
			"DELETE FROM jobs WHERE id = ?1",
		} {
			s, err := bindAll(c, q, id)
			if err != nil {
				return err
			}
			if err := step(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete job: %w", err)
	}
	return nil
}

func jobOf(c *sqlite.Conn, tenant, id string) (ledger.Job, error) {
	return oneJob(c, byID, id, tenant)
}

func oneJob(c *sqlite.Conn, where string, args ...any) (ledger.Job, error) {
	j, err := ledger.Job{}, ledger.ErrNoJob
	s, perr := bindAll(c, selectJob+" "+where, args...)
	if perr != nil {
		return j, perr
	}
	rerr := each(s, func(r ledger.Reader) error {
		j, err = ledger.ScanJob(r)
		return nil
	})
	if rerr != nil {
		return j, rerr
	}
	return j, err
}
