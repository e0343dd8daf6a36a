package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"tiptoe/internal/ledger"
)

func (a *API) keyRoutes() {
	handle(a, route{method: "GET", path: "/v1/keys", id: "listKeys", tag: "account", scope: ledger.ScopeRead,
		summary: "List your keys", doc: "Newest first, revoked ones included. No secret is shown."}, a.listKeys)
	handle(a, route{method: "POST", path: "/v1/keys", id: "createKey", tag: "account", scope: ledger.ScopeWrite, status: 201,
		summary: "Make a key", doc: "The answer is the only time the key is shown. It may not do more than the key it is made with.",
		errors: []int{400, 409, 413, 415, 422}}, a.createKey)
	handle(a, route{method: "DELETE", path: "/v1/keys/{id}", id: "revokeKey", tag: "account", scope: ledger.ScopeWrite, status: 204,
		summary: "Revoke a key", doc: "It is refused from now on.", errors: []int{404}}, a.revokeKey)
}

// Key is an API key without its secret.
type Key struct {
	ID        string   `json:"id"`
	Tenant    *string  `json:"tenant" doc:"Null for an operator's key that belongs to no tenant."`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes" nullable:"false"`
	CreatedAt *Stamp   `json:"created_at"`
	LastUsed  *Stamp   `json:"last_used_at" nullable:"true" doc:"To a minute or so; null if never."`
	RevokedAt *Stamp   `json:"revoked_at" nullable:"true"`
}

func keyView(k *ledger.Key) Key {
	v := Key{ID: k.ID, Tenant: text(k.Tenant), Name: k.Name, Scopes: k.Scopes, CreatedAt: at(k.Created), LastUsed: at(k.LastUsed), RevokedAt: at(k.Revoked)}
	if v.Scopes == nil {
		v.Scopes = []string{}
	}
	return v
}

// NewKeyView is a key that was just made.
type NewKeyView struct {
	Text string `json:"key" doc:"The key itself. It is not shown again." example:"tt_abcdefghijkl_…"`
	Key
}

type keyRequest struct {
	Name   string   `json:"name,omitempty" maxLength:"200" doc:"What it is for."`
	Scopes []string `json:"scopes,omitempty" enum:"read,write,operator" maxItems:"3" doc:"What it may do; without this, read and write, or what your own key may."`
}

type keyIn struct{ Body keyRequest }

type newKeyOut struct{ Body NewKeyView }

// maxKeys bounds the good keys of one tenant.
const maxKeys = 100

func (a *API) listKeys(ctx context.Context, c *caller, _ *none) (*listOut[Key], error) {
	return a.keysOf(ctx, c.tenant.ID)
}

func (a *API) keysOf(ctx context.Context, tenant string) (*listOut[Key], error) {
	found, err := a.cfg.Store.Keys(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var list []Key
	for i := range found {
		if found[i].Tenant == tenant {
			list = append(list, keyView(&found[i]))
		}
	}
	return all(list), nil
}

func (a *API) createKey(ctx context.Context, c *caller, in *keyIn) (*newKeyOut, error) {
	return a.makeKey(ctx, c, c.tenant.ID, in.Body)
}

func (a *API) makeKey(ctx context.Context, c *caller, tenant string, r keyRequest) (*newKeyOut, error) {
	if len(r.Scopes) == 0 {
		r.Scopes = []string{ledger.ScopeRead}
		if c.level >= level(ledger.ScopeWrite) {
			r.Scopes = append(r.Scopes, ledger.ScopeWrite)
		}
		if tenant == "" {
			r.Scopes = []string{ledger.ScopeOperator}
		}
	}
	slices.Sort(r.Scopes)
	r.Scopes = slices.Compact(r.Scopes)
	if levelOf(r.Scopes) > c.level {
		return nil, problem(http.StatusForbidden, "a key may not do more than the one it is made with: ask for fewer scopes")
	}
	if tenant == "" && levelOf(r.Scopes) < level(ledger.ScopeOperator) {
		return nil, invalid("body.scopes", "a key that belongs to no tenant must have the scope operator: make others with POST /v1/tenants/{id}/keys")
	}
	old, err := a.cfg.Store.Keys(ctx, tenant)
	if err != nil {
		return nil, err
	}
	good := 0
	for _, k := range old {
		if k.Tenant == tenant && k.Revoked.IsZero() {
			good++
		}
	}
	if good >= maxKeys {
		return nil, problem(http.StatusConflict, fmt.Sprintf("there are %d keys already: revoke one first", good))
	}
	secret, k := NewKey(tenant, r.Name, r.Scopes, a.cfg.Now())
	if err := a.cfg.Store.CreateKey(ctx, k); err != nil {
		return nil, err
	}
	if c.operator() {
		a.logAction(ctx, c, "key.create", k.ID, map[string]any{"tenant": tenant, "scopes": k.Scopes})
	}
	return &newKeyOut{NewKeyView{Text: secret, Key: keyView(&k)}}, nil
}

type keyID struct {
	ID string `path:"id" maxLength:"64" doc:"ID of a key: its second part."`
}

func (a *API) revokeKey(ctx context.Context, c *caller, in *keyID) (*none, error) {
	return nil, a.revoke(ctx, c, c.tenant.ID, in.ID)
}

func (a *API) revoke(ctx context.Context, c *caller, tenant, id string) error {
	k, err := a.cfg.Store.Key(ctx, id)
	if err != nil {
		return err
	}
	if k.Tenant != tenant {
		return ledger.ErrNoKey
	}
	if levelOf(k.Scopes) > c.level {
		return problem(http.StatusForbidden, "this key may do more than yours: only one like it may revoke it")
	}
	if _, err := a.cfg.Store.RevokeKey(ctx, tenant, id, a.cfg.Now()); err != nil {
		return err
	}
	a.keys.forget(id, "")
	if c.operator() {
		a.logAction(ctx, c, "key.revoke", id, map[string]any{"tenant": tenant})
	}
	return nil
}
