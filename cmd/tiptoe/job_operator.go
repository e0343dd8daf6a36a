package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	api "tiptoe/internal/client"
	"tiptoe/internal/tui"
)

type jobKeysCmd struct {
	List   keysListCmd   `cmd:"" default:"withargs" help:"List keys, newest first; no secret is shown."`
	Add    keysAddCmd    `cmd:"" help:"Make a key; it is shown once."`
	Revoke keysRevokeCmd `cmd:"" help:"Refuse a key from now on."`
}

func (c *jobKeysCmd) Help() string {
	return `Examples:
  tiptoe job keys
  tiptoe job keys add ci --scope read            may look, not order
  tiptoe job keys add shop --tenant acme         an operator, for a tenant
  tiptoe job keys add prometheus --scope operator > prometheus.key
  tiptoe job keys revoke abcdefghijkl            the key's second part

Scopes: read sees, write also orders, operator does everything, for everybody. A
key makes no key that may do more than itself.`
}

// keysPath is where the keys are that are meant: one's own, or a tenant's.
func (w *whose) keysPath() string {
	if w.Tenant == "" {
		return "/v1/keys"
	}
	return "/v1/tenants/" + api.Escape(w.Tenant) + "/keys"
}

type keysListCmd struct {
	whose
	service
}

func (c *keysListCmd) Run(st *streams) error {
	row := "%-14s %-16s %-19s  %-19s  %-8s %s"
	head := fmt.Sprintf(row, "ID", "SCOPES", "MADE", "LAST USED", "STATE", "NAME")
	return list(st, &c.service, c.keysPath(), nil, api.Whole, "No keys.", head, func(w io.Writer, k *api.Key) {
		state := "good"
		if k.Revoked != nil {
			state = "revoked"
		}
		fmt.Fprintf(w, row+"\n", tui.Clean(k.ID, 40), tui.Clean(strings.Join(k.Scopes, ","), 30), clock(k.Created), clock(k.LastUsed), state, tui.Clean(k.Name, 60))
	})
}

type keysAddCmd struct {
	Name  string   `arg:"" help:"What it is for."`
	Scope []string `help:"read, write or operator; by default read and write. Repeatable." enum:"read,write,operator" placeholder:"S"`
	whose
	service
}

func (c *keysAddCmd) Run(st *streams) error {
	body := map[string]any{"name": c.Name}
	if len(c.Scope) > 0 {
		body["scopes"] = c.Scope
	}
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Post(ctx, c.keysPath(), nil, body, into)
	}, func(w io.Writer, k *api.Key) {
		fmt.Fprintln(w, tui.Clean(k.Secret, 0))
		fmt.Fprintf(st.err, "key %s (%s); keep it well, it is not shown again\n", tui.Clean(k.ID, 0), tui.Clean(strings.Join(k.Scopes, ", "), 0))
	})
}

type keysRevokeCmd struct {
	ID []string `arg:"" help:"IDs of keys, as they are listed."`
	whose
	server
}

func (c *keysRevokeCmd) Run(st *streams) error {
	return c.remove(st, c.keysPath()+"/", c.ID, nil, "revoked")
}

type jobTenantsCmd struct {
	List tenantsListCmd `cmd:"" default:"withargs" help:"List tenants."`
	Add  tenantsAddCmd  `cmd:"" help:"Make a tenant."`
	Set  tenantsSetCmd  `cmd:"" help:"Change a tenant's name, plan or share, or shut it out."`
}

func (c *jobTenantsCmd) Help() string {
	return `Examples:
  tiptoe job tenants
  tiptoe job tenants add acme --plan starter
  tiptoe job keys add first --tenant acme      its first key
  tiptoe job tenants set acme --plan pro --weight 2
  tiptoe job tenants set acme --disable

A weight is a share: of two tenants that both wait, the one with weight 2 gets
twice the slots. A disabled tenant's keys are refused and its schedules rest.`
}

type tenantsListCmd struct{ service }

const tenantRow = "%-20s %-14s %6s  %-9s %-19s  %s\n"

func tenantLine(w io.Writer, t *api.Tenant) {
	state := "enabled"
	if t.Disabled {
		state = "disabled"
	}
	fmt.Fprintf(w, tenantRow, tui.Clean(t.ID, 63), tui.Clean(t.Plan, 30), tui.Count(int64(t.Weight)), state, clock(t.Created), tui.Clean(t.Name, 60))
}

func (c *tenantsListCmd) Run(st *streams) error {
	head := strings.TrimSuffix(fmt.Sprintf(tenantRow, "ID", "PLAN", "WEIGHT", "STATE", "MADE", "NAME"), "\n")
	return list(st, &c.service, "/v1/tenants", nil, api.Whole, "No tenants.", head, tenantLine)
}

type tenantsAddCmd struct {
	ID     string `arg:"" help:"Small letters, digits and -."`
	Name   string `help:"A name for people." placeholder:"TEXT"`
	Plan   string `help:"One of the operator's plans; by default free." placeholder:"P"`
	Weight *int   `help:"Share of the slots when tenants compete." placeholder:"N"`
	service
}

func (c *tenantsAddCmd) Run(st *streams) error {
	body := map[string]any{"id": c.ID}
	put(body, "name", c.Name)
	put(body, "plan", c.Plan)
	if c.Weight != nil {
		body["weight"] = *c.Weight
	}
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Post(ctx, "/v1/tenants", nil, body, into)
	}, func(w io.Writer, t *api.Tenant) {
		tenantLine(w, t)
		fmt.Fprintf(st.err, "\"tiptoe job keys add NAME --tenant %s\" makes its first key\n", tui.Clean(t.ID, 0))
	})
}

func put(body map[string]any, name, value string) {
	if value != "" {
		body[name] = value
	}
}

type tenantsSetCmd struct {
	ID      string `arg:"" help:"ID of the tenant."`
	Name    string `help:"A name for people." placeholder:"TEXT"`
	Plan    string `help:"One of the operator's plans." placeholder:"P"`
	Weight  *int   `help:"Share of the slots when tenants compete." placeholder:"N"`
	Disable bool   `help:"Refuse its keys, let its schedules rest." xor:"state"`
	Enable  bool   `help:"Let it in again." xor:"state"`
	service
}

func (c *tenantsSetCmd) Run(st *streams) error {
	body := map[string]any{}
	put(body, "name", c.Name)
	put(body, "plan", c.Plan)
	if c.Weight != nil {
		body["weight"] = *c.Weight
	}
	if c.Disable || c.Enable {
		body["disabled"] = c.Disable
	}
	if len(body) == 0 {
		return usageError{errors.New("say what to change: --plan, --weight, --name, --disable or --enable")}
	}
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Patch(ctx, "/v1/tenants/"+api.Escape(c.ID), nil, body, into)
	}, tenantLine)
}

type jobReloadCmd struct{ server }

func (c *jobReloadCmd) Help() string {
	return `Examples:
  tiptoe job reload

The service reads its config file again and takes plans and caps from it; a file
that cannot be read changes nothing. Jobs that were granted keep what they got.`
}

func (c *jobReloadCmd) Run(st *streams) error {
	return c.with(func(ctx context.Context, k *api.Client) error {
		if err := k.Post(ctx, "/v1/reload", nil, nil, nil); err != nil {
			return err
		}
		fmt.Fprintln(st.err, "plans and caps were read again")
		return nil
	})
}

type jobHealthCmd struct{ service }

func (c *jobHealthCmd) Help() string {
	return `Examples:
  tiptoe job health && echo it is ready

Exit code 0 if the service takes orders, 1 if it does not or nobody answers.`
}

func (c *jobHealthCmd) Run(st *streams) error {
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Get(ctx, "/v1/ready", nil, into)
	}, func(w io.Writer, _ *struct{}) { fmt.Fprintln(w, "ready") })
}
