package api

import (
	"context"
	"io"
	"iter"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// Service is what many crawls are ordered from.
type Service interface {
	Orders
	Watching
	Rules
	Repeating
}

// Orders places and steers jobs.
type Orders interface {
	Submit(ctx context.Context, t ledger.Tenant, r job.Request, idempotency string) (j ledger.Job, existed bool, err error)
	Preview(ctx context.Context, t ledger.Tenant, r job.Request) (e limits.Effective, ok bool, why string, err error)
	Cancel(ctx context.Context, tenant, id string) (ledger.Job, error)
	Pause(ctx context.Context, tenant, id string) (ledger.Job, error)
	Resume(ctx context.Context, tenant, id string) (ledger.Job, error)
	Delete(ctx context.Context, tenant, id string) error
}

// Watching shows jobs while they run.
type Watching interface {
	Live(ctx context.Context, id string) (crawl.Status, bool)
	Series(id string) ([]job.Point, bool)
	Position(id string) (int, bool)
	Contest() (queued, running, slots int)

	// Watch fires after each commit of pages or events of a job, coalesced.
	Watch(id string) (changed <-chan struct{}, stop func())

	// Elsewhere says that Watch does not fire, because another server may
	// drive the job: somebody who watches must look.
	Elsewhere(id string) bool
}

// Rules are the operator's caps and plans.
type Rules interface {
	Caps() limits.Safety
	PlanOf(name string) limits.Plan
	Plans() []limits.Plan
	Reload(ctx context.Context) error
}

// Repeating keeps orders that repeat: it checks the rule and the plan.
type Repeating interface {
	CreateSchedule(ctx context.Context, t ledger.Tenant, s ledger.Schedule) (ledger.Schedule, error)
	UpdateSchedule(ctx context.Context, t ledger.Tenant, s ledger.Schedule) (ledger.Schedule, error)
}

// Store is the job side of the ledger, for reading, and for who may do what.
type Store interface {
	job.Tenants
	Job(ctx context.Context, tenant, id string) (ledger.Job, error)
	Jobs(ctx context.Context, f ledger.JobFilter) ([]ledger.Job, error)
	Events(ctx context.Context, job string, after int64, limit int) ([]ledger.JobEvent, error)
	Usage(ctx context.Context, tenant, month string) (ledger.Usage, error)
	Schedule(ctx context.Context, tenant, id string) (ledger.Schedule, error)
	Schedules(ctx context.Context, tenant string) ([]ledger.Schedule, error)
	DeleteSchedule(ctx context.Context, tenant, id string) error
	DeliveriesOf(ctx context.Context, job string) ([]ledger.Delivery, error)
}

// Ledger is the record of what the crawls did.
type Ledger interface {
	Crawl(ctx context.Context, id int64) (ledger.Crawl, error)
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
	Evidence(ctx context.Context, crawl int64, url string) ([]ledger.Evidence, error)
	LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error)
	Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error]
	Domain(ctx context.Context, host string) (ledger.Domain, bool, error)
	Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error]
	DeleteDomain(ctx context.Context, host string) (bool, error)
}

// The functions of other edges that the API passes on.
type (
	// Explain tells the story of one URL of a crawl, as JSON; names says
	// whether that of machines may be in it.
	Explain func(ctx context.Context, crawl int64, url string, names bool) (any, error)

	// Export writes a crawl's pages as jsonl, csv or sitemap.
	Export func(ctx context.Context, w io.Writer, format string, crawl int64) error

	// Fetch gets one page now. ErrNoSlot says that its host had no place.
	Fetch func(ctx context.Context, t ledger.Tenant, url string) (ledger.Page, error)

	// Observe is told of every request that was answered. The route is the
	// pattern, not the path.
	Observe func(route, method string, status int, took time.Duration)
)
