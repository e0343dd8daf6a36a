package ledgertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// JobStore is a ledger with its job side.
type JobStore interface {
	Store
	Settings(context.Context) ([]ledger.Settings, error)
	DeleteCrawl(ctx context.Context, crawl int64) error

	CreateJob(ctx context.Context, j *ledger.Job, decide func(ledger.Usage) (ledger.JobChange, error)) (*ledger.Job, error)
	UpdateJob(ctx context.Context, tenant, id string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, error)
	StartNext(ctx context.Context, servedSince time.Time, choose func(ledger.Contest) string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, bool, error)
	Contest(ctx context.Context, servedSince time.Time) (ledger.Contest, error)
	Job(ctx context.Context, tenant, id string) (ledger.Job, error)
	Jobs(context.Context, ledger.JobFilter) ([]ledger.Job, error)
	DeleteJob(ctx context.Context, tenant, id string) error
	AddEvents(context.Context, []ledger.JobEvent) error
	Events(ctx context.Context, job string, after int64, limit int) ([]ledger.JobEvent, error)
	Usage(ctx context.Context, tenant, month string) (ledger.Usage, error)

	CreateTenant(context.Context, ledger.Tenant) error
	UpdateTenant(ctx context.Context, id string, fn func(*ledger.Tenant) error) (ledger.Tenant, error)
	Tenant(ctx context.Context, id string) (ledger.Tenant, error)
	Tenants(context.Context) ([]ledger.Tenant, error)
	CreateKey(context.Context, ledger.Key) error
	Key(ctx context.Context, id string) (ledger.Key, error)
	Keys(ctx context.Context, tenant string) ([]ledger.Key, error)
	RevokeKey(ctx context.Context, tenant, id string, at time.Time) (ledger.Key, error)
	TouchKey(ctx context.Context, id string, at time.Time) error
	LogAction(context.Context, ledger.Action) error
	Actions(ctx context.Context, before int64, limit int) ([]ledger.Action, error)

	CreateSchedule(ctx context.Context, s ledger.Schedule, most int) error
	UpdateSchedule(ctx context.Context, tenant, id string, fn func(*ledger.Schedule) error) (ledger.Schedule, error)
	Schedule(ctx context.Context, tenant, id string) (ledger.Schedule, error)
	Schedules(ctx context.Context, tenant string) ([]ledger.Schedule, error)
	DeleteSchedule(ctx context.Context, tenant, id string) error
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]ledger.Schedule, error)
	NextSchedule(context.Context) (time.Time, error)

	DueDeliveries(ctx context.Context, now time.Time, limit int) ([]ledger.Delivery, error)
	NextDelivery(context.Context) (time.Time, error)
	ClaimDelivery(ctx context.Context, d ledger.Delivery, until time.Time) (ours bool, err error)
	UpdateDelivery(context.Context, ledger.Delivery) error
	DeliveriesOf(ctx context.Context, job string) ([]ledger.Delivery, error)
}

// RunJobs tests the job side of a store. It asks:
//
//   - an order, its reservation, its events and its messages are stored
//     together or not at all, also when a callback fails or panics;
//   - pages reserved and used are never one more or less than those of the
//     jobs, whatever runs at the same time, and an end is settled once;
//   - one slot is given away at a time, in view of the whole queue;
//   - for a tenant, what belongs to another does not exist;
//   - who reads events behind the last one seen misses none;
//   - deleting takes everything and nothing else.
//
// open returns a new, empty store each time and sees to its end.
func RunJobs(t *testing.T, open func(t *testing.T) JobStore) {
	for _, c := range slices.Concat(orderCases, quotaCases, queueCases, eventCases, tenantCases, scheduleCases, deliveryCases, deleteCases) {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

type jobCase struct {
	name string
	run  func(t *testing.T, s JobStore)
}

const month = "2026-03"

var nothing ledger.JobChange

// newTenants creates tenants with their defaults.
func newTenants(t *testing.T, s JobStore, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, s.CreateTenant(t.Context(), ledger.Tenant{ID: id, Name: "Tenant " + id, Plan: "free", Weight: 1, Created: t0}))
	}
}

// newJob is a queued job that was not stored yet.
func newJob(tenant, id string) *ledger.Job {
	return &ledger.Job{ID: id, Tenant: tenant, Type: "crawl", Status: ledger.Queued, Seeds: []string{"https://" + id + ".example/"},
		Month: month, Created: t0, Updated: t0}
}

// order stores a job that reserves what it says.
func order(t *testing.T, s JobStore, j *ledger.Job) *ledger.Job {
	t.Helper()
	existing, err := s.CreateJob(t.Context(), j, func(ledger.Usage) (ledger.JobChange, error) { return nothing, nil })
	if err != nil || existing != nil {
		t.Fatalf("order job %s: existing %v, %v", j.ID, existing, err)
	}
	return j
}

func orders(t *testing.T, s JobStore, tenant string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		order(t, s, newJob(tenant, id))
	}
}

// setTo is a change of status alone.
func setTo(status ledger.Status) func(*ledger.Job) (ledger.JobChange, error) {
	return func(j *ledger.Job) (ledger.JobChange, error) {
		j.Status = status
		return nothing, nil
	}
}

// endJob ends a job that spent pages.
func endJob(t *testing.T, s JobStore, id string, status ledger.Status, spent int64) ledger.Job {
	t.Helper()
	j, err := s.UpdateJob(t.Context(), "", id, func(j *ledger.Job) (ledger.JobChange, error) {
		j.Status, j.Spent, j.Ended = status, spent, t0.Add(time.Minute)
		return nothing, nil
	})
	must(t, err)
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is the value of a call that must not fail.
func got[V any](t *testing.T) func(v V, err error) V {
	return func(v V, err error) V {
		t.Helper()
		must(t, err)
		return v
	}
}

func wantUsage(t *testing.T, s JobStore, tenant string, used, reserved int64) {
	t.Helper()
	u, err := s.Usage(t.Context(), tenant, month)
	must(t, err)
	equal(t, "usage of "+tenant, u, ledger.Usage{Tenant: tenant, Month: month, Used: used, Reserved: reserved})
}

func jobIDs(jobs []ledger.Job) []string {
	list := []string{}
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}

// numbered are ids in their order.
func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return list
}
