package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

// The queue and those who compete for it. None of the three reads a job that
// ended before the time that is asked about; left to itself, SQLite would read
// them all to save the sorting of a few.
const (
	selectWaiting = "SELECT seq, id, tenant_id, priority FROM jobs WHERE status = 'queued' ORDER BY seq"
	selectRunning = "SELECT tenant_id, count(*) FROM jobs WHERE status = 'running' AND type NOT IN ('fetch', 'command') GROUP BY tenant_id"
	selectServed  = "SELECT tenant_id, count(*) FROM jobs INDEXED BY jobs_by_grant WHERE granted_ms >= ?1 AND type NOT IN ('fetch', 'command') GROUP BY tenant_id"
)

// StartNext gives a slot away. SQLite's write lock, which other processes
// respect too, keeps two of them apart. Neither choose nor fn may use the
// Ledger.
func (l *Ledger) StartNext(ctx context.Context, servedSince time.Time, choose func(ledger.Contest) string,
	fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, bool, error) {
	var j ledger.Job
	chosen := false
	err := l.write(ctx, func(c *sqlite.Conn) error {
		contest, err := readContest(c, servedSince)
		if err != nil {
			return err
		}
		id := choose(contest)
		if id == "" {
			return nil
		}
		if !slices.ContainsFunc(contest.Waiting, func(w ledger.Waiting) bool { return w.ID == id }) {
			return fmt.Errorf("job %s was chosen and does not wait", id)
		}
		if j, err = jobOf(c, "", id); err != nil {
			return err
		}
		chosen = true
		return changeJob(c, &j, fn)
	})
	if err != nil {
		return ledger.Job{}, false, fmt.Errorf("start a job: %w", err)
	}
	return j, chosen, nil
}

// Contest is the state of the queue, in one snapshot.
func (l *Ledger) Contest(ctx context.Context, servedSince time.Time) (ledger.Contest, error) {
	var contest ledger.Contest
	err := l.snapshot(ctx, func(c *sqlite.Conn) (err error) {
		contest, err = readContest(c, servedSince)
		return err
	})
	if err != nil {
		return contest, fmt.Errorf("read the queue: %w", err)
	}
	return contest, nil
}

func readContest(c *sqlite.Conn, servedSince time.Time) (ledger.Contest, error) {
	contest := ledger.Contest{Running: map[string]int{}, Served: map[string]int{}, Tenants: map[string]ledger.Tenant{}}
	s, err := c.Prepare(selectWaiting)
	if err != nil {
		return contest, err
	}
	err = each(s, func(r ledger.Reader) error {
		contest.Waiting = append(contest.Waiting, ledger.Waiting{Seq: r.Int(), ID: r.Text(), Tenant: r.Text(), Priority: int(r.Int())})
		return nil
	})
	if err != nil {
		return contest, err
	}
	if err := countTenants(c, contest.Running, selectRunning); err != nil {
		return contest, err
	}
	if err := countTenants(c, contest.Served, selectServed, servedSince.UnixMilli()); err != nil {
		return contest, err
	}
	for _, w := range contest.Waiting {
		if _, ok := contest.Tenants[w.Tenant]; ok {
			continue
		}
		t, err := tenant(c, w.Tenant)
		if err != nil && !errors.Is(err, ledger.ErrNoTenant) {
			return contest, err
		}
		if err == nil {
			contest.Tenants[w.Tenant] = t
		}
	}
	return contest, nil
}

func countTenants(c *sqlite.Conn, counts map[string]int, query string, args ...int64) error {
	s, err := c.Prepare(query)
	if err != nil {
		return err
	}
	return each(bindInts(s, args...), func(r ledger.Reader) error {
		counts[r.Text()] = int(r.Int())
		return nil
	})
}
