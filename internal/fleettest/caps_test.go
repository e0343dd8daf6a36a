package fleettest

import (
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

const fiftyOf500 = "Safety limit: Maximum 50 pages per crawl (requested: 500)"

func Test_SAF_4_three_workers_at_a_cap_of_50_make_exactly_50_page_requests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, webfarm.Config{Seed: 6, Hosts: 12, Pages: 60, Links: 12, Latency: 10 * time.Millisecond, Jitter: 20 * time.Millisecond})
	s := f.serve("--workers", "16", "--max-pages-per-crawl", "50", "--max-concurrent-crawls", "2",
		"--plans", "small=pages:500,crawls:2,per-host:10,schedules:1,monthly-pages:130")
	f.work("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	j := f.order(s, fields{"pages": 500, "delay_ms": 50})
	j = f.ended(s, j.ID, time.Minute)
	b := f.farm.Books()
	if n := b.Pages + b.Duplicates; n != 50 || j.Status != "partial" || j.Error == nil || *j.Error != fiftyOf500 || j.Pages.Spent != 50 {
		t.Errorf("%d page requests, %s, %v, %d spent", n, j.Status, j.Error, j.Pages.Spent)
	}
	if n := number(f, "SELECT count(DISTINCT permit & 4095) FROM requests"); n < 2 {
		t.Errorf("%d workers took part; this proves nothing", n)
	}

	// With a worker killed in the middle its pages are found again, and no
	// more of them than there are. What it had in flight was served and has no
	// row: at most its 16 hands.
	f.farm.Reset()
	j = f.order(s, fields{"pages": 500, "delay_ms": 1000})
	f.served(15, 30*time.Second)
	f.workers[0].kill()
	j = f.ended(s, j.ID, time.Minute)
	rows := number(f, "SELECT count(*) FROM pages WHERE kind = 'page' AND outcome = 'ok' AND crawl_id = (SELECT max(crawl_id) FROM pages)")
	b = f.farm.Books()
	t.Logf("with a worker killed: %s, %d rows, %d pages served, %d of them twice", j.Status, rows, b.Pages, b.Duplicates)
	if rows > 50 || rows < 50-16 || j.Status != "partial" || b.Pages > 50+16 {
		t.Errorf("with a worker killed: %d rows, %d pages served, %s", rows, b.Pages, j.Status)
	}
}
