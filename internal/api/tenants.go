package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

func (a *API) tenantRoutes() {
	const op = ledger.ScopeOperator
	handle(a, route{method: "GET", path: "/v1/tenants", id: "listTenants", tag: "operator", scope: op,
		summary: "List tenants", doc: "By id."}, a.listTenants)
	handle(a, route{method: "POST", path: "/v1/tenants", id: "createTenant", tag: "operator", scope: op, status: 201,
		summary: "Make a tenant", errors: []int{400, 409, 413, 415, 422}}, a.createTenant)
	handle(a, route{method: "GET", path: "/v1/tenants/{id}", id: "getTenant", tag: "operator", scope: op,
		summary: "Read a tenant", errors: []int{404}}, a.getTenant)
	handle(a, route{method: "PATCH", path: "/v1/tenants/{id}", id: "updateTenant", tag: "operator", scope: op,
		summary: "Change a tenant", doc: "What is left out stays as it is. A disabled tenant's keys are refused and its schedules rest.",
		errors: []int{400, 404, 409, 413, 415, 422}}, a.updateTenant)
	handle(a, route{method: "GET", path: "/v1/tenants/{id}/keys", id: "listTenantKeys", tag: "operator", scope: op,
		summary: "List a tenant's keys", errors: []int{404}}, a.listTenantKeys)
	handle(a, route{method: "POST", path: "/v1/tenants/{id}/keys", id: "createTenantKey", tag: "operator", scope: op, status: 201,
		summary: "Make a key for a tenant", doc: "The answer is the only time the key is shown.", errors: []int{400, 404, 409, 413, 415, 422}}, a.createTenantKey)
	handle(a, route{method: "DELETE", path: "/v1/tenants/{id}/keys/{key}", id: "revokeTenantKey", tag: "operator", scope: op, status: 204,
		summary: "Revoke a tenant's key", errors: []int{404}}, a.revokeTenantKey)
	handle(a, route{method: "GET", path: "/v1/operator-log", id: "listActions", tag: "operator", scope: op,
		summary: "What operators did", doc: "Newest first.", errors: []int{422}}, a.listActions)
}

// Tenant is somebody who orders crawls.
type Tenant struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Plan      string `json:"plan"`
	Weight    int    `json:"weight" doc:"Share of the slots when tenants compete."`
	Disabled  bool   `json:"disabled"`
	CreatedAt *Stamp `json:"created_at" nullable:"true"`
}

func tenantView(t *ledger.Tenant) Tenant {
	return Tenant{ID: t.ID, Name: t.Name, Plan: t.Plan, Weight: max(t.Weight, 1), Disabled: t.Disabled, CreatedAt: at(t.Created)}
}

type tenantOut struct{ Body Tenant }

func (a *API) listTenants(ctx context.Context, _ *caller, _ *none) (*listOut[Tenant], error) {
	found, err := a.cfg.Store.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	var list []Tenant
	for i := range found {
		list = append(list, tenantView(&found[i]))
	}
	return all(list), nil
}

type createTenantIn struct {
	Body struct {
		ID     string `json:"id" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" patternDescription:"small letters, digits and -, at most 63" example:"acme"`
		Name   string `json:"name,omitempty" maxLength:"200"`
		Plan   string `json:"plan,omitempty" maxLength:"100" default:"free"`
		Weight int    `json:"weight,omitempty" minimum:"1" maximum:"1000" default:"1"`
	} `nameHint:"TenantRequest"`
}

func (a *API) createTenant(ctx context.Context, c *caller, in *createTenantIn) (*tenantOut, error) {
	if err := a.checkPlan(in.Body.Plan); err != nil {
		return nil, err
	}
	t := ledger.Tenant{ID: in.Body.ID, Name: in.Body.Name, Plan: in.Body.Plan, Weight: in.Body.Weight,
		WebhookSecret: NewSecret(), Created: a.cfg.Now()}
	if err := a.cfg.Store.CreateTenant(ctx, t); err != nil {
		return nil, err
	}
	a.logAction(ctx, c, "tenant.create", t.ID, in.Body)
	return &tenantOut{tenantView(&t)}, nil
}

func (a *API) checkPlan(name string) error {
	if !slices.ContainsFunc(a.cfg.Service.Plans(), func(p limits.Plan) bool { return p.Name == name }) {
		return invalid("body.plan", "there is no such plan: GET /v1/plans lists them")
	}
	return nil
}

// TenantID is a tenant in the path.
type TenantID struct {
	ID string `path:"id" maxLength:"64" doc:"ID of a tenant." example:"acme"`
}

func (a *API) getTenant(ctx context.Context, _ *caller, in *TenantID) (*tenantOut, error) {
	t, err := a.cfg.Store.Tenant(ctx, in.ID)
	return &tenantOut{tenantView(&t)}, err
}

type updateTenantIn struct {
	TenantID
	Body struct {
		Name     *string `json:"name,omitempty" maxLength:"200"`
		Plan     *string `json:"plan,omitempty" maxLength:"100"`
		Weight   *int    `json:"weight,omitempty" minimum:"1" maximum:"1000"`
		Disabled *bool   `json:"disabled,omitempty"`
	} `nameHint:"TenantChange"`
}

func (a *API) updateTenant(ctx context.Context, c *caller, in *updateTenantIn) (*tenantOut, error) {
	if in.Body.Plan != nil {
		if err := a.checkPlan(*in.Body.Plan); err != nil {
			return nil, err
		}
	}
	if in.ID == c.tenant.ID && in.Body.Disabled != nil && *in.Body.Disabled {
		return nil, problem(http.StatusConflict, "this key belongs to that tenant and would be refused from then on: use another tenant's key")
	}
	t, err := a.cfg.Store.UpdateTenant(ctx, in.ID, func(t *ledger.Tenant) error {
		set(&t.Name, in.Body.Name)
		set(&t.Plan, in.Body.Plan)
		set(&t.Weight, in.Body.Weight)
		set(&t.Disabled, in.Body.Disabled)
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.keys.forget("", t.ID)
	a.logAction(ctx, c, "tenant.update", t.ID, in.Body)
	return &tenantOut{tenantView(&t)}, nil
}

func (a *API) listTenantKeys(ctx context.Context, _ *caller, in *TenantID) (*listOut[Key], error) {
	t, err := a.cfg.Store.Tenant(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return a.keysOf(ctx, t.ID)
}

type tenantKeyIn struct {
	TenantID
	Body keyRequest
}

func (a *API) createTenantKey(ctx context.Context, c *caller, in *tenantKeyIn) (*newKeyOut, error) {
	t, err := a.cfg.Store.Tenant(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return a.makeKey(ctx, c, t.ID, in.Body)
}

type tenantKeyID struct {
	TenantID
	Key string `path:"key" maxLength:"64" doc:"ID of a key."`
}

func (a *API) revokeTenantKey(ctx context.Context, c *caller, in *tenantKeyID) (*none, error) {
	t, err := a.cfg.Store.Tenant(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, a.revoke(ctx, c, t.ID, in.Key)
}

// Action is one line of the operator log.
type Action struct {
	ID     int64           `json:"id"`
	At     *Stamp          `json:"at"`
	Key    string          `json:"key" doc:"ID of the key that did it."`
	Action string          `json:"action" example:"tenant.create"`
	Target string          `json:"target"`
	Detail json.RawMessage `json:"detail"`
	Remote string          `json:"remote" doc:"Address it came from."`
}

func (a *API) listActions(ctx context.Context, _ *caller, in *Paging) (*listOut[Action], error) {
	before, err := number(in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := a.cfg.Store.Actions(ctx, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	var list []Action
	for _, x := range found {
		list = append(list, Action{ID: x.ID, At: at(x.At), Key: x.Key, Action: x.Action, Target: x.Target, Detail: raw(x.Detail), Remote: x.Remote})
	}
	return listed(list, in.Limit, func(x Action) string { return strconv.FormatInt(x.ID, 10) }), nil
}

// foreign logs what an operator did with another tenant's things.
func (a *API) foreign(ctx context.Context, c *caller, tenant, action, target string) {
	if c.operator() && tenant != c.tenant.ID {
		a.logAction(ctx, c, action, target, map[string]any{"tenant": tenant})
	}
}

// logAction writes a line of the operator log. The thing is done by then, and
// the caller may have left: neither may lose the line.
func (a *API) logAction(ctx context.Context, c *caller, action, target string, detail any) {
	text, err := json.Marshal(detail)
	if err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		err = a.cfg.Store.LogAction(ctx, ledger.Action{At: a.cfg.Now(), Key: c.key.ID, Action: action, Target: target, Detail: string(text), Remote: c.remote})
	}
	a.log.Info("api: operator action", "action", action, "target", target, "key", c.key.ID, "remote", c.remote)
	if err != nil {
		a.log.Error("api: the operator log could not be written", "action", action, "target", target, "key", c.key.ID, "error", err)
	}
}
