package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

// queueLock is the advisory lock ("slot" in ASCII) of whoever gives a slot
// away, in any process.
const queueLock = 0x736c6f74

// The queue and those who compete for it. None of them reads a job that ended
// before the time that is asked about.
const (
	selectWaiting = "SELECT id, seq, tenant_id, priority FROM jobs WHERE status = 'queued' ORDER BY seq"
	selectRunning = "SELECT tenant_id, count(*) FROM jobs WHERE status = 'running' AND type NOT IN ('fetch', 'command') GROUP BY tenant_id"
	selectServed  = "SELECT tenant_id, count(*) FROM jobs WHERE granted_ms >= $1 AND type NOT IN ('fetch', 'command') GROUP BY tenant_id"
)

var selectAttending = "SELECT " + tenantColumns + " FROM tenants WHERE id IN (SELECT tenant_id FROM jobs WHERE status = 'queued')"

// StartNext gives a slot away. An advisory lock keeps two of them apart, in
// one process and in many. Neither choose nor fn may use the Ledger.
func (l *Ledger) StartNext(ctx context.Context, servedSince time.Time, choose func(ledger.Contest) string,
	fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, bool, error) {
	var j ledger.Job
	chosen := false
	err := l.once(ctx, func(tx pgx.Tx) (err error) {
		chosen = false
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(queueLock)); err != nil {
			return err
		}
		for !chosen {
			contest, err := readContest(ctx, tx, servedSince)
			if err != nil {
				return err
			}
			id := choose(contest)
			if id == "" {
				return errNothing
			}
			if !slices.ContainsFunc(contest.Waiting, func(w ledger.Waiting) bool { return w.ID == id }) {
				return fmt.Errorf("job %s was chosen and does not wait", id)
			}
			waits, err := inside(ctx, tx, scanJob, selectJob+"WHERE id = $1 AND status = 'queued'"+hold, id)
			if err != nil {
				return err
			}
			if len(waits) == 0 { // it was cancelled or deleted since: the contest is another one
				continue
			}
			if j, err = waits[0].Job, waits[0].err; err != nil {
				return err
			}
			chosen = true
		}
		return changeJob(ctx, tx, &j, fn)
	})
	if err != nil {
		return ledger.Job{}, false, fmt.Errorf("start a job: %w", err)
	}
	return j, chosen, nil
}

// Contest is the state of the queue, in one snapshot.
func (l *Ledger) Contest(ctx context.Context, servedSince time.Time) (ledger.Contest, error) {
	var contest ledger.Contest
	err := l.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		contest, err = readContest(ctx, tx, servedSince)
		return err
	})
	if err != nil {
		return contest, fmt.Errorf("read the queue: %w", err)
	}
	return contest, nil
}

func readContest(ctx context.Context, tx pgx.Tx, servedSince time.Time) (ledger.Contest, error) {
	c := ledger.Contest{Running: map[string]int{}, Served: map[string]int{}, Tenants: map[string]ledger.Tenant{}}
	var err error
	c.Waiting, err = inside(ctx, tx, func(r ledger.Reader) ledger.Waiting {
		return ledger.Waiting{ID: r.Text(), Seq: r.Int(), Tenant: r.Text(), Priority: int(r.Int())}
	}, selectWaiting)
	if err != nil {
		return c, err
	}
	count := func(m map[string]int) func(ledger.Reader) string {
		return func(r ledger.Reader) string {
			tenant := r.Text()
			m[tenant] = int(r.Int())
			return tenant
		}
	}
	if _, err := inside(ctx, tx, count(c.Running), selectRunning); err != nil {
		return c, err
	}
	if _, err := inside(ctx, tx, count(c.Served), selectServed, servedSince.UnixMilli()); err != nil {
		return c, err
	}
	tenants, err := inside(ctx, tx, ledger.ScanTenant, selectAttending)
	for _, t := range tenants {
		c.Tenants[t.ID] = t
	}
	return c, err
}
