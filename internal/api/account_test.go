package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tiptoe/internal/ledger"
)

func Test_a_key_finds_out_whose_it_is(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	if m := get[Me](w, w.annRO, "/v1/me"); m.Tenant.ID != "ann" || m.Tenant.Name != "ANN" || m.Tenant.Plan != "enterprise" || strings.Join(m.Key.Scopes, "") != "read" {
		t.Errorf("%+v", m)
	}
	if m := get[Me](w, w.op, "/v1/me"); m.Tenant != nil || strings.Join(m.Key.Scopes, "") != "operator" {
		t.Errorf("%+v", m)
	}
	if l := get[List[map[string]any]](w, w.annRO, "/v1/plans"); len(l.Items) != 4 || l.Items[0]["name"] != "free" {
		t.Errorf("%+v", l)
	}
	e := get[Engine](w, w.annRO, "/v1/engine")
	if e.Workers != 7 || e.Version != "test" || e.Layers[0].Limit != 7 || e.Queue.Slots != 1 || e.Waiting == nil {
		t.Errorf("%+v", e)
	}
}

func Test_the_secret_of_webhooks_is_shown_and_changed(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type secret struct{ Secret string }
		w.refused(w.do(w.annRO, "GET", "/v1/webhook-secret", ""), 403)
		if s := get[secret](w, w.ann, "/v1/webhook-secret"); s.Secret != "secret of ann" {
			t.Errorf("%+v", s)
		}
		changed := decode[secret](w, w.do(w.ann, "POST", "/v1/webhook-secret/rotate", ""), 200)
		if s := get[secret](w, w.ann, "/v1/webhook-secret"); s != changed || len(s.Secret) != 43 {
			t.Errorf("%+v", s)
		}
		if s := get[secret](w, w.bob, "/v1/webhook-secret"); s.Secret != "secret of bob" {
			t.Errorf("%+v", s)
		}
	})
}

func Test_operators_make_tenants_and_what_they_do_is_logged(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		if c := decode[Tenant](w, w.do(w.op, "POST", "/v1/tenants", `{"id":"carl","name":"Carl","plan":"pro","weight":3}`), 201); c.Plan != "pro" || c.Weight != 3 {
			t.Errorf("%+v", c)
		}
		w.refused(w.do(w.op, "POST", "/v1/tenants", `{"id":"carl"}`), 409)
		w.refused(w.do(w.op, "POST", "/v1/tenants", `{"id":"Carl"}`), 422)
		w.refused(w.do(w.op, "POST", "/v1/tenants", `{"id":"*"}`), 422)
		w.refused(w.do(w.op, "POST", "/v1/tenants", `{"id":"dora","plan":"gold"}`), 422)
		if c := decode[Tenant](w, w.do(w.op, "PATCH", "/v1/tenants/carl", `{"plan":"free"}`), 200); c.Plan != "free" || c.Weight != 3 || c.Name != "Carl" {
			t.Errorf("%+v", c)
		}
		w.refused(w.do(w.op, "PATCH", "/v1/tenants/nobody", `{"plan":"free"}`), 404)
		own := w.key("ann", ledger.ScopeOperator)
		w.refused(w.do(own, "PATCH", "/v1/tenants/ann", `{"disabled":true}`), 409)
		if l := get[List[Tenant]](w, w.op, "/v1/tenants").Items; len(l) != 3 || l[2].ID != "carl" {
			t.Errorf("%+v", l)
		}
		k := decode[NewKeyView](w, w.do(w.op, "POST", "/v1/tenants/carl/keys", `{"name":"first","scopes":["read"]}`), 201)
		if m := get[Me](w, k.Text, "/v1/me"); m.Tenant.ID != "carl" {
			t.Errorf("%+v", m)
		}
		w.refused(w.do(w.op, "DELETE", "/v1/tenants/ann/keys/"+k.ID, ""), 404)
		if a := w.do(w.op, "DELETE", "/v1/tenants/carl/keys/"+k.ID, ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
		w.refused(w.do(k.Text, "GET", "/v1/me", ""), 401)
		if a := w.do(w.op, "POST", "/v1/reload", ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
		w.svc.reload = errors.New("plans.free.pages: not a number")
		if d := w.refused(w.do(w.op, "POST", "/v1/reload", ""), 409); !strings.Contains(d, "plans.free.pages") {
			t.Error(d)
		}
		var done []string
		a := w.do(w.op, "GET", "/v1/operator-log?limit=3", "")
		first := decode[List[Action]](w, a, 200)
		second := get[List[Action]](w, w.op, "/v1/operator-log?limit=3&cursor="+*first.Next)
		for _, x := range append(first.Items, second.Items...) {
			done = append(done, x.Action)
			if strings.Contains(string(x.Detail), k.Text[16:]) || x.Key == "" {
				t.Errorf("%+v", x)
			}
		}
		if got := strings.Join(done, " "); got != "config.reload key.revoke key.create tenant.update tenant.create" || second.Next != nil {
			t.Errorf("%s", got)
		}
	})
}

func Test_health_and_readiness_are_open_and_metrics_are_the_operator_s(t *testing.T) {
	var broken error
	w := newWorld(t, openSQLite(t), func(c *Config) { c.Ready = func(context.Context) error { return broken } })
	for _, path := range []string{"/v1/health", "/healthz", "/v1/ready", "/readyz"} {
		if a := w.do("", "GET", path, ""); a.status != 200 || !strings.Contains(a.body, `"status"`) {
			t.Errorf("%s: %+v", path, a)
		}
	}
	broken = errors.New("no database at 10.0.0.1")
	for _, path := range []string{"/v1/ready", "/readyz"} {
		if a := w.do("", "GET", path, ""); w.refused(a, 503) == "" || strings.Contains(a.body, "10.0.0.1") {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, path := range []string{"/v1/metrics", "/metrics"} {
		w.refused(w.do("", "GET", path, ""), 401)
		w.refused(w.do(w.ann, "GET", path, ""), 403)
		if a := w.do(w.op, "GET", path, ""); a.status != 200 || a.body != "up 1\n" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}
