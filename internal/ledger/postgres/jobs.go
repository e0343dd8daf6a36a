package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

const (
	// The empty tenant is the operator. A foreign job is no other than a
	// missing one.
	byID          = "WHERE id = $1 AND ($2::text = '' OR tenant_id = $2)"
	byIdempotency = "WHERE tenant_id = $1 AND idempotency = $2"

	// hold locks a row against everybody who does so too.
	hold = " FOR NO KEY UPDATE"
)

var (
	selectJob = "SELECT seq, " + strings.Join(ledger.JobColumns, ", ") + " FROM jobs "
	insertJob = "INSERT INTO jobs (" + strings.Join(ledger.JobColumns, ", ") + ") VALUES (" + params(1, len(ledger.JobColumns)) + ") RETURNING seq"
	updateJob = "UPDATE jobs SET (" + strings.Join(ledger.JobColumns[ledger.JobFixed:], ", ") + ") = ROW(" +
		params(2, len(ledger.JobColumns)-ledger.JobFixed) + ") WHERE id = $1"
)

// CreateJob stores a new job, unless its tenant has one of the same
// idempotency name, which it then returns. Orders of one tenant wait for each
// other. decide must not use the Ledger, which may have no other connection.
func (l *Ledger) CreateJob(ctx context.Context, j *ledger.Job, decide func(ledger.Usage) (ledger.JobChange, error)) (existing *ledger.Job, err error) {
	asked := *j
	err = l.once(ctx, func(tx pgx.Tx) error {
		*j, existing = asked, nil // decide may have been here
		if _, err := holdTenant(ctx, tx, j.Tenant); err != nil {
			return err
		}
		if j.Idempotency != "" {
			old, err := oneJob(ctx, tx, byIdempotency, j.Tenant, j.Idempotency)
			if err == nil {
				existing = &old
				return errNothing
			}
			if !errors.Is(err, ledger.ErrNoJob) {
				return err
			}
		}
		usage, err := single(ctx, tx, nil, scanUsage(j.Tenant, j.Month), selectUsage+hold, j.Month, j.Tenant)
		if err != nil {
			return err
		}
		usage.Tenant, usage.Month = j.Tenant, j.Month // also of a month without a row
		change, err := decide(usage)
		if err != nil {
			return err
		}
		reserved, used, err := ledger.Settle(ledger.Job{}, j)
		if err != nil {
			return err
		}
		j.Seq, err = single(ctx, tx, nil, ledger.Reader.Int, insertJob, argsOf(ledger.PutJobChanging, j, argsOf(ledger.PutJobFixed, j)...)...)
		if code(err) == "23505" {
			return fmt.Errorf("job %s: %w", j.ID, ledger.ErrExists)
		}
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		queueUsage(b, j, reserved, used)
		queueChange(b, j, change)
		return tx.SendBatch(ctx, b).Close()
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
	err := l.once(ctx, func(tx pgx.Tx) (err error) {
		if j, err = oneJob(ctx, tx, byID+hold, id, tenant); err != nil {
			return err
		}
		return changeJob(ctx, tx, &j, fn)
	})
	if err != nil {
		return ledger.Job{}, fmt.Errorf("update job: %w", err)
	}
	return j, nil
}

// changeJob applies fn to a job that the transaction holds.
func changeJob(ctx context.Context, tx pgx.Tx, j *ledger.Job, fn func(*ledger.Job) (ledger.JobChange, error)) error {
	old := *j
	change, err := fn(j)
	if err != nil {
		return err
	}
	reserved, used, err := ledger.Settle(old, j)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(updateJob, argsOf(ledger.PutJobChanging, j, j.ID)...)
	queueUsage(b, j, reserved, used)
	queueChange(b, j, change)
	return tx.SendBatch(ctx, b).Close()
}

// Job returns one job, or ledger.ErrNoJob.
func (l *Ledger) Job(ctx context.Context, tenant, id string) (ledger.Job, error) {
	j, found, err := one(ctx, l, scanJob, selectJob+byID, clean([]any{id, tenant})...)
	if err == nil && !found {
		err = ledger.ErrNoJob
	}
	if err == nil {
		err = j.err
	}
	if err != nil {
		return ledger.Job{}, fmt.Errorf("read job: %w", err)
	}
	return j.Job, nil
}

// Jobs lists jobs, newest first. Each status is looked up by itself, so that
// few running jobs are found as fast among many that ended.
func (l *Ledger) Jobs(ctx context.Context, f ledger.JobFilter) ([]ledger.Job, error) {
	statuses := slices.Compact(slices.Sorted(slices.Values(f.Statuses)))
	if len(statuses) == 0 {
		statuses = append(statuses, "")
	}
	var all []ledger.Job
	err := l.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		all = nil
		for _, status := range statuses {
			sql, args := jobQuery(f, status)
			some, err := inside(ctx, tx, scanJob, sql, args...)
			if err != nil {
				return err
			}
			for _, j := range some {
				if j.err != nil {
					return j.err
				}
				all = append(all, j.Job)
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

func jobQuery(f ledger.JobFilter, status ledger.Status) (sql string, args []any) {
	var q query
	order := " ORDER BY seq DESC"
	if f.Tenant == "" && status == "" && f.Schedule == "" {
		order = " ORDER BY -seq" // see jobs_newest
		q.And("-seq > ?", -noBound(f.Before))
	} else {
		q.And("seq < ?", noBound(f.Before))
	}
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
		q.And("(strpos(id, ?) > 0 OR EXISTS (SELECT 1 FROM json_array_elements_text(seeds::json) AS seed WHERE strpos(seed, ?) > 0))", f.Match, f.Match)
	}
	sql = selectJob + q.where() + order
	if f.Limit > 0 {
		sql += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	return sql, q.args
}

// DeleteJob removes a job that has ended, its events and its deliveries. What
// it cost stays.
func (l *Ledger) DeleteJob(ctx context.Context, tenant, id string) error {
	err := l.once(ctx, func(tx pgx.Tx) error {
		j, err := oneJob(ctx, tx, byID+hold, id, tenant)
		if err != nil {
			return err
		}
		if !j.Status.Done() {
			return fmt.Errorf("job %s is %s: %w", id, j.Status, ledger.ErrNotEnded)
		}
		b := &pgx.Batch{}
		b.Queue("DELETE FROM job_events WHERE job_id = $1", j.ID)
		b.Queue("DELETE FROM webhook_deliveries WHERE job_id = $1", j.ID)
		b.Queue("DELETE FROM jobs WHERE id = $1", j.ID)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("delete job: %w", err)
	}
	return nil
}

func oneJob(ctx context.Context, tx pgx.Tx, where string, args ...any) (ledger.Job, error) {
	j, err := single(ctx, tx, ledger.ErrNoJob, scanJob, selectJob+where, args...)
	if err == nil {
		err = j.err
	}
	return j.Job, err
}

// storedJob is a job that may turn out to be damaged.
type storedJob struct {
	ledger.Job
	err error
}

func scanJob(r ledger.Reader) (j storedJob) {
	j.Job, j.err = ledger.ScanJob(r)
	return j
}
