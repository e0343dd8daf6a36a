package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

// hurry is an order that asks for everything at once: whatever holds it back
// is a cap.
func hurry(url string, more fields) fields {
	f := fields{"url": url, "pages": 500, "delay_ms": 0, "per_host": 64, "seeding": "none"}
	for k, v := range more {
		if f[k] = v; v == nil {
			delete(f, k)
		}
	}
	return f
}

const fiftyOf500 = "Safety limit: Maximum 50 pages per crawl (requested: 500)"

func Test_SAF_4_64_workers_at_a_cap_of_50_make_exactly_50_page_requests(t *testing.T) {
	t.Parallel()
	farm := newFarm(t, webfarm.Config{Seed: 1, Pages: 500, Links: 60, Latency: 10 * time.Millisecond, Jitter: 20 * time.Millisecond})
	s := serve(t, newDir(t), "--workers", "64")
	op := s.operator()
	for range 5 {
		farm.Reset()
		j := op.ended(op.order(hurry(farm.Seeds()[0], nil)).ID, 30*time.Second)
		if got := said(j); got != "partial true: "+fiftyOf500 {
			t.Errorf("it ended as %q", got)
		}
		if b := farm.Books(); asked(farm) != 50 || j.Pages.Spent != 50 || b.MaxInFlight < 8 {
			t.Errorf("%d page requests, %d pages spent, at most %d in flight", asked(farm), j.Pages.Spent, b.MaxInFlight)
		}
	}
	if want := fiftyOf500; !warned(s, want, farm.Addr()) {
		t.Errorf("no warning with the reason and the site [SAF-11]; tiptoe said:\n%s", s.Stderr)
	}
}

// warned looks for a warning with all these words.
func warned(s *server, words ...string) bool {
	for line := range strings.Lines(s.Stderr.String()) {
		all := strings.Contains(line, "WRN")
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func Test_SAF_8_no_field_plan_profile_resume_or_restart_lifts_a_cap(t *testing.T) {
	t.Parallel()
	farm := newFarm(t, webfarm.Config{Seed: 2, Hosts: 3, Pages: 500, Links: 60, CrossHost: 0.3, Latency: 5 * time.Millisecond})
	flags := []string{"--plans", "vast=pages:100000,crawls:100,per-host:100,schedules:100,monthly-pages:1000000", "--resolve", farm.Resolve()[0]}
	dir := newDir(t)
	s := serve(t, dir, flags...)
	who := map[string]caller{"operator": s.operator(), "vast": s.tenant("vast", "vast", 1000), "enterprise": s.tenant("big", "enterprise", 1)}
	home := farm.Seeds()[0]
	try := func(name string, c caller, f fields) {
		t.Helper()
		farm.Reset()
		j := c.order(f)
		if j.Limits.Pages != 50 || j.Limits.PagesBy != "safety" || j.Limits.TimeMS > 60_000 || j.Limits.TimeMS == 0 {
			t.Errorf("%s: granted %+v", name, *j.Limits)
		}
		if p := (client.Preview{}); true {
			c.must("POST", "/v1/limits/preview", f, &p)
			if p.Limits.Pages != 50 || p.Limits.TimeMS > 60_000 {
				t.Errorf("%s: preview says %+v", name, *p.Limits)
			}
		}
		j = c.ended(j.ID, 30*time.Second)
		if n := asked(farm); n != 50 || j.Status != "partial" || j.Error == nil || !strings.HasPrefix(*j.Error, "Safety limit: Maximum 50 pages per crawl") {
			t.Errorf("%s: %d page requests, %s", name, n, said(j))
		}
	}
	for name, c := range who {
		try(name, c, hurry(home, fields{"seconds": 86_400}))
	}
	vast := who["vast"]
	for _, profile := range []string{"polite", "guarded", "audit", "bulk"} {
		try("profile "+profile, vast, hurry(home, fields{"profile": profile}))
	}
	try("profile without pages", vast, hurry(home, fields{"profile": "bulk", "pages": nil}))
	try("a huge number", vast, hurry(home, fields{"pages": int64(1) << 62}))
	try("several seeds", vast, hurry("", fields{"url": nil, "urls": farm.Seeds(), "scope": "any"}))
	try("priority", vast, hurry(home, fields{"priority": 10}))
	for _, f := range []fields{
		hurry(home, fields{"pages": 0}), hurry(home, fields{"pages": -1}), hurry(home, fields{"seconds": 0}),
		hurry(home, fields{"max_pages_per_crawl": 500}), hurry(home, fields{"limits": fields{"pages": 500}}),
		hurry(home, fields{"safety": nil, "plan": "vast"}), hurry(home, fields{"pages": "500"}), hurry(home, fields{"per_host": 1000}),
	} {
		if a, err := vast.ask("POST", "/v1/jobs", f); err != nil || a.status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d %s %v", f, a.status, a.body, err)
		}
	}

	// Paused and resumed, restarted in between: one cap over all of it.
	farm.Reset()
	j := vast.order(hurry(home, fields{"per_host": 1, "delay_ms": 30}))
	for _, pages := range []int64{8, 16, 24} {
		s.until(20*time.Second, "it has pages", func() bool { return asked(farm) >= pages })
		vast.must("POST", "/v1/jobs/"+j.ID+"/pause", nil, &j)
		if j.Status != "paused" {
			t.Fatalf("after the pause it is %s", j.Status)
		}
		if pages == 16 {
			s.stop()
			s = s.again(t, dir, flags...)
			vast.s = s
		}
		vast.must("POST", "/v1/jobs/"+j.ID+"/resume", nil, nil)
	}
	j = vast.ended(j.ID, 30*time.Second)
	if n := asked(farm); n != 50 || said(j) != "partial true: "+fiftyOf500 || farm.Books().Duplicates != 0 {
		t.Errorf("with pauses: %d page requests, %d twice, %s", n, farm.Books().Duplicates, said(j))
	}
	if a, _ := vast.ask("POST", "/v1/jobs/"+j.ID+"/resume", nil); a.status != http.StatusConflict {
		t.Errorf("a partial job was resumed: %d %s", a.status, a.body)
	}
}

// slowSite answers its home page at once and everything else after longer
// than anybody waits.
func slowSite(t *testing.T) *arrivals {
	site := newArrivals(t, 20, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/p/") {
			select {
			case <-r.Context().Done():
			case <-time.After(25 * time.Second):
			}
		}
		return false
	})
	t.Cleanup(site.CloseClientConnections) // or its Close waits for the slow ones
	return site
}

// stoppedAt checks how a job ended that its time limit stopped.
func stoppedAt(t *testing.T, s *server, j client.Job, limit time.Duration, site string) {
	t.Helper()
	took := j.Ended.Sub(*j.Started)
	t.Logf("a limit of %s ended it after %s", limit, took)
	if took < limit || took > limit+time.Second {
		t.Errorf("it ended %s after its slot was granted, the limit is %s", took, limit)
	}
	if want := fmt.Sprintf("Safety limit: Crawl timeout exceeded (%dms)", limit.Milliseconds()); said(j) != "partial false: "+want {
		t.Errorf("it ended as %q", said(j))
	} else if !warned(s, want, site) {
		t.Errorf("no warning with the reason and the site [SAF-11]; tiptoe said:\n%s", s.Stderr)
	}
}

// The whole minute is real: it begins here and passes while other tests run. A
// schedule has its turn meanwhile.
func Test_SAF_5_a_slow_site_is_stopped_within_a_second_of_the_minute_and_a_schedule_gets_no_more_pages(t *testing.T) {
	slow := slowSite(t)
	farm := newFarm(t, webfarm.Config{Seed: 3, Pages: 500, Links: 60})
	s := serve(t, newDir(t), "CRAWL_TIMEOUT_MS=60000", "MAX_CONCURRENT_CRAWLS=2")
	op := s.operator()
	var schedule client.Schedule
	op.must("POST", "/v1/schedules", fields{"rule": "* * * * *", "job": hurry(farm.Seeds()[0], fields{"seconds": 3600})}, &schedule)
	j := op.order(hurry(slow.URL+"/", fields{"seconds": 3600, "per_host": 2}))

	t.Parallel()
	stoppedAt(t, s, op.ended(j.ID, 90*time.Second), time.Minute, slow.URL)
	var jobs struct{ Items []client.Job }
	list := func() { op.must("GET", "/v1/jobs?limit=500&schedule="+schedule.ID, nil, &jobs) }
	s.until(30*time.Second, "the schedule has ordered", func() bool { list(); return len(jobs.Items) > 0 })
	op.must("DELETE", "/v1/schedules/"+schedule.ID, nil, nil)
	list()
	for _, j := range jobs.Items {
		if j = op.ended(j.ID, 30*time.Second); said(j) != "partial true: "+fiftyOf500 || j.Pages.Spent != 50 {
			t.Errorf("the schedule's job spent %d pages and ended as %s", j.Pages.Spent, said(j))
		}
	}
	if n := asked(farm); n != 50*int64(len(jobs.Items)) {
		t.Errorf("%d page requests by %d jobs of a schedule", n, len(jobs.Items))
	}
}

func Test_SAF_3_the_clock_starts_with_the_slot_and_runs_through_a_pause_and_a_restart(t *testing.T) {
	t.Parallel()
	slow, other := slowSite(t), slowSite(t)
	dir, flags := newDir(t), []string{"CRAWL_TIMEOUT_MS=3000"}
	s := serve(t, dir, flags...)
	op := s.operator()
	first, second := op.order(hurry(slow.URL+"/", nil)), op.order(hurry(other.URL+"/", nil))
	stoppedAt(t, s, op.ended(first.ID, 20*time.Second), 3*time.Second, slow.URL)
	// The second has waited as long as it may run.
	j := op.ended(second.ID, 20*time.Second)
	stoppedAt(t, s, j, 3*time.Second, other.URL)
	if waited := j.Started.Sub(j.Created); waited < 2*time.Second {
		t.Errorf("it waited only %s for its slot", waited)
	}

	// A second, a pause, a second, a restart: what is left is less than a second.
	third := op.order(hurry(slow.URL+"/", nil))
	begun := time.Now()
	time.Sleep(time.Second)
	op.must("POST", "/v1/jobs/"+third.ID+"/pause", nil, nil)
	op.must("POST", "/v1/jobs/"+third.ID+"/resume", nil, nil)
	time.Sleep(time.Second)
	s.stop()
	s = s.again(t, dir, flags...)
	j = s.operator().ended(third.ID, 20*time.Second)
	if took := time.Since(begun); said(j) != "partial false: Safety limit: Crawl timeout exceeded (3000ms)" || took > 7*time.Second {
		t.Errorf("after %s it ended as %q", took, said(j))
	}
}

func Test_SAF_2_five_jobs_at_once_run_one_at_a_time_in_their_order(t *testing.T) {
	t.Parallel()
	s := serve(t, newDir(t))
	op := s.operator()
	var sites []*arrivals
	var jobs []client.Job
	for range 5 {
		site := newArrivals(t, 12, nil)
		sites = append(sites, site)
		jobs = append(jobs, op.order(hurry(site.URL+"/", fields{"delay_ms": 50})))
	}
	for i, j := range jobs[1:] {
		if j = op.job(j.ID); j.Status == "queued" && (j.Position == nil || *j.Position > i+1) {
			t.Errorf("job %d is number %v in the queue", i+2, j.Position)
		}
	}
	if j := op.job(jobs[4].ID); j.Position == nil || *j.Position != 4 {
		t.Errorf("the last of five is not the fourth to wait: %+v", j)
	}
	for i := range jobs {
		if jobs[i] = op.ended(jobs[i].ID, 30*time.Second); jobs[i].Status != "completed" {
			t.Errorf("job %d ended as %s", i+1, said(jobs[i]))
		}
		if i == 0 {
			continue
		}
		pause := jobs[i].Started.Sub(*jobs[i-1].Ended)
		if pause < 0 || pause > 500*time.Millisecond {
			t.Errorf("job %d was given its slot %s after the one before it ended", i+1, pause)
		}
		before, this := sites[i-1].list, sites[i].list
		if last, first := before[len(before)-1].at, this[0].at; !last.Before(first) {
			t.Errorf("site %d was asked %s before the last request to the one before it", i+1, last.Sub(first))
		}
	}
}
