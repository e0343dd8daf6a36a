package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
)

func (a *API) scheduleRoutes() {
	handle(a, route{method: "GET", path: "/v1/schedules", id: "listSchedules", tag: "schedules", scope: ledger.ScopeRead,
		summary: "List schedules", doc: "Oldest first.", errors: []int{404, 422}}, a.listSchedules)
	handle(a, route{method: "POST", path: "/v1/schedules", id: "createSchedule", tag: "schedules", scope: ledger.ScopeWrite, status: 201,
		summary: "Repeat an order",
		doc:     "Every 6, 12, 24 or 48 hours, or by five fields of cron in UTC. A time that comes while the last job still runs is skipped and counted.",
		errors:  []int{400, 404, 409, 413, 415, 422}}, a.createSchedule)
	handle(a, route{method: "GET", path: "/v1/schedules/{id}", id: "getSchedule", tag: "schedules", scope: ledger.ScopeRead,
		summary: "Read a schedule", errors: []int{404}}, a.getSchedule)
	handle(a, route{method: "PATCH", path: "/v1/schedules/{id}", id: "updateSchedule", tag: "schedules", scope: ledger.ScopeWrite,
		summary: "Change a schedule", doc: "What is left out stays as it is.", errors: []int{400, 404, 409, 413, 415, 422}}, a.updateSchedule)
	handle(a, route{method: "DELETE", path: "/v1/schedules/{id}", id: "deleteSchedule", tag: "schedules", scope: ledger.ScopeWrite, status: 204,
		summary: "Delete a schedule", doc: "Its jobs stay.", errors: []int{404}}, a.deleteSchedule)
}

// Schedule orders a job again and again.
type Schedule struct {
	ID        string       `json:"id"`
	Tenant    string       `json:"tenant"`
	Name      string       `json:"name"`
	Rule      string       `json:"rule" example:"24h"`
	Job       *job.Request `json:"job" doc:"The order."`
	Enabled   bool         `json:"enabled"`
	CreatedAt *Stamp       `json:"created_at"`
	NextAt    *Stamp       `json:"next_at" nullable:"true" doc:"When it is due; null while it rests."`
	LastAt    *Stamp       `json:"last_at" nullable:"true"`
	LastJob   *string      `json:"last_job" doc:"The job it ordered last."`
	Skipped   int64        `json:"skipped" doc:"Times it was due while its last job still ran."`
	Note      *string      `json:"note" doc:"Why it was last skipped or refused."`
}

// TransformSchema lets the order be null, should it not be readable.
func (Schedule) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "job")
}

func scheduleView(s *ledger.Schedule) Schedule {
	v := Schedule{ID: s.ID, Tenant: s.Tenant, Name: s.Name, Rule: s.Rule, Enabled: s.Enabled, CreatedAt: at(s.Created), NextAt: at(s.Next),
		LastAt: at(s.Last), LastJob: text(s.LastJob), Skipped: s.Skipped, Note: text(s.Note)}
	var r job.Request
	if json.Unmarshal(s.Request, &r) == nil {
		v.Job = &r
	}
	return v
}

type scheduleOut struct{ Body Schedule }

func (a *API) listSchedules(ctx context.Context, c *caller, in *ForTenant) (*listOut[Schedule], error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	found, err := a.cfg.Store.Schedules(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var list []Schedule
	for i := range found {
		list = append(list, scheduleView(&found[i]))
	}
	return all(list), nil
}

type createScheduleIn struct {
	ForTenant
	Body struct {
		Name    string      `json:"name,omitempty" maxLength:"200" doc:"A name for people."`
		Rule    string      `json:"rule" maxLength:"100" doc:"6h, 12h, 24h, 48h, or five fields of cron in UTC." example:"0 3 * * 1"`
		Job     job.Request `json:"job" doc:"The order."`
		Enabled bool        `json:"enabled,omitempty" default:"true"`
	} `nameHint:"ScheduleRequest"`
}

type createScheduleOut struct {
	Location string `header:"Location"`
	Body     Schedule
}

func (a *API) createSchedule(ctx context.Context, c *caller, in *createScheduleIn) (*createScheduleOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	s := ledger.Schedule{Tenant: t.ID, Name: in.Body.Name, Rule: in.Body.Rule, Enabled: in.Body.Enabled}
	if s.Request, err = json.Marshal(in.Body.Job); err != nil {
		return nil, err
	}
	if s, err = a.cfg.Service.CreateSchedule(ctx, t, s); err != nil {
		return nil, planLimit(err)
	}
	a.foreign(ctx, c, t.ID, "schedule.create", s.ID)
	return &createScheduleOut{Location: "/v1/schedules/" + s.ID, Body: scheduleView(&s)}, nil
}

// planLimit is a refusal that waiting does not change: no 429.
func planLimit(err error) error {
	if r, ok := errors.AsType[*job.Refused](err); ok {
		return problem(http.StatusConflict, r.Text)
	}
	return err
}

// ScheduleID is a schedule in the path.
type ScheduleID struct {
	ID string `path:"id" maxLength:"64" doc:"ID of a schedule."`
}

func (a *API) getSchedule(ctx context.Context, c *caller, in *ScheduleID) (*scheduleOut, error) {
	s, err := a.cfg.Store.Schedule(ctx, c.rows(), in.ID)
	return &scheduleOut{scheduleView(&s)}, err
}

type updateScheduleIn struct {
	ScheduleID
	Body struct {
		Name    *string      `json:"name,omitempty" maxLength:"200"`
		Rule    *string      `json:"rule,omitempty" maxLength:"100"`
		Job     *job.Request `json:"job,omitempty"`
		Enabled *bool        `json:"enabled,omitempty"`
	} `nameHint:"ScheduleChange"`
}

func (a *API) updateSchedule(ctx context.Context, c *caller, in *updateScheduleIn) (*scheduleOut, error) {
	s, err := a.cfg.Store.Schedule(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	t, err := a.tenant(ctx, c, s.Tenant)
	if err != nil {
		return nil, err
	}
	set(&s.Name, in.Body.Name)
	set(&s.Rule, in.Body.Rule)
	set(&s.Enabled, in.Body.Enabled)
	if in.Body.Job != nil {
		if s.Request, err = json.Marshal(in.Body.Job); err != nil {
			return nil, err
		}
	}
	s, err = a.cfg.Service.UpdateSchedule(ctx, t, s)
	if err != nil {
		return nil, planLimit(err)
	}
	a.foreign(ctx, c, t.ID, "schedule.update", s.ID)
	return &scheduleOut{scheduleView(&s)}, nil
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func (a *API) deleteSchedule(ctx context.Context, c *caller, in *ScheduleID) (*none, error) {
	s, err := a.cfg.Store.Schedule(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	if err := a.cfg.Store.DeleteSchedule(ctx, c.rows(), in.ID); err != nil {
		return nil, err
	}
	a.foreign(ctx, c, s.Tenant, "schedule.delete", s.ID)
	return nil, nil
}
