package acceptance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

func Test_kill_9_of_the_server_during_ten_jobs_loses_no_page_and_no_count_on_SQLite(t *testing.T) {
	t.Parallel()
	killTen(t)
}

func Test_kill_9_of_the_server_during_ten_jobs_loses_no_page_and_no_count_on_PostgreSQL(t *testing.T) {
	t.Parallel()
	killTen(t, "--database-url", testenv.Postgres(t))
}

// killTen runs ten jobs of three tenants, each on a host of its own, and kills
// the server twice in the middle of them.
func killTen(t *testing.T, flags ...string) {
	const jobs, pages, perHost, kills, workers = 10, 60, 2, 2, 64
	seed, draw := seeded(t)
	farm := newFarm(t, webfarm.Config{Seed: seed, Hosts: jobs, Pages: pages, Links: 12, Latency: 10 * time.Millisecond})
	dir := newDir(t)
	flags = append([]string{"MAX_CONCURRENT_CRAWLS=10", "MAX_PAGES_PER_CRAWL=100", "--workers", strconv.Itoa(workers),
		"--plans", "fifty=monthly-pages:50", "--resolve", farm.Resolve()[0]}, flags...)
	s := serve(t, dir, flags...)
	who := []caller{s.tenant("ann", "enterprise", 1), s.tenant("bob", "enterprise", 1), s.tenant("cal", "fifty", 1)}
	type running struct {
		client.Job
		tenant int
		want   string
		most   int64 // pages that it may spend
	}
	var all []running
	for n, seed := range farm.Seeds() {
		r := running{tenant: n % 2, want: "completed true", most: pages}
		f := fields{"url": seed, "scope": "host", "delay_ms": 30, "per_host": perHost, "pages": 500}
		switch n {
		case 6, 7: // their own budget ends them
			r.want, r.most = "partial true: Budget exceeded: page limit (30)", 30
			f["pages"] = 30
		case 8: // 40 of the month's 50
			r.tenant, r.want, r.most = 2, "partial true: Budget exceeded: page limit (40)", 40
			f["pages"] = 40
		case 9: // and what is left of it
			r.tenant, r.want, r.most = 2, "partial true: Usage limit: 10 pages were left of this month's 50 (requested: 500)", 10
		}
		r.Job = who[r.tenant].order(f)
		all = append(all, r)
	}

	for range kills {
		before := asked(farm)
		s.until(20*time.Second, "ten jobs are under way", func() bool { return asked(farm) > before+20 })
		time.Sleep(time.Duration(draw.Int64N(int64(300 * time.Millisecond))))
		if !s.Kill() {
			t.Fatalf("it had ended by itself; tiptoe said:\n%s", s.Stderr)
		}
		s = s.again(t, dir, flags...)
		for i := range who {
			who[i].s = s
		}
	}

	spent := make([]int64, len(who))
	books := farm.Books()
	for n := range all {
		r := &all[n]
		r.Job = who[r.tenant].ended(r.ID, 60*time.Second)
		spent[r.tenant] += r.Pages.Spent
		if said(r.Job) != r.want || r.Pages.Spent != r.most {
			t.Errorf("job %d spent %d of %d pages and ended as %q, not %q", n, r.Pages.Spent, r.most, said(r.Job), r.want)
		}
		books = farm.Books()
		h := books.Hosts[n]
		if h.Pages+h.Duplicates < r.most {
			t.Errorf("job %d: %d page requests for %d pages", n, h.Pages+h.Duplicates, r.most)
		}
		if r.Status != "completed" {
			continue
		}
		found := set(nil)
		for u, o := range who[r.tenant].pages(r.ID) {
			if o == outcome.OK.String() {
				found[u] = true
			}
		}
		expected := set(nil)
		for u := range farm.URLs() {
			if strings.HasPrefix(u, farm.Seeds()[n]) {
				expected[u] = true
			}
		}
		sameSet(t, fmt.Sprintf("job %d", n), "the farm", found, expected)
	}
	// In flight, or fetched and not written yet: a disk that stalls makes that more.
	if books.Duplicates > kills*workers {
		t.Errorf("%d pages were asked for again; %d kills with %d in hand allow %d", books.Duplicates, kills, workers, kills*workers)
	}
	t.Logf("%d kills during %d jobs: %d page requests, %d of them a second time", kills, jobs, books.Pages+books.Duplicates, books.Duplicates)
	for i, c := range who {
		if u := c.usage(); u.Used != spent[i] || u.Reserved != 0 {
			t.Errorf("tenant %d spent %d pages, the month says %+v", i, spent[i], u)
		}
	}
}

func Test_a_stopped_server_goes_on_from_the_frontier_and_asks_for_no_page_twice(t *testing.T) {
	t.Parallel()
	const pages = 60
	farm := newFarm(t, webfarm.Config{Seed: 6, Hosts: 2, Pages: pages, Links: 12, Latency: 10 * time.Millisecond})
	dir := newDir(t)
	flags := []string{"MAX_CONCURRENT_CRAWLS=2", "MAX_PAGES_PER_CRAWL=100", "--resolve", farm.Resolve()[0]}
	s := serve(t, dir, flags...)
	var jobs []client.Job
	for _, seed := range farm.Seeds() {
		jobs = append(jobs, s.operator().order(fields{"url": seed, "scope": "host", "delay_ms": 20, "pages": 100}))
	}
	waits := s.operator().order(fields{"url": farm.Seeds()[0], "pages": 1})
	for range 3 {
		before := asked(farm)
		s.until(20*time.Second, "it goes on", func() bool { return asked(farm) > before+15 })
		s.stop()
		if asked(farm) == 2*pages {
			t.Fatal("it was done before it was stopped")
		}
		s = s.again(t, dir, flags...)
	}
	for n, j := range jobs {
		if j = s.operator().ended(j.ID, 30*time.Second); said(j) != "completed true" || j.Pages.Spent != pages {
			t.Errorf("job %d spent %d pages and ended as %s", n, j.Pages.Spent, said(j))
		}
	}
	if j := s.operator().ended(waits.ID, 30*time.Second); j.Started.Before(*s.operator().job(jobs[0].ID).Started) {
		t.Errorf("the job that waited overtook: %+v", j)
	}
	if b := farm.Books(); b.Missing != 0 || b.Duplicates != 1 { // the last job's only page is the first's
		t.Errorf("%d pages missing, %d requests for pages a second time", b.Missing, b.Duplicates)
	}
}
