package fleettest

import (
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

const fiftyOf500 = "Safety limit: Maximum 50 pages per crawl (requested: 500)"

func Test_SAF_4_three_workers_at_a_cap_of_50_make_exactly_50_page_requests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, webfarm.Config{Seed: 6, Hosts: 12, Pages: 60, Links: 12, Latency: 700 * time.Millisecond, Jitter: 200 * time.Millisecond})
	s := f.serve("--workers", "16", "--max-pages-per-crawl", "50", "--max-concurrent-crawls", "2",
		"--plans", "small=pages:500,crawls:2,per-host:10,schedules:1,monthly-pages:130")
	f.work("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	j := f.order(s, fields{"pages": 500, "delay_ms": 50})
	j = f.ended(s, j.ID, time.Minute)
	b := f.farm.Books()
	if n := b.Pages + b.Duplicates; n != 50 || j.Status != "partial" || errorOf(j) != fiftyOf500 || j.Pages.Spent != 50 {
		t.Errorf("%d page requests, %s, %v, %d spent", n, j.Status, errorOf(j), j.Pages.Spent)
	}
	if n := number(f, "SELECT count(DISTINCT permit & 4095) FROM requests"); n < 2 {
		t.Errorf("%d workers took part; this proves nothing", n)
	}

	// A worker that is killed takes pages with it that it had used, or not yet:
	// they stay spent. At most 16 were in its hands, and a twelfth of the cap,
	// a portion of the budget, was still to be used.
	f.farm.Reset()
	j = f.order(s, fields{"pages": 500, "delay_ms": 1000})
	f.served(15, 30*time.Second)
	f.workers[0].Kill()
	j = f.ended(s, j.ID, time.Minute)
	rows, asked := f.rows(2), f.pageRequests()
	t.Logf("with a worker killed: %s, %d rows, %d page requests", j.Status, rows, asked)
	if asked > 50 || rows > asked || rows < 50-16-50/12 || j.Status != "partial" || errorOf(j) != fiftyOf500 || j.Pages.Spent != rows {
		t.Errorf("with a worker killed: %d rows, %d page requests, %s, %v, %d spent", rows, asked, j.Status, errorOf(j), j.Pages.Spent)
	}
}

func Test_SAF_8_a_capped_job_that_is_paused_and_resumed_in_a_fleet_has_no_second_budget(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, webfarm.Config{Seed: 6, Hosts: 12, Pages: 60, Links: 12, Latency: 10 * time.Millisecond})
	s := f.serve("--workers", "16", "--max-pages-per-crawl", "50")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 2 })
	j := f.order(s, fields{"pages": 500, "delay_ms": 1000})
	f.served(20, 30*time.Second)
	f.post(s, "/v1/jobs/"+j.ID+"/pause", nil)
	f.until(20*time.Second, "the job is paused", func() bool { j, ok := f.job(s, j.ID); return ok && j.Status == "paused" })
	before := f.pageRequests()
	f.post(s, "/v1/jobs/"+j.ID+"/resume", nil)
	j = f.ended(s, j.ID, time.Minute)
	rows, asked := f.rows(1), f.pageRequests()
	if before >= 50 {
		t.Errorf("%d page requests before the pause; this proves nothing", before)
	}
	if asked != 50 || rows != 50 || j.Status != "partial" || j.Pages.Spent != 50 {
		t.Errorf("%d page requests, %d rows, %s, %d spent", asked, rows, j.Status, j.Pages.Spent)
	}
}

// With a quota of 100 a first job of 60 pages and a second one, which gets the
// other 40, leave nothing for a third. What a killed worker takes with it is
// not charged, and can be had by a later job.
func Test_a_monthly_quota_is_never_overspent_by_jobs_on_three_workers_of_which_one_is_killed(t *testing.T) {
	t.Parallel()
	const quota = 100
	f := newFleet(t, false, webfarm.Config{Seed: 8, Hosts: 12, Pages: 60, Links: 12, Latency: 10 * time.Millisecond, Jitter: 20 * time.Millisecond})
	s := f.serve("--workers", "16", "--max-pages-per-crawl", "60", "--max-concurrent-crawls", "3",
		"--plans", "small=pages:500,crawls:3,per-host:10,schedules:1,monthly-pages:100")
	f.work("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	f.key = f.tenant(s, "ann", "small")
	order := fields{"pages": 500, "delay_ms": 1000, "urls": f.farm.Seeds(), "profile": "polite", "scope": "host", "seeding": "none"}
	a, b := f.order(s, order), f.order(s, order)
	if a.Pages.Reserved != 60 || b.Pages.Reserved != 40 {
		t.Errorf("%d and %d pages are reserved", a.Pages.Reserved, b.Pages.Reserved)
	}
	if status, body, err := f.ask(s, "POST", "/v1/jobs", order); err != nil || status < 400 || status > 499 {
		t.Errorf("a third job was answered with %d %s %v", status, body, err)
	}
	f.until(30*time.Second, "both jobs are at work", func() bool { return f.pageRequests() >= 30 })
	f.workers[0].Kill()
	a, b = f.ended(s, a.ID, time.Minute), f.ended(s, b.ID, time.Minute)
	agree := func() (used int64) {
		t.Helper()
		var u client.Usage
		f.get(s, "/v1/usage", &u)
		rows := number(f, "SELECT count(*) FROM pages WHERE kind = 'page' AND outcome = 'ok'")
		spent := number(f, "SELECT sum(spent) FROM jobs")
		t.Logf("%d pages used, %d rows, %d spent, %d page requests", u.Used, rows, spent, f.pageRequests())
		if u.Used != rows || spent != rows || u.Reserved != 0 || u.Left == nil || *u.Left != quota-u.Used || u.Used > quota {
			t.Errorf("%+v, %d rows, %d spent", u, rows, spent)
		}
		return u.Used
	}
	used, asked := agree(), f.pageRequests()
	if a.Status != "partial" || b.Status != "partial" || asked > quota {
		t.Errorf("%s and %s, %d page requests", a.Status, b.Status, asked)
	}
	if used < quota { // what is left can be had, and no more
		c := f.order(s, order)
		f.ended(s, c.ID, time.Minute)
		if more := f.pageRequests() - asked; c.Pages.Reserved != quota-used || more != c.Pages.Reserved || agree() != quota {
			t.Errorf("%d of %d pages were left, %d reserved, %d requests made", quota-used, quota, c.Pages.Reserved, more)
		}
	}
}
