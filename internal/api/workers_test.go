package api

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
)

func withRoster(r *Roster) func(*Config) {
	return func(c *Config) { c.Workers = func() Roster { return *r } }
}

func Test_operators_see_every_worker_and_how_old_the_knowledge_is(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := &Roster{Self: "s-1", At: now, Lease: 30 * time.Second, Workers: []frontier.Worker{
		{ID: "a-1", Host: "a", Started: now.Add(-time.Hour), Hosts: 7, Rate: 12.3456, InFlight: 5, Silent: 2 * time.Second},
		{ID: "b-1", Host: "b", Started: now.Add(-time.Hour), Hosts: 3, Waiting: "commit: no answer", Silent: time.Second},
		{ID: "f-1", Host: "f", Started: now.Add(-time.Hour), Hosts: 4, Rate: 5, InFlight: 8, Silent: 16 * time.Second},
		{ID: "s-1", Host: "s", Started: now.Add(-time.Minute), Hosts: 1, Rate: 1},
	}}
	w := newWorld(t, openSQLite(t), withRoster(r))
	w.refused(w.do(w.ann, "GET", "/v1/workers", ""), 403)
	got := get[Workers](w, w.op, "/v1/workers")
	if len(got.Items) != 4 || got.Waiting != nil || got.Lease == nil || *got.Lease != 30 || !time.Time(*got.At).Equal(now) {
		t.Fatalf("%+v", got)
	}
	var states []string
	for _, one := range got.Items {
		states = append(states, one.State)
		if one.Self != (one.ID == "s-1") {
			t.Errorf("%s answers: %t", one.ID, one.Self)
		}
	}
	if s := strings.Join(states, " "); s != "live waiting silent live" {
		t.Errorf("states %s", s)
	}
	if a := got.Items[0]; a.Machine != "a" || a.Hosts != 7 || a.PagesPerSec != 12.346 || !time.Time(*a.HeardAt).Equal(now.Add(-2*time.Second)) || !time.Time(*a.StartedAt).Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", a)
	}
	if e := get[Engine](w, w.ann, "/v1/engine"); e.Processes != 3 || e.Hosts != 11 || e.InFlight != 5 || e.PagesPerSec != 13.346 {
		t.Errorf("all of them but the silent one together: %+v", e)
	}
	if b := got.Items[1]; b.Waiting == nil || *b.Waiting != "commit: no answer" {
		t.Errorf("%+v", b)
	}
}

func Test_a_list_of_workers_that_grows_old_says_so_and_makes_nobody_silent(t *testing.T) {
	now := time.Now()
	r := &Roster{Self: "s", At: now.Add(-20 * time.Second), Lease: 30 * time.Second, Workers: []frontier.Worker{{ID: "a", Silent: time.Second}, {ID: "s"}}}
	v := workersView(*r, now)
	if v.Waiting == nil || *v.Waiting != "the fleet's store has not answered for 20s" {
		t.Errorf("%v", v.Waiting)
	}
	if v.Items[0].State != "live" || !time.Time(*v.Items[0].HeardAt).Equal(now.Add(-21*time.Second)) || !time.Time(*v.Items[1].HeardAt).Equal(now) {
		t.Errorf("%+v", v.Items)
	}
	r.Waiting = "the fleet's store does not answer: timeout"
	if v = workersView(*r, now); *v.Waiting != r.Waiting {
		t.Errorf("%s", *v.Waiting)
	}
	if v = workersView(Roster{Self: "s", At: now.Add(-time.Hour), Workers: []frontier.Worker{{ID: "s"}}}, now); v.Waiting != nil || v.Lease != nil || v.Items[0].State != "live" {
		t.Errorf("a server alone waits for nobody: %+v", v)
	}
}

func Test_a_job_that_another_server_drives_waits_for_a_store_that_does_not_answer_here(t *testing.T) {
	r := &Roster{Self: "s", Workers: []frontier.Worker{{ID: "s"}}}
	w := newWorld(t, openSQLite(t), withRoster(r))
	id, _ := w.begin(w.ann, "https://a.example/")
	if j := get[Job](w, w.ann, "/v1/jobs/"+id); j.WaitingFor != nil {
		t.Errorf("it waits for %s", *j.WaitingFor)
	}
	r.Waiting = "the fleet's store does not answer"
	if j := get[Job](w, w.ann, "/v1/jobs/"+id); j.WaitingFor == nil || *j.WaitingFor != r.Waiting {
		t.Errorf("%+v", j.WaitingFor)
	}
}

func Test_only_operators_see_which_machine_holds_a_host(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	id, _ := w.begin(w.ann, "https://a.example/")
	host := crawl.HostStatus{Host: "a.example", State: "running", Queued: 3, Worker: "rack7-12-ab"}
	w.svc.mu.Lock()
	w.svc.status[id] = crawl.Status{At: time.Now(), Queued: 3, Waiting: []crawl.HostStatus{host}, Busiest: []crawl.HostStatus{host},
		Waits: []crawl.WaitingFor{{Reason: "pace", Hosts: 1, URLs: 3}}}
	w.svc.mu.Unlock()
	for _, path := range []string{"/hosts", "/live"} {
		if a := w.do(w.ann, "GET", "/v1/jobs/"+id+path, ""); a.status != 200 || strings.Contains(a.body, "rack7") {
			t.Errorf("%s shows a tenant: %d %s", path, a.status, a.body)
		}
		if a := w.do(w.op, "GET", "/v1/jobs/"+id+path, ""); !strings.Contains(a.body, `"worker":"rack7-12-ab"`) {
			t.Errorf("%s shows an operator: %s", path, a.body)
		}
	}
	if v := get[Live](w, w.ann, "/v1/jobs/"+id+"/live"); len(v.Waits) != 1 || v.Waits[0] != (WaitReason{"pace", 1, 3}) {
		t.Errorf("%+v", v.Waits)
	}
}

func Test_a_key_is_told_whether_anything_can_be_ordered(t *testing.T) {
	for _, one := range []bool{false, true} {
		w := newWorld(t, openSQLite(t), func(c *Config) { c.OneCrawl = one })
		if m := get[Me](w, w.ann, "/v1/me"); m.Orders == one {
			t.Errorf("one crawl %t: orders %t", one, m.Orders)
		}
	}
}
