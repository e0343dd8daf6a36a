package acceptance

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

// The parts of the API's description that a walk over it needs.
type description struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Scope       string `json:"x-scope"`
		Parameters  []struct{ Name, In string }
		RequestBody *struct{} `json:"requestBody"`
	}
}

// walkBodies are sound bodies for the operations that take one.
var walkBodies = map[string]fields{
	"createJob": {"url": "http://127.0.0.1:1/"}, "previewLimits": {"url": "http://127.0.0.1:1/"}, "fetchPage": {"url": "http://127.0.0.1:1/"},
	"createSchedule": {"rule": "24h", "job": fields{"url": "http://127.0.0.1:1/"}, "enabled": false}, "updateSchedule": {"name": "mine"},
	"createKey": {"name": "mine"}, "createTenant": {"id": "mine"}, "updateTenant": {"name": "mine"}, "createTenantKey": {"name": "mine"},
}

// step is one request of a walk: with an id that is somebody's, and with one
// that nobody has. Without a place for an id the two are the same.
type step struct {
	method, theirs, missing, kind string
	body                          any
}

// steps are every operation, with every id in the place of each parameter of
// its path and its query that takes one.
func (d *description) steps(t *testing.T, ids map[string][2]string, page string) (list []step) {
	t.Helper()
	operations := 0
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op := d.Paths[path][method]
			operations++
			var body any
			if op.RequestBody != nil {
				if body = walkBodies[op.OperationID]; walkBodies[op.OperationID] == nil {
					t.Errorf("%s takes a body; give the walk one", op.OperationID)
				}
			}
			var places []string
			query := "?"
			for _, p := range op.Parameters {
				switch {
				case p.In == "path":
					places = append(places, p.Name)
				case p.Name == "job" || p.Name == "tenant" || p.Name == "schedule":
					places = append(places, p.Name)
					query += p.Name + "={" + p.Name + "}&"
				case p.Name == "url":
					query += "url=" + url.QueryEscape(page) + "&"
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(ids)) {
				st := step{strings.ToUpper(method), path + query, path + query, kind, body}
				for _, name := range places {
					st.theirs = strings.ReplaceAll(st.theirs, "{"+name+"}", url.PathEscape(ids[kind][0]))
					st.missing = strings.ReplaceAll(st.missing, "{"+name+"}", url.PathEscape(ids[kind][1]))
				}
				list = append(list, st)
				if len(places) == 0 {
					break
				}
			}
		}
	}
	if operations < 45 {
		t.Errorf("the description has only %d operations", operations)
	}
	return list
}

// same is what of an answer must not differ.
func (a answer) same() string {
	h := a.header.Clone()
	h.Del("Date")
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		lines = append(lines, k+": "+strings.Join(h[k], ", "))
	}
	return http.StatusText(a.status) + "\n" + strings.Join(lines, "\n") + "\n\n" + a.body
}

func Test_a_walk_over_every_route_with_anothers_ids_reads_nothing_and_cannot_tell_them_from_missing_ones(t *testing.T) {
	t.Parallel()
	farm := newFarm(t, webfarm.Config{Seed: 7, Hosts: 2, Pages: 20, Links: 6, NameFmt: "secret%d.bobs.test"})
	dead := newArrivals(t, 0, func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(http.StatusNoContent); return true })
	s := serve(t, newDir(t), "MAX_CONCURRENT_CRAWLS=3", "--resolve", farm.Resolve()[0])
	ann, bob := s.tenant("ann", "enterprise", 1), s.tenant("bobs-tenant", "enterprise", 1)

	// Bob has a job that ended, one that runs, one that waits, and the rest.
	hook := fields{"webhook": dead.URL + "/bobs-hook", "label": "bobs-label"}
	done := bob.ended(bob.order(hurry(farm.Seeds()[0], hook)).ID, 30*time.Second)
	runs := bob.order(fields{"url": farm.Seeds()[1], "delay_ms": 20_000, "label": "bobs-label"})
	var bobs client.Schedule
	bob.must("POST", "/v1/schedules", fields{"name": "bobs-schedule", "rule": "48h", "job": fields{"url": farm.Seeds()[0]}}, &bobs)
	var key client.Key
	bob.must("POST", "/v1/keys", fields{"name": "bobs-key"}, &key)
	host := strings.TrimSuffix(strings.TrimPrefix(farm.Seeds()[0], "http://"), "/")
	var secret struct{ Secret string }
	bob.must("GET", "/v1/webhook-secret", nil, &secret)
	s.until(20*time.Second, "bob's second job runs", func() bool { return bob.job(runs.ID).Status == "running" })
	own := ann.ended(ann.order(fields{"url": dead.URL + "/", "pages": 1}).ID, 30*time.Second)

	var all description
	ann.must("GET", "/v1/openapi.json", nil, &all)
	nobody := strings.Repeat("a", 24)
	ids := map[string][2]string{"an ended job": {done.ID, "j_" + nobody}, "a running job": {runs.ID, "j_" + nobody}, "a schedule": {bobs.ID, "s_" + nobody},
		"a key": {key.ID, nobody[:len(key.ID)]}, "a tenant": {"bobs-tenant", "nobody"}, "a host": {host, "nobody.test"}}
	// What only bob may see, but for what ann named herself.
	private := []string{done.ID, runs.ID, bobs.ID, key.ID, key.Secret, bob.key, secret.Secret, "bobs.test", "bobs-"}
	before := bobsThings(bob, done.ID, runs.ID)
	walked, refused := 0, 0
	for _, st := range all.steps(t, ids, farm.Seeds()[0]) {
		got, err := ann.ask(st.method, st.theirs, st.body)
		if err != nil {
			t.Fatal(err)
		}
		walked++
		unasked := strings.NewReplacer(ids[st.kind][0], "", farm.Seeds()[0], "").Replace(got.body)
		for _, p := range private {
			if strings.Contains(unasked, p) {
				t.Errorf("%s %s shows %q of bob: %d %s", st.method, st.theirs, p, got.status, got.body)
			}
		}
		if st.theirs == st.missing {
			continue
		}
		want, err := ann.ask(st.method, st.missing, st.body)
		if err != nil {
			t.Fatal(err)
		}
		if want.status >= 400 {
			refused++
		}
		if got.same() != want.same() {
			t.Errorf("%s %s with %s of bob's differs from a missing one:\n%s\n\n%s", st.method, st.theirs, st.kind, got.same(), want.same())
		}
	}
	t.Logf("%d requests with bob's ids, %d compared with missing ones and refused", walked, refused)
	if walked < 150 || refused < 120 {
		t.Errorf("the walk was too short")
	}
	if after := bobsThings(bob, done.ID, runs.ID); after != before {
		t.Errorf("the walk changed something of bob's:\n%s\n\n%s", before, after)
	}

	// Lists, streams and downloads of one's own hold one's own and no more.
	for _, path := range []string{"/v1/jobs?limit=500", "/v1/jobs?q=test", "/v1/schedules", "/v1/keys", "/v1/usage", "/v1/engine", "/v1/me", "/v1/limits", "/v1/plans",
		"/v1/jobs/" + own.ID + "/pages", "/v1/jobs/" + own.ID + "/export?format=jsonl", "/v1/jobs/" + own.ID + "/export?format=csv", "/v1/domains?job=" + own.ID} {
		a, err := ann.ask("GET", path, nil)
		if err != nil || a.status != http.StatusOK {
			t.Errorf("%s: %d %s %v", path, a.status, a.body, err)
		}
		for _, p := range private {
			if strings.Contains(a.body, p) {
				t.Errorf("%s shows %q of bob: %s", path, p, a.body)
			}
		}
	}
	if _, text := ann.follow(own.ID); strings.Contains(text, "bobs") || !strings.Contains(text, own.ID) {
		t.Errorf("ann's events: %s", text)
	}
	// The same reads as bob find what was looked for: the walk could have seen it.
	if _, text := bob.follow(done.ID); !strings.Contains(text, "bobs.test") {
		t.Error("bob's own events show nothing of his site")
	}
	if a, _ := bob.ask("GET", "/v1/jobs/"+done.ID+"/export?format=jsonl", nil); strings.Count(a.body, "bobs.test") < 20 {
		t.Error("bob's own export shows nothing of his site")
	}
	bob.must("POST", "/v1/jobs/"+runs.ID+"/cancel", nil, nil)
}

// bobsThings are what a stranger might change.
func bobsThings(bob caller, jobs ...string) string {
	var all strings.Builder
	for _, path := range []string{"/v1/schedules", "/v1/usage", "/v1/webhook-secret"} {
		a, _ := bob.ask("GET", path, nil)
		all.WriteString(a.body)
	}
	for _, id := range jobs {
		j := bob.job(id)
		all.WriteString(j.ID + " " + said(j) + "\n")
	}
	var keys struct{ Items []client.Key }
	bob.must("GET", "/v1/keys", nil, &keys)
	for _, k := range keys.Items {
		all.WriteString(k.ID)
		if k.Revoked != nil {
			all.WriteString(" revoked")
		}
	}
	return all.String()
}
