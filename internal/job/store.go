package job

import (
	"context"
	"time"

	"tiptoe/internal/ledger"
)

// Store is the job side of the ledger. Where a method takes a tenant, only
// that tenant's rows exist for it; the empty string is the operator, for whom
// all do. SQLite and PostgreSQL both keep ledgertest's promises about it.
type Store interface {
	Tenants
	Orders
	Schedules
	Deliveries

	// DeleteCrawl removes everything the ledger holds of a crawl.
	DeleteCrawl(ctx context.Context, crawl int64) error
}

// Orders keeps jobs and the usage that they cause.
type Orders interface {
	// CreateJob stores a new job with its first events. decide is called
	// inside the transaction with the tenant's usage of j.Month; it fills in
	// what depends on it (Reserved above all) or refuses. Reserved is added
	// to the usage in the same transaction. If the tenant already has a job
	// with this idempotency name, that job is returned and nothing is stored.
	// j.Seq is filled in. decide may be called again when the transaction has
	// to be repeated.
	CreateJob(ctx context.Context, j *ledger.Job, decide func(ledger.Usage) (ledger.JobChange, error)) (existing *ledger.Job, err error)

	// UpdateJob changes one job under a lock. When fn leaves it in one of the
	// ends, the rest of its reservation is given back and Spent is added to
	// what its tenant used, in the same transaction, once. An error from fn
	// changes nothing. Like decide, fn may be called again.
	UpdateJob(ctx context.Context, tenant, id string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, error)

	// StartNext gives a slot away: choose sees the whole contest, inside a
	// transaction that no other StartNext runs beside, and names a waiting
	// job or none; fn then changes that job as in UpdateJob. It reports
	// whether a job was chosen.
	StartNext(ctx context.Context, servedSince time.Time, choose func(ledger.Contest) (id string), fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, bool, error)

	// Contest is the same picture for people, outside of any transaction.
	Contest(ctx context.Context, servedSince time.Time) (ledger.Contest, error)

	Job(ctx context.Context, tenant, id string) (ledger.Job, error)
	Jobs(ctx context.Context, f ledger.JobFilter) ([]ledger.Job, error)

	// DeleteJob removes a job that has ended, its events and deliveries.
	DeleteJob(ctx context.Context, tenant, id string) error

	AddEvents(ctx context.Context, events []ledger.JobEvent) error
	Events(ctx context.Context, job string, after int64, limit int) ([]ledger.JobEvent, error)

	Usage(ctx context.Context, tenant, month string) (ledger.Usage, error)
}

// Tenants keeps who may do what.
type Tenants interface {
	CreateTenant(ctx context.Context, t ledger.Tenant) error // ErrExists
	UpdateTenant(ctx context.Context, id string, fn func(*ledger.Tenant) error) (ledger.Tenant, error)
	Tenant(ctx context.Context, id string) (ledger.Tenant, error)
	Tenants(ctx context.Context) ([]ledger.Tenant, error) // by ID

	CreateKey(ctx context.Context, k ledger.Key) error
	Key(ctx context.Context, id string) (ledger.Key, error)
	Keys(ctx context.Context, tenant string) ([]ledger.Key, error) // newest first
	RevokeKey(ctx context.Context, tenant, id string, at time.Time) (ledger.Key, error)
	TouchKey(ctx context.Context, id string, at time.Time) error

	LogAction(ctx context.Context, a ledger.Action) error
	Actions(ctx context.Context, before int64, limit int) ([]ledger.Action, error) // newest first
}

// Schedules keeps orders that repeat.
type Schedules interface {
	CreateSchedule(ctx context.Context, s ledger.Schedule, most int) error // at most so many of the tenant: ErrFull; 0 is no limit
	UpdateSchedule(ctx context.Context, tenant, id string, fn func(*ledger.Schedule) error) (ledger.Schedule, error)
	Schedule(ctx context.Context, tenant, id string) (ledger.Schedule, error)
	Schedules(ctx context.Context, tenant string) ([]ledger.Schedule, error) // by Created
	DeleteSchedule(ctx context.Context, tenant, id string) error
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]ledger.Schedule, error) // earliest first
	NextSchedule(ctx context.Context) (time.Time, error)                                   // zero if none is
}

// Deliveries keeps messages on their way to webhooks.
type Deliveries interface {
	DueDeliveries(ctx context.Context, now time.Time, limit int) ([]ledger.Delivery, error) // earliest first
	NextDelivery(ctx context.Context) (time.Time, error)                                    // zero if none is
	ClaimDelivery(ctx context.Context, d ledger.Delivery, until time.Time) (ours bool, err error)
	UpdateDelivery(ctx context.Context, d ledger.Delivery) error
	DeliveriesOf(ctx context.Context, job string) ([]ledger.Delivery, error)
}
