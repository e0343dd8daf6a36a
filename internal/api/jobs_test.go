package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

func Test_an_order_becomes_a_job_that_says_what_it_got_and_why(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.do(w.ann, "POST", "/v1/jobs", `{"url":"https://a.example","pages":500,"label":"my site","priority":2,"webhook":"https://hook.example/x"}`)
		j := decode[Job](w, a, 201)
		if a.header.Get("Location") != "/v1/jobs/"+j.ID {
			t.Errorf("%v", a.header)
		}
		if j.Status != "queued" || j.Tenant != "ann" || *j.Label != "my site" || j.Priority != 2 || j.URLs[0] != "https://a.example/" || j.Error != nil || j.Success != nil {
			t.Errorf("%s", a.body)
		}
		if j.Limits.Pages != 50 || j.Limits.PagesBy != "safety" || len(j.Limits.Reasons) == 0 || j.Pages.Reserved != 50 || *j.Webhook != "https://hook.example/x" {
			t.Errorf("%s", a.body)
		}
		if *j.Position != 1 || !strings.Contains(*j.WaitingFor, "number 1") {
			t.Errorf("%s", a.body)
		}
		if again := w.do(w.ann, "GET", "/v1/jobs/"+j.ID, ""); again.body != a.body {
			t.Errorf("read back it differs:\n%s%s", a.body, again.body)
		}
		for _, want := range []string{`"started_at":null`, `"schedule":null`, `"queued":null`, `"eta_seconds":null`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s is not in %s", want, a.body)
			}
		}
		var raw map[string]any
		w.must(json.Unmarshal([]byte(a.body), &raw))
		if s := raw["created_at"].(string); len(s) != len("2026-11-05T14:02:10.123Z") || !strings.HasSuffix(s, "Z") {
			t.Errorf("a time is %q", s)
		}
	})
}

func Test_the_same_order_under_the_same_name_is_one_job(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		body := `{"url":"https://a.example/","pages":5}`
		first := decode[Job](w, w.do(w.ann, "POST", "/v1/jobs", body, "Idempotency-Key", "one"), 201)
		second := decode[Job](w, w.do(w.ann, "POST", "/v1/jobs", body, "Idempotency-Key", "one"), 200)
		if first.ID != second.ID {
			t.Error("two jobs")
		}
		w.refused(w.do(w.ann, "POST", "/v1/jobs", `{"url":"https://a.example/","pages":6}`, "Idempotency-Key", "one"), 409)
		if third := decode[Job](w, w.do(w.bob, "POST", "/v1/jobs", body, "Idempotency-Key", "one"), 201); third.ID == first.ID {
			t.Error("another tenant's")
		}
	})
}

func Test_a_month_that_is_spent_refuses_with_429_and_says_when_it_begins_anew(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		decode[Tenant](w, w.do(w.op, "POST", "/v1/tenants", `{"id":"carl"}`), 201)
		carl := decode[NewKeyView](w, w.do(w.op, "POST", "/v1/tenants/carl/keys", `{}`), 201).Text
		for range 10 { // 50 each of 500
			w.order(carl, "https://a.example/")
		}
		u := get[Usage](w, carl, "/v1/usage")
		if u.Reserved != 500 || *u.Quota != 500 || *u.Left != 0 || u.Month != ledger.Month(time.Now()) || !time.Time(*u.ResetsAt).After(time.Now()) {
			t.Errorf("%+v", u)
		}
		if d := w.refused(w.do(carl, "POST", "/v1/jobs", `{"url":"https://a.example/"}`), 429); !strings.Contains(d, "begins anew on") {
			t.Error(d)
		}
		p := decode[Preview](w, w.do(carl, "POST", "/v1/limits/preview", `{"url":"https://a.example/"}`), 200)
		if p.OK || !strings.Contains(p.Message, "begins anew on") || p.Position != 11 {
			t.Errorf("%+v", p)
		}
		l := get[Limits](w, carl, "/v1/limits")
		if l.Safety.MaxPages != 50 || l.Safety.Timeout != 60000 || l.Plan.Name != "free" || l.Usage.Reserved != 500 {
			t.Errorf("%+v", l)
		}
		if u := get[Usage](w, w.ann, "/v1/usage?month=2020-02"); u.Quota != nil || u.Left != nil || u.Used != 0 || u.Month != "2020-02" {
			t.Errorf("without a quota %+v", u)
		}
	})
}

func Test_a_list_of_jobs_is_whole_page_by_page_and_obeys_its_filters(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var want []string
		for i := range 25 {
			want = append([]string{w.order(w.ann, fmt.Sprintf("https://site%02d.example/", i)).ID}, want...)
			w.order(w.bob, "https://other.example/")
		}
		cancelled := want[3]
		decode[Job](w, w.do(w.ann, "POST", "/v1/jobs/"+cancelled+"/cancel", ""), 200)
		var got []string
		next := ""
		for calls := 0; ; calls++ {
			l := get[List[Job]](w, w.ann, "/v1/jobs?limit=10"+next)
			for _, j := range l.Items {
				got = append(got, j.ID)
			}
			if l.Next == nil {
				if calls != 2 {
					t.Errorf("%d calls", calls+1)
				}
				break
			}
			next = "&cursor=" + url.QueryEscape(*l.Next)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%v\nnot\n%v", got, want)
		}
		if l := get[List[Job]](w, w.ann, "/v1/jobs?limit=25"); len(l.Items) != 25 || l.Next != nil {
			t.Errorf("a list that ends with its page says that there is more")
		}
		for query, n := range map[string]int{"status=cancelled": 1, "status=queued": 24, "status=queued,cancelled": 25, "status=running": 0,
			"type=warm": 0, "type=crawl": 25, "q=site07": 1, "q=" + cancelled: 1, "schedule=none": 0} {
			if l := get[List[Job]](w, w.ann, "/v1/jobs?"+query); len(l.Items) != n {
				t.Errorf("%s: %d", query, len(l.Items))
			}
		}
	})
}

func Test_a_job_is_steered_only_where_its_state_allows(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id := w.order(w.ann, "https://a.example/").ID
		act := func(what string) answer { return w.do(w.ann, "POST", "/v1/jobs/"+id+"/"+what, "") }
		if d := w.refused(act("resume"), 409); !strings.Contains(d, "queued") {
			t.Errorf("%s", d)
		}
		w.refused(w.do(w.ann, "DELETE", "/v1/jobs/"+id, ""), 409)
		if j := decode[Job](w, act("pause"), 200); j.Status != "paused" || *j.WaitingFor != "to be resumed" || j.Error != nil || j.Position != nil {
			t.Errorf("%+v", j)
		}
		if j := decode[Job](w, act("resume"), 200); j.Status != "queued" {
			t.Errorf("%+v", j)
		}
		if j := decode[Job](w, act("cancel"), 200); j.Status != "cancelled" || j.Error == nil || j.EndedAt == nil || *j.Success || j.Pages.Reserved != 0 || j.WaitingFor != nil {
			t.Errorf("%+v", j)
		}
		if d := w.refused(act("cancel"), 409); !strings.Contains(d, "ended") {
			t.Error(d)
		}
		if a := w.do(w.ann, "DELETE", "/v1/jobs/"+id, ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
		w.refused(w.do(w.ann, "GET", "/v1/jobs/"+id, ""), 404)
	})
}

// running is a picture of a crawl.
func running() crawl.Status {
	return crawl.Status{At: time.Now(), Elapsed: 12 * time.Second, Counters: ledger.Counters{Processed: 7, Successful: 6, HTTP429: 2},
		Queued: 30, InFlight: 0, PagesPerSec: 1.5, StatusClasses: [6]int64{0, 0, 6, 0, 1, 0}, Outcomes: map[outcome.Outcome]int64{outcome.OK: 6},
		Hosts: crawl.HostCounts{Waiting: 1}, ETA: time.Minute, ETAWhy: "a.example: 30 URLs", Binding: "100 % of waiting URLs are on 1 host",
		Busiest: []crawl.HostStatus{{Host: "a.example", State: "waiting"}},
		Waiting: []crawl.HostStatus{{Host: "a.example", State: "waiting", Queued: 30, Gap: time.Second, Until: time.Now().Add(time.Minute), Reason: "Retry-After"}, {Host: "b.example"}},
		Layers:  []crawl.Layer{{Name: "workers", Used: 1, Limit: 8}}}
}

func Test_a_running_job_shows_its_progress_hosts_and_what_it_waits_for(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	id, _ := w.begin(w.ann, "https://a.example/")
	if l := get[Live](w, w.ann, "/v1/jobs/"+id+"/live"); l.Running {
		t.Error("it runs before there is a picture")
	}
	w.svc.mu.Lock()
	w.svc.status[id] = running()
	w.svc.points[id] = []job.Point{{At: time.Now(), PagesPerSecond: 1, Queued: 3}, {At: time.Now().Add(2 * time.Second), HTTP429: 1}}
	w.svc.mu.Unlock()
	j := get[Job](w, w.ann, "/v1/jobs/"+id)
	if p := j.Progress; p.Processed != 7 || *p.Queued != 30 || *p.InFlight != 0 || *p.PagesPerSec != 1.5 || *p.ETA != 60 || j.Pages.Spent != 7 {
		t.Errorf("%+v", j)
	}
	if j.WaitingFor != nil || j.Position != nil {
		t.Errorf("%+v", j)
	}
	w.svc.mu.Lock()
	stalled := running()
	stalled.PagesPerSec = 0
	w.svc.status[id] = stalled
	w.svc.mu.Unlock()
	if j := get[Job](w, w.ann, "/v1/jobs/"+id); *j.WaitingFor != "100 % of waiting URLs are on 1 host" {
		t.Errorf("%+v", j)
	}
	l := get[Live](w, w.ann, "/v1/jobs/"+id+"/live")
	if !l.Running || l.Outcomes["ok"] != 6 || l.Hosts.Waiting != 1 || l.Waiting[0].GapMS != 1000 || *l.Waiting[0].Reason != "Retry-After" || l.Layers[0].Limit != 8 || l.Classes[2] != 6 {
		t.Errorf("%+v", l)
	}
	if hosts := get[List[Host]](w, w.ann, "/v1/jobs/"+id+"/hosts").Items; len(hosts) != 2 || hosts[0].Queued != 30 {
		t.Errorf("%+v", hosts)
	}
	if s := get[Series](w, w.ann, "/v1/jobs/"+id+"/series"); s.Step != 2 || len(s.Points) != 2 || *s.Points[0].Queued != 3 || s.Points[1].HTTP429 != 1 {
		t.Errorf("%+v", s)
	}
	w.step(id, ledger.Completed, nil)
	if hosts := get[List[Host]](w, w.ann, "/v1/jobs/"+id+"/hosts").Items; len(hosts) != 0 {
		t.Errorf("an ended job has hosts: %+v", hosts)
	}
	if l := get[Live](w, w.ann, "/v1/jobs/"+id+"/live"); l.Running {
		t.Error("an ended job runs")
	}
}

func Test_schedules_are_made_changed_and_deleted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.do(w.ann, "POST", "/v1/schedules", `{"name":"nightly","rule":"24h","job":{"url":"https://a.example/","pages":9}}`)
		s := decode[Schedule](w, a, 201)
		if a.header.Get("Location") != "/v1/schedules/"+s.ID || !s.Enabled || s.NextAt == nil || *s.Job.Pages != 9 || s.Name != "nightly" || s.LastAt != nil {
			t.Errorf("%s", a.body)
		}
		path := "/v1/schedules/" + s.ID
		if s := decode[Schedule](w, w.do(w.ann, "PATCH", path, `{"enabled":false}`), 200); s.Enabled || s.NextAt != nil || s.Name != "nightly" || s.Rule != "24h" || *s.Job.Pages != 9 {
			t.Errorf("%+v", s)
		}
		if s := decode[Schedule](w, w.do(w.ann, "PATCH", path, `{"enabled":true,"rule":"0 3 * * 1","job":{"url":"https://b.example/"}}`), 200); s.NextAt == nil || s.Rule != "0 3 * * 1" || s.Job.URL != "https://b.example/" {
			t.Errorf("%+v", s)
		}
		w.refused(w.do(w.ann, "PATCH", path, `{"rule":"sometimes"}`), 422)
		if l := get[List[Schedule]](w, w.ann, "/v1/schedules").Items; len(l) != 1 || l[0].ID != s.ID {
			t.Errorf("%+v", l)
		}
		decode[Schedule](w, w.do(w.op, "PATCH", path, `{"name":"by the operator"}`), 200)
		if x := get[List[Action]](w, w.op, "/v1/operator-log").Items; len(x) != 1 || x[0].Action != "schedule.update" || x[0].Target != s.ID {
			t.Errorf("%+v", x)
		}
		if a := w.do(w.ann, "DELETE", path, ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
		w.refused(w.do(w.ann, "GET", path, ""), 404)
		decode[Tenant](w, w.do(w.op, "PATCH", "/v1/tenants/ann", `{"plan":"free"}`), 200)
		if d := w.refused(w.do(w.ann, "POST", "/v1/schedules", bodies["createSchedule"]), 409); !strings.Contains(d, "plan free") {
			t.Error(d)
		}
	})
}
