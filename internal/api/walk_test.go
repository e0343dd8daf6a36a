package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/ledger"
)

// bodies are sound ones for the operations that take one.
var bodies = map[string]string{
	"createJob":       `{"url":"https://a.example/"}`,
	"previewLimits":   `{"url":"https://a.example/"}`,
	"fetchPage":       `{"url":"https://a.example/"}`,
	"createSchedule":  `{"rule":"24h","job":{"url":"https://a.example/"}}`,
	"updateSchedule":  `{"name":"x"}`,
	"createKey":       `{"name":"x"}`,
	"createTenant":    `{"id":"carl"}`,
	"updateTenant":    `{"name":"x"}`,
	"createTenantKey": `{"name":"x"}`,
}

// queries are what some operations need.
var queries = map[string]string{
	"listEvidence": "?url=https://a.example/",
	"explainURL":   "?url=https://a.example/",
}

type operation struct {
	*huma.Operation
	scope string
}

// operations lists every operation of the document.
func operations(t testing.TB, a *API) (list []operation) {
	t.Helper()
	for _, item := range a.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete, item.Head, item.Options, item.Trace} {
			if op == nil {
				continue
			}
			if op.RequestBody != nil && bodies[op.OperationID] == "" {
				t.Errorf("%s takes a body; give the walk one", op.OperationID)
			}
			list = append(list, operation{op, op.Extensions[scopeField].(string)})
		}
	}
	if len(list) < 45 {
		t.Fatalf("only %d operations", len(list))
	}
	return list
}

// ask sends an operation with the given values for its path.
func (w *world) ask(key string, op operation, values map[string]string) answer {
	w.t.Helper()
	path := op.Path
	for name, v := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	path = strings.NewReplacer("{id}", "none", "{host}", "none.example", "{key}", "none").Replace(path)
	return w.do(key, op.Method, path+queries[op.OperationID], bodies[op.OperationID])
}

func Test_no_route_but_health_answers_without_a_key(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		others := []struct{ method, path string }{{"GET", "/metrics"}, {"GET", "/v1/metrics"}, {"GET", "/v1/openapi.json"}, {"GET", "/v1/openapi.yaml"},
			{"GET", "/v1"}, {"GET", "/v1/"}, {"GET", "/v1/nothing"}, {"PUT", "/v1/jobs"}, {"OPTIONS", "/v1/jobs"}, {"GET", "/"}}
		for _, op := range operations(t, w.api) {
			others = append(others, struct{ method, path string }{op.Method, op.Path})
		}
		revoked := w.key("ann", ledger.ScopeOperator)
		id, _, _ := parseKey(revoked)
		_, err := w.db.RevokeKey(w.ctx(), "ann", id, time.Now())
		w.must(err)
		wrong := w.ann[:len(w.ann)-4] + "AAAA"
		unknown, _ := NewKey("ann", "", nil, time.Now())
		adrift := w.key("", ledger.ScopeRead) // its rows would be everybody's
		seen := map[string]bool{}
		for _, o := range others {
			if o.path == "/v1/health" || o.path == "/v1/ready" {
				if a := w.do("", o.method, o.path, ""); a.status != 200 {
					t.Errorf("%s: %d", o.path, a.status)
				}
				continue
			}
			for _, key := range []string{"", "tt_", "nonsense", revoked, wrong, unknown, adrift} {
				a := w.do(key, o.method, o.path, "")
				if a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s %s with %q: %d", o.method, o.path, key, a.status)
				}
				seen[a.body] = true
			}
		}
		if len(seen) != 1 {
			t.Errorf("%d different refusals tell callers apart", len(seen))
		}
	})
}

func Test_a_key_does_no_more_than_its_scope(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	counts := map[string]int{}
	for _, op := range operations(t, w.api) {
		counts[op.scope]++
		keys := map[string]string{"read": w.annRO, "write": w.ann}
		for scope, key := range keys {
			if a := w.ask(key, op, nil); op.scope != open && level(op.scope) > level(scope) {
				w.refused(a, 403)
			} else if a.status == 401 || a.status == 403 {
				t.Errorf("%s %s needs %s, and %s is answered %d", op.Method, op.Path, op.scope, scope, a.status)
			}
		}
		if op.Method != "GET" && op.scope == ledger.ScopeRead && op.OperationID != "previewLimits" {
			t.Errorf("%s %s changes something and needs only read", op.Method, op.Path)
		}
	}
	if counts["operator"] < 10 || counts["write"] < 12 || counts["read"] < 20 || counts[open] != 2 {
		t.Errorf("%v", counts)
	}
}

// same are the parts of an answer that must not differ.
func same(a answer) string {
	var lines []string
	for name, values := range a.header {
		if name != "Date" {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(lines)
	return http.StatusText(a.status) + "\n" + strings.Join(lines, "\n") + "\n" + a.body
}

func Test_another_tenants_ids_and_missing_ids_are_answered_with_the_same_bytes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		jobID, crawlID := w.begin(w.bob, "https://a.example/")
		w.commit(page(crawlID, "https://a.example/"))
		w.must(w.db.SetDomain(w.ctx(), ledger.Domain{Host: "a.example", AdaptiveDelay: time.Second}))
		ended, _ := w.begin(w.bob, "https://b.example/")
		w.step(ended, ledger.Completed, nil)
		schedule := decode[Schedule](w, w.do(w.bob, "POST", "/v1/schedules", bodies["createSchedule"]), 201).ID
		key := decode[NewKeyView](w, w.do(w.bob, "POST", "/v1/keys", "{}"), 201).ID

		before := w.snapshot()
		walked := 0
		for _, op := range operations(t, w.api) {
			var foreign []string
			switch {
			case strings.HasPrefix(op.Path, "/v1/jobs/{id}"):
				foreign = []string{jobID, ended}
			case strings.HasPrefix(op.Path, "/v1/schedules/{id}"):
				foreign = []string{schedule}
			case strings.HasPrefix(op.Path, "/v1/keys/{id}"):
				foreign = []string{key}
			case strings.Contains(op.Path, "{") && op.scope != ledger.ScopeOperator && op.Path != "/v1/domains/{host}":
				t.Errorf("%s has an id that the walk does not know", op.Path)
			}
			for _, id := range foreign {
				theirs, none := w.ask(w.ann, op, map[string]string{"id": id}), w.ask(w.ann, op, map[string]string{"id": "missing"})
				w.refused(none, 404)
				if same(theirs) != same(none) {
					t.Errorf("%s %s tells a foreign id from a missing one:\n%s\n\n%s", op.Method, op.Path, same(theirs), same(none))
				}
				walked++
				if op.Method == "GET" && op.OperationID != "streamEvents" {
					if a := w.ask(w.bob, op, map[string]string{"id": id}); a.status != 200 {
						t.Errorf("%s is not even there for bob: %d %s", op.Path, a.status, a.body)
					}
				}
			}
		}
		for _, paths := range [][2]string{
			{"/v1/domains?job=" + jobID, "/v1/domains?job=missing"},
			{"/v1/domains/a.example?job=" + jobID, "/v1/domains/a.example?job=missing"},
			{"/v1/jobs?tenant=bob", "/v1/jobs?tenant=missing"},
			{"/v1/schedules?tenant=bob", "/v1/schedules?tenant=missing"},
			{"/v1/usage?tenant=bob", "/v1/usage?tenant=missing"},
			{"/v1/limits?tenant=bob", "/v1/limits?tenant=missing"},
			{"/v1/webhook-secret?tenant=bob", "/v1/webhook-secret?tenant=missing"},
		} {
			theirs, none := w.do(w.ann, "GET", paths[0], ""), w.do(w.ann, "GET", paths[1], "")
			if theirs.status < 400 || same(theirs) != same(none) {
				t.Errorf("%s differs from %s:\n%s\n\n%s", paths[0], paths[1], same(theirs), same(none))
			}
		}
		for _, path := range []string{"/v1/jobs", "/v1/jobs?schedule=" + schedule, "/v1/jobs?q=example", "/v1/schedules", "/v1/keys"} {
			for _, id := range []string{jobID, ended, schedule, key, "bob", "example"} {
				if a := w.do(w.ann, "GET", path, ""); strings.Contains(a.body, id) || a.status != 200 {
					t.Errorf("%s shows %s of bob: %d %s", path, id, a.status, a.body)
				}
			}
		}
		if after := w.snapshot(); after != before {
			t.Errorf("the walk changed something of bob's:\n%s\n\n%s", before, after)
		}
		if walked < 30 {
			t.Errorf("only %d walked", walked)
		}
	})
}

// snapshot is everything of bob's that a stranger might change.
func (w *world) snapshot() string {
	w.t.Helper()
	return w.do(w.bob, "GET", "/v1/jobs", "").body + w.do(w.bob, "GET", "/v1/schedules", "").body +
		w.do(w.bob, "GET", "/v1/webhook-secret", "").body + w.do(w.bob, "GET", "/v1/usage", "").body
}

func Test_an_operator_reaches_every_tenants_things(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	id := w.order(w.bob, "https://a.example/").ID
	if j := get[Job](w, w.op, "/v1/jobs/"+id); j.Tenant != "bob" {
		t.Errorf("%+v", j)
	}
	for path, want := range map[string]int{"/v1/jobs?tenant=bob": 1, "/v1/jobs?tenant=ann": 0, "/v1/jobs?tenant=*": 1, "/v1/jobs": 1} {
		if n := len(get[List[Job]](w, w.op, path).Items); n != want {
			t.Errorf("%s: %d jobs", path, n)
		}
	}
	w.refused(w.do(w.op, "GET", "/v1/jobs?tenant=missing", ""), 404)
	w.refused(w.do(w.op, "GET", "/v1/usage", ""), 422) // of whom?
	get[Usage](w, w.op, "/v1/usage?tenant=bob")
	decode[Job](w, w.do(w.op, "POST", "/v1/jobs?tenant=bob", bodies["createJob"]), 201)
	decode[Job](w, w.do(w.op, "POST", "/v1/jobs/"+id+"/cancel", ""), 200)
	var done []string
	for _, x := range get[List[Action]](w, w.op, "/v1/operator-log").Items {
		done = append(done, x.Action+" "+string(x.Detail))
	}
	if strings.Join(done, ", ") != `job.cancel {"tenant":"bob"}, job.create {"tenant":"bob"}` {
		t.Errorf("the log says %q", done)
	}
}
