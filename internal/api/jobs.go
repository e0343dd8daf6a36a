package api

import (
	"context"
	"net/http"
	"strconv"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

func (a *API) jobRoutes() {
	handle(a, route{method: "POST", path: "/v1/jobs", id: "createJob", tag: "jobs", scope: ledger.ScopeWrite, status: 201,
		summary: "Order a crawl",
		doc: "The answer says what the order got and why: the operator's caps come first, then the plan, then what is left of the month. " +
			"With an Idempotency-Key the same order is placed once: its repetition is answered 200 with the job of the first. " +
			"429 says that the month's quota is spent.",
		errors: []int{400, 409, 413, 415, 422}}, a.createJob)
	handle(a, route{method: "GET", path: "/v1/jobs", id: "listJobs", many: true, tag: "jobs", scope: ledger.ScopeRead,
		summary: "List jobs", doc: "Newest first.", errors: []int{404, 422}}, a.listJobs)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}", id: "getJob", tag: "jobs", scope: ledger.ScopeRead,
		summary: "Read a job", doc: "With its limits, its cost and its progress.", errors: []int{404}}, a.getJob)
	handle(a, route{method: "POST", path: "/v1/jobs/{id}/cancel", id: "cancelJob", tag: "jobs", scope: ledger.ScopeWrite,
		summary: "Cancel a job", doc: "It ends as cancelled and keeps what it found.", errors: []int{404, 409}}, a.steer("job.cancel", a.cfg.Service.Cancel))
	handle(a, route{method: "POST", path: "/v1/jobs/{id}/pause", id: "pauseJob", tag: "jobs", scope: ledger.ScopeWrite,
		summary: "Pause a job", doc: "It gives its slot back and keeps its place in its work.", errors: []int{404, 409}}, a.steer("job.pause", a.cfg.Service.Pause))
	handle(a, route{method: "POST", path: "/v1/jobs/{id}/resume", id: "resumeJob", tag: "jobs", scope: ledger.ScopeWrite,
		summary: "Resume a paused job", doc: "It queues for a slot again; its limits stay as they were.", errors: []int{404, 409}}, a.steer("job.resume", a.cfg.Service.Resume))
	handle(a, route{method: "DELETE", path: "/v1/jobs/{id}", id: "deleteJob", tag: "jobs", scope: ledger.ScopeWrite, status: 204,
		summary: "Delete a job that has ended", doc: "With everything it found. What it cost stays counted.", errors: []int{404, 409}}, a.deleteJob)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/deliveries", id: "listDeliveries", tag: "jobs", scope: ledger.ScopeRead,
		summary: "List a job's webhook messages", doc: "Each with its attempts and how the last one ended.", errors: []int{404}}, a.listDeliveries)
	handle(a, route{method: "POST", path: "/v1/limits/preview", id: "previewLimits", tag: "account", scope: ledger.ScopeRead,
		summary: "What an order would get", doc: "The effective limits and why, before the order is placed. Nothing is stored.",
		errors: []int{400, 413, 415, 422}}, a.preview)
}

type createJobIn struct {
	ForTenant
	Idempotency string `header:"Idempotency-Key" maxLength:"200" doc:"Your own name for this order, to repeat it safely."`
	Body        job.Request
}

type createJobOut struct {
	Status   int
	Location string `header:"Location"`
	Body     Job
}

func (a *API) createJob(ctx context.Context, c *caller, in *createJobIn) (*createJobOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	j, existed, err := a.cfg.Service.Submit(ctx, t, in.Body, in.Idempotency)
	if err != nil {
		return nil, err
	}
	out := &createJobOut{Status: http.StatusCreated, Location: "/v1/jobs/" + j.ID}
	if existed {
		out.Status = http.StatusOK
	} else {
		a.foreign(ctx, c, t.ID, "job.create", j.ID)
	}
	out.Body, err = a.jobView(ctx, &j)
	return out, err
}

type listJobsIn struct {
	Paging
	Status   []string `query:"status" enum:"queued,running,paused,completed,partial,failed,cancelled" doc:"Any of these." example:"queued,running"`
	Type     string   `query:"type" enum:"crawl,warm,command,fetch" doc:"Without it, all but single pages that were fetched (fetch)."`
	Schedule string   `query:"schedule" maxLength:"64" doc:"Ordered by this schedule."`
	Q        string   `query:"q" maxLength:"200" doc:"Part of a URL it began with, or of its id."`
	Tenant   string   `query:"tenant" maxLength:"64" doc:"For operators: of this tenant; * is every one."`
}

func (a *API) listJobs(ctx context.Context, c *caller, in *listJobsIn) (*listOut[Job], error) {
	f := ledger.JobFilter{Tenant: c.tenant.ID, Type: in.Type, Schedule: in.Schedule, Match: in.Q, Limit: in.Limit + 1}
	switch {
	case in.Tenant == "" || in.Tenant == c.tenant.ID:
	case !c.operator():
		return nil, errForeignTenant
	case in.Tenant == "*":
		f.Tenant = ""
	default:
		t, err := a.cfg.Store.Tenant(ctx, in.Tenant)
		if err != nil {
			return nil, err
		}
		f.Tenant = t.ID
	}
	for _, s := range in.Status {
		f.Statuses = append(f.Statuses, ledger.Status(s))
	}
	var err error
	if f.Before, err = number(in.Cursor); err != nil {
		return nil, err
	}
	jobs, err := a.cfg.Store.Jobs(ctx, f)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(jobs) > in.Limit {
		next = strconv.FormatInt(jobs[in.Limit-1].Seq, 10)
	}
	views := make([]Job, 0, len(jobs))
	for i := range jobs {
		v, err := a.jobView(ctx, &jobs[i])
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return listed(views, in.Limit, func(Job) string { return next }), nil
}

// number reads a cursor that is one.
func number(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("query.cursor", "this is not the next of a list: begin without a cursor")
	}
	return n, nil
}

type jobOut struct{ Body Job }

func (a *API) getJob(ctx context.Context, c *caller, in *JobID) (*jobOut, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	v, err := a.jobView(ctx, &j)
	return &jobOut{v}, err
}

func (a *API) steer(action string, do func(ctx context.Context, tenant, id string) (ledger.Job, error)) func(context.Context, *caller, *JobID) (*jobOut, error) {
	return func(ctx context.Context, c *caller, in *JobID) (*jobOut, error) {
		j, err := do(ctx, c.rows(), in.ID)
		if err != nil {
			return nil, err
		}
		a.foreign(ctx, c, j.Tenant, action, j.ID)
		v, err := a.jobView(ctx, &j)
		return &jobOut{v}, err
	}
}

func (a *API) deleteJob(ctx context.Context, c *caller, in *JobID) (*none, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	if err := a.cfg.Service.Delete(ctx, c.rows(), in.ID); err != nil {
		return nil, err
	}
	a.foreign(ctx, c, j.Tenant, "job.delete", j.ID)
	return nil, nil
}

// Delivery is a message for a webhook.
type Delivery struct {
	ID       int64   `json:"id"`
	Event    string  `json:"event" example:"job.completed"`
	URL      string  `json:"url"`
	Attempts int     `json:"attempts"`
	NextAt   *Stamp  `json:"next_at" nullable:"true" doc:"Of the next attempt; null once it is over."`
	DoneAt   *Stamp  `json:"done_at" nullable:"true" doc:"When it arrived or was given up."`
	Status   *int    `json:"status" doc:"HTTP status of the last attempt."`
	Error    *string `json:"error"`
}

func (a *API) listDeliveries(ctx context.Context, c *caller, in *JobID) (*listOut[Delivery], error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	found, err := a.cfg.Store.DeliveriesOf(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	var list []Delivery
	for _, d := range found {
		list = append(list, Delivery{ID: d.ID, Event: d.Event, URL: d.URL, Attempts: d.Attempts,
			NextAt: at(d.Next), DoneAt: at(d.Done), Status: known(d.Status), Error: text(d.Error)})
	}
	return all(list), nil
}

type previewIn struct {
	ForTenant
	Body job.Request
}

type previewOut struct{ Body Preview }

// Preview is what an order would get.
type Preview struct {
	Limits   limits.Effective `json:"limits"`
	Position int              `json:"position" doc:"Its place in the queue; 0 if it would begin at once."`
	OK       bool             `json:"ok" doc:"False if it would be refused."`
	Message  string           `json:"message" doc:"Why it would be refused."`
}

func (a *API) preview(ctx context.Context, c *caller, in *previewIn) (*previewOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	e, ok, why, err := a.cfg.Service.Preview(ctx, t, in.Body)
	if err != nil {
		return nil, err
	}
	out := &previewOut{Preview{Limits: e, OK: ok, Message: why}}
	if out.Body.Limits.Reasons == nil {
		out.Body.Limits.Reasons = []limits.Reason{}
	}
	if queued, running, slots := a.cfg.Service.Contest(); queued > 0 || slots > 0 && running >= slots {
		out.Body.Position = queued + 1
	}
	return out, nil
}
