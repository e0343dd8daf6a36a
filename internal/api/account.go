package api

import (
	"context"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

func (a *API) accountRoutes() {
	handle(a, route{method: "GET", path: "/v1/me", id: "getMe", tag: "account", scope: ledger.ScopeRead,
		summary: "Whose key this is", doc: "The tenant and the key that the request was made with."}, a.me)
	handle(a, route{method: "GET", path: "/v1/limits", id: "getLimits", tag: "account", scope: ledger.ScopeRead,
		summary: "Caps, plan and usage", doc: "In the order in which they count: safety, plan, usage, then the order's own budget. A limit of 0 is none.",
		errors: []int{404, 422}}, a.limits)
	handle(a, route{method: "GET", path: "/v1/usage", id: "getUsage", tag: "account", scope: ledger.ScopeRead,
		summary: "Pages of a month", doc: "Of this month, unless ?month= names another. A month begins at 00:00 UTC on the first.",
		errors: []int{404, 422}}, a.usage)
	handle(a, route{method: "GET", path: "/v1/plans", id: "listPlans", tag: "account", scope: ledger.ScopeRead,
		summary: "List plans", doc: "A limit of 0 is none, but for schedules, where it is none at all."}, a.plans)
	handle(a, route{method: "GET", path: "/v1/webhook-secret", id: "getWebhookSecret", tag: "account", scope: ledger.ScopeWrite,
		summary: "The secret that signs webhooks", errors: []int{404, 422}}, a.webhookSecret)
	handle(a, route{method: "POST", path: "/v1/webhook-secret/rotate", id: "rotateWebhookSecret", tag: "account", scope: ledger.ScopeWrite,
		summary: "Change the secret that signs webhooks", doc: "The old one signs nothing from now on.", errors: []int{404, 422}}, a.rotateSecret)
}

// Me is who asks.
type Me struct {
	Tenant *MyTenant `json:"tenant,omitempty" doc:"Absent for an operator's key that belongs to no tenant."`
	Key    MyKey     `json:"key"`
	Orders bool      `json:"orders" doc:"False where nothing can be ordered, whatever the key may do: this is one crawl of the command line."`
}

// MyTenant is the caller's own.
type MyTenant struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// MyKey is the key that was used.
type MyKey struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes" nullable:"false"`
}

type meOut struct{ Body Me }

func (a *API) me(_ context.Context, c *caller, _ *none) (*meOut, error) {
	out := &meOut{Me{Orders: !a.cfg.OneCrawl, Key: MyKey{ID: c.key.ID, Name: c.key.Name, Scopes: c.key.Scopes}}}
	if c.tenant.ID != "" {
		out.Body.Tenant = &MyTenant{ID: c.tenant.ID, Name: c.tenant.Name, Plan: c.tenant.Plan}
	}
	return out, nil
}

// Limits are all that a tenant's orders are measured by.
type Limits struct {
	Safety Safety      `json:"safety"`
	Plan   limits.Plan `json:"plan"`
	Usage  Usage       `json:"usage"`
	Order  string      `json:"order" example:"safety, plan, usage, budget"`
}

// Safety are the operator's caps; 0 is none.
type Safety struct {
	MaxPages  int64 `json:"max_pages_per_crawl"`
	MaxCrawls int   `json:"max_concurrent_crawls"`
	Timeout   int64 `json:"crawl_timeout_ms"`
}

// Usage is what a tenant spent of its pages in one month.
type Usage struct {
	Month    string `json:"month" example:"2026-11"`
	Used     int64  `json:"used" doc:"By jobs that ended."`
	Reserved int64  `json:"reserved" doc:"For jobs that have not."`
	Quota    *int64 `json:"quota" doc:"Null if there is none."`
	Left     *int64 `json:"left" doc:"Null if there is no quota."`
	ResetsAt *Stamp `json:"resets_at"`
}

type limitsOut struct{ Body Limits }

func (a *API) limits(ctx context.Context, c *caller, in *ForTenant) (*limitsOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	u, err := a.usageOf(ctx, t, ledger.Month(a.cfg.Now()))
	if err != nil {
		return nil, err
	}
	s := a.cfg.Service.Caps()
	return &limitsOut{Limits{Safety: Safety{MaxPages: s.MaxPages, MaxCrawls: s.MaxCrawls, Timeout: s.Timeout.Milliseconds()},
		Plan: a.cfg.Service.PlanOf(t.Plan), Usage: u, Order: "safety, plan, usage, budget"}}, nil
}

type usageIn struct {
	ForTenant
	Month string `query:"month" pattern:"^[0-9]{4}-(0[1-9]|1[0-2])$" doc:"Year and month, of UTC." example:"2026-11"`
}

type usageOut struct{ Body Usage }

func (a *API) usage(ctx context.Context, c *caller, in *usageIn) (*usageOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	if in.Month == "" {
		in.Month = ledger.Month(a.cfg.Now())
	}
	u, err := a.usageOf(ctx, t, in.Month)
	return &usageOut{u}, err
}

func (a *API) usageOf(ctx context.Context, t ledger.Tenant, month string) (Usage, error) {
	u, err := a.cfg.Store.Usage(ctx, t.ID, month)
	if err != nil {
		return Usage{}, err
	}
	begin, err := time.Parse("2006-01", month)
	if err != nil {
		return Usage{}, invalid("query.month", "a year and a month, as in 2026-11")
	}
	v := Usage{Month: month, Used: u.Used, Reserved: u.Reserved, ResetsAt: at(begin.AddDate(0, 1, 0))}
	if quota := a.cfg.Service.PlanOf(t.Plan).Quota; quota > 0 {
		left := max(quota-u.Used-u.Reserved, 0)
		v.Quota, v.Left = &quota, &left
	}
	return v, nil
}

func (a *API) plans(context.Context, *caller, *none) (*listOut[limits.Plan], error) {
	return all(a.cfg.Service.Plans()), nil
}

type secretOut struct {
	Body struct {
		Secret *string `json:"secret" doc:"Null until it is made: POST /v1/webhook-secret/rotate makes one."`
	} `nameHint:"WebhookSecret"`
}

func (a *API) webhookSecret(ctx context.Context, c *caller, in *ForTenant) (*secretOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	if t, err = a.cfg.Store.Tenant(ctx, t.ID); err != nil { // the caller's own may be some seconds old
		return nil, err
	}
	a.foreign(ctx, c, t.ID, "webhook-secret.read", t.ID)
	out := &secretOut{}
	out.Body.Secret = text(t.WebhookSecret)
	return out, nil
}

func (a *API) rotateSecret(ctx context.Context, c *caller, in *ForTenant) (*secretOut, error) {
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	t, err = a.cfg.Store.UpdateTenant(ctx, t.ID, func(t *ledger.Tenant) error {
		t.WebhookSecret = NewSecret()
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.foreign(ctx, c, t.ID, "webhook-secret.rotate", t.ID)
	out := &secretOut{}
	out.Body.Secret = text(t.WebhookSecret)
	return out, nil
}
