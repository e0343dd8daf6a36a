package fleettest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

func Test_DOM_1_jobs_of_two_tenants_on_the_same_hosts_share_one_pace_over_three_workers(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	const hosts, pages = 12, 15
	f := newFleet(t, false, webfarm.Config{Seed: 13, Hosts: hosts, Pages: pages, Links: 12, Latency: 20 * time.Millisecond})
	s := f.serve("--workers", "32", "--max-concurrent-crawls", "2")
	f.work("--workers", "32")
	f.work("--workers", "32")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	operator, order := f.key, fields{"delay_ms": pace.Milliseconds()}
	f.key = f.tenant(s, "ann", "enterprise")
	a := f.order(s, order)
	f.key = operator
	f.key = f.tenant(s, "bob", "enterprise")
	b := f.order(s, order)
	f.ended(s, b.ID, time.Minute)
	f.until(time.Minute, "all of both jobs is there", func() bool { return f.rows(1) == hosts*pages && f.rows(2) == hosts*pages })
	if a.Tenant == b.Tenant {
		t.Error("the jobs are not of two tenants")
	}
	mixed := number(f, `SELECT count(*) FROM (SELECT crawl_id, lag(crawl_id) OVER (PARTITION BY pace_group ORDER BY started_us) AS before FROM requests WHERE started_us IS NOT NULL) p WHERE crawl_id <> before`)
	workers := number(f, "SELECT count(DISTINCT permit & 4095) FROM requests")
	t.Logf("two jobs took turns %d times on %d hosts and %d workers, smallest gap %s", mixed, hosts, workers, f.gaps())
	if mixed < hosts*pages/2 || workers < 2 {
		t.Errorf("the jobs took turns %d times on %d workers; this proves nothing", mixed, workers)
	}
	f.arrivals(pace)
	f.oneOwner()
}

// Twelve names in three groups: those that the operator named, and the rest,
// which by address are one.
func Test_names_of_one_group_are_asked_by_one_worker_at_a_time_and_keep_one_pace(t *testing.T) {
	t.Parallel()
	const pace = 150 * time.Millisecond
	const hosts, pages = 12, 10
	f := newFleet(t, false, webfarm.Config{Seed: 14, Hosts: hosts, Pages: pages, Links: 12, Latency: 20 * time.Millisecond, Placement: webfarm.Names})
	_, port, err := net.SplitHostPort(f.farm.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for n, name := range []string{"one", "two"} {
		list := ""
		for i := range 4 {
			list += fmt.Sprintf(",h%04d.farm.test:%s", 4*n+i, port)
		}
		groups = append(groups, "--groups", name+"="+list[1:])
	}
	args := append([]string{"--workers", "32", "--group", "ip", "--resolve", f.farm.Resolve()[0]}, groups...)
	s := f.serve(args...)
	f.work(args...)
	f.work(args...)
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(hosts*pages/4, time.Minute)
	f.killOwner() // so that a group changes hands
	j = f.ended(s, j.ID, 2*time.Minute)
	for _, r := range query[struct {
		Group string
		Hosts int64
	}](f, "SELECT pace_group, count(DISTINCT substring(url FROM '//([^/]*)')) FROM requests WHERE started_us IS NOT NULL GROUP BY 1") {
		if r.Hosts != 4 {
			t.Errorf("%d names were paced together as %s", r.Hosts, r.Group)
		}
	}
	if n := number(f, "SELECT count(DISTINCT pace_group) FROM requests WHERE started_us IS NOT NULL"); n != 3 || j.Status != "completed" {
		t.Errorf("%s, %d groups", j.Status, n)
	}
	f.complete()
	t.Logf("smallest gap of a group %s", f.gaps())
	f.oneOwner()
}

// The owner of a host that asked for 15 s of quiet is killed as soon as it has
// written that down. Nobody asks before; and the pace that it learned is the
// next owner's, too.
func Test_a_retry_after_and_a_learned_pace_survive_the_death_of_the_owner(t *testing.T) {
	t.Parallel()
	const quiet = 15 * time.Second
	f := newFleet(t, false, webfarm.Config{Seed: 15, Hosts: 6, Pages: 20, Links: 12, Latency: 5 * time.Millisecond,
		Rate: webfarm.RateLimit{PerSecond: 0.2, Burst: 5, RetryAfter: quiet}})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	f.order(s, fields{"delay_ms": 200})
	throttled := func() (n int) {
		for _, h := range f.farm.Books().Hosts {
			if h.Throttled > 0 {
				n++
			}
		}
		return n
	}
	f.until(30*time.Second, "every host asks for quiet", func() bool {
		return throttled() == 6 && number(f, "SELECT count(DISTINCT pace_group) FROM requests WHERE asked_until_us IS NOT NULL") == 6
	})
	time.Sleep(settle) // the ledger knows; so does Redis, a moment later
	before := f.owners()
	for _, w := range f.workers {
		w.Kill()
	}
	moved := func() (n int) {
		for host, owner := range f.owners() {
			if owner != before[host] {
				n++
			}
		}
		return n
	}
	f.until(2*leaseTTL, "hosts change hands", func() bool { return moved() > 0 && len(f.owners()) == 6 })
	hosts := moved()
	// The first request after the quiet, and the second, which owes the first
	// what the 429 taught.
	const second = `SELECT coalesce(min(gap_owed_us), 0), count(*) FROM (SELECT a.gap_owed_us, row_number() OVER (PARTITION BY pace_group ORDER BY a.started_us) AS n
		FROM requests a JOIN (SELECT pace_group, min(asked_until_us) AS until FROM requests GROUP BY 1) b USING (pace_group) WHERE a.started_us >= b.until) p WHERE n = 2`
	var after struct{ Owed, Hosts int64 }
	f.until(quiet+15*time.Second, "all hosts are asked twice again", func() bool {
		after = query[struct{ Owed, Hosts int64 }](f, second)[0]
		return after.Hosts == 6
	})
	b := f.farm.Books()
	early := number(f, `SELECT count(*) FROM requests a JOIN requests b USING (pace_group) WHERE a.granted_us > b.ended_us AND a.started_us < b.asked_until_us`)
	t.Logf("%d of 6 hosts changed hands; %d requests during the quiet; the least gap owed afterwards is %d µs", hosts, b.DuringBlock, after.Owed)
	if b.DuringBlock > 0 || early > 0 {
		t.Errorf("%d requests reached hosts that had asked for quiet, %d by the ledger", b.DuringBlock, early)
	}
	if after.Owed < time.Second.Microseconds() {
		t.Errorf("a gap of %d µs was owed after a 429; it taught at least a second", after.Owed)
	}
	f.gaps()
}

// killOwner kills a worker that holds something, unless the server has it all.
func (f *fleet) killOwner() {
	f.t.Helper()
	owners := f.owners()
	for _, w := range f.workers {
		if slices.Contains(slices.Collect(maps.Values(owners)), w.name()) {
			w.Kill()
			return
		}
	}
	f.t.Log("the server holds everything; nothing changes hands")
}
