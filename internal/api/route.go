package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/ledger"
)

// route is what the guard must know of a route before anything of it runs.
type route struct {
	method, path string
	id           string // operationId
	tag          string
	summary      string
	doc          string
	scope        string // that a key needs; open for none
	stream       bool   // has no end of its own
	many         bool   // reads so much that others go first
	status       int    // of success; 0 is 200
	errors       []int  // besides those that every route may answer with
	answers      map[string]*huma.Response
}

// open is the scope of the few routes that work without a key.
const open = "open"

// scopeField is where the document says which scope an operation needs.
const scopeField = "x-scope"

// handle registers a route. Its handler's errors become problems.
func handle[I, O any](a *API, rt route, h func(ctx context.Context, c *caller, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID: rt.id, Method: rt.method, Path: rt.path, Summary: rt.summary, Description: rt.doc,
		Tags: []string{rt.tag}, DefaultStatus: rt.status, Responses: rt.answers,
		MaxBodyBytes:    a.cfg.MaxBody + 1, // the guard has refused more
		BodyReadTimeout: -1,                // the guard has read it
		Errors:          slices.Clone(rt.errors),
		Extensions:      map[string]any{scopeField: rt.scope},
	}
	if rt.scope != open {
		op.Security = []map[string][]string{{"key": {}}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)
		op.Description += "\n\nNeeds a key with the scope `" + rt.scope + "`."
	} else {
		op.Errors = append(op.Errors, http.StatusServiceUnavailable)
	}
	slices.Sort(op.Errors)
	op.Errors = slices.Compact(op.Errors)
	a.know(rt)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, callerOf(ctx), in)
		if err != nil {
			return nil, a.toProblem(ctx, err)
		}
		return out, nil
	})
}

// plain registers a route that is not part of the document.
func (a *API) plain(rt route, h http.HandlerFunc) {
	a.know(rt)
	a.mux.HandleFunc(rt.method+" "+rt.path, h)
}

func (a *API) know(rt route) {
	if rt.scope != open && level(rt.scope) == 0 {
		panic("api: route " + rt.method + " " + rt.path + " has no scope")
	}
	a.routes[rt.method+" "+rt.path] = &rt
}

// List is one page of a list.
type List[T any] struct {
	Items []T     `json:"items" nullable:"false"`
	Next  *string `json:"next" doc:"The cursor of the next page; null after the last."`
}

type listOut[T any] struct{ Body List[T] }

// listed makes the answer of a list that was asked for one item more than fits.
func listed[T any](items []T, limit int, cursor func(last T) string) *listOut[T] {
	out := &listOut[T]{}
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		next := cursor(items[limit-1])
		out.Body.Next = &next
	}
	if out.Body.Items = items; items == nil {
		out.Body.Items = []T{}
	}
	return out
}

// all is the answer of a list that is short by nature.
func all[T any](items []T) *listOut[T] { return listed(items, 0, nil) }

type none struct{}

// What is embedded in inputs is exported, or huma would not see it.

// Paging is which part of a list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items at most."`
	Cursor string `query:"cursor" maxLength:"300" doc:"The next of the list before."`
}

// JobID is a job in the path.
type JobID struct {
	ID string `path:"id" maxLength:"64" doc:"ID of a job." example:"j4k2m7qxw3ab"`
}

// ForTenant is a tenant that operators may name.
type ForTenant struct {
	Tenant string `query:"tenant" maxLength:"64" doc:"For operators: the tenant that is meant."`
}

// tenant finds whose rows something is done with that needs one tenant: the
// caller's own, or for operators the one they name.
func (a *API) tenant(ctx context.Context, c *caller, named string) (ledger.Tenant, error) {
	switch {
	case named != "" && named != c.tenant.ID && !c.operator():
		return ledger.Tenant{}, errForeignTenant
	case named == "" && c.tenant.ID == "":
		return ledger.Tenant{}, problem(http.StatusUnprocessableEntity,
			"this key belongs to no tenant: say for whom with ?tenant=ID (GET /v1/tenants lists them)")
	case named == "" || named == c.tenant.ID:
		return c.tenant, nil
	}
	return a.cfg.Store.Tenant(ctx, named)
}

var errForeignTenant = problem(http.StatusForbidden, "only a key with the scope operator may name a tenant: leave ?tenant= out")
