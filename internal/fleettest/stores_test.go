package fleettest

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

func Test_redis_that_is_restarted_and_killed_during_a_crawl_loses_nothing(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	hosts, pages, times := shortOr(50, 100), shortOr(40, 200), shortOr(2, 10)
	f := newFleet(t, false, webfarm.Config{Seed: 2, Hosts: hosts, Pages: pages, Links: 12, Latency: 5 * time.Millisecond})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	f.work("--workers", "16")
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	for n := range times {
		f.served(int64(hosts*pages*(n+1)/(times+2)), 5*time.Minute)
		if n%2 == 0 {
			f.redis.Stop(t)
		} else {
			f.redis.Kill(t)
		}
		time.Sleep(500 * time.Millisecond) // so that everybody meets it closed
		f.redis.Start(t)
	}
	if j, ok := f.job(s, j.ID); !ok || j.Ended != nil {
		t.Fatal("the crawl ended before the last restart; this proves too little")
	}
	f.whole(s, j.ID, pace)
}

// whole waits for the end of an undisturbed web's crawl and demands that
// nothing is lost and no pace broken.
func (f *fleet) whole(s *server, id string, pace time.Duration) {
	f.t.Helper()
	j := f.ended(s, id, 5*time.Minute)
	b := f.farm.Books()
	f.t.Logf("%s: %d pages, %d served twice, smallest gap %s in the ledger and %.1f ms at the farm", j.Status, b.Pages, b.Duplicates, f.gaps(), *b.MinGapMS)
	if j.Status != "completed" {
		f.t.Errorf("the job ended as %s", j.Status)
	}
	f.complete()
	f.inFlight(2)
	f.arrivals(pace)
}

// freezeRedis stops it without a word, until awake or the end of the test.
func (f *fleet) freezeRedis() (awake func()) {
	f.t.Helper()
	pid := f.redis.Pid(f.t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	awake = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // it may be gone with the test
	f.t.Cleanup(awake)
	return awake
}

func Test_without_redis_nothing_is_fetched_once_leases_could_have_expired_and_the_status_says_why(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f := newFleet(t, false, webfarm.Config{Seed: 3, Hosts: 8, Pages: 50, Links: 12, Latency: 5 * time.Millisecond})
	// More hands than are full before the leases end. Several things stop a
	// worker then: leases, windows that cannot be read, commits that wait. This
	// sees that together they do; fleetsim takes the leases apart.
	s := f.serve("--workers", "1024")
	f.work("--workers", "1024")
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(40, time.Minute)
	awake := f.freezeRedis()

	// No renewal was sent after this moment, so by now everybody has stopped.
	time.Sleep(leaseTTL)
	stopped := f.farm.Books().Requests
	if stopped >= int64(8*50) {
		t.Fatal("the crawl was over before the leases were; this proves nothing")
	}
	f.until(10*time.Second, "the status says why it waits", func() bool {
		j, ok := f.job(s, j.ID)
		return ok && j.WaitingFor != nil && strings.Contains(*j.WaitingFor, "does not answer")
	})
	time.Sleep(shortOr(2*time.Second, time.Minute))
	if n := f.farm.Books().Requests; n != stopped {
		t.Errorf("%d requests reached the farm after the leases could have expired", n-stopped)
	}
	awake()
	f.whole(s, j.ID, pace)
}

func Test_postgres_that_is_restarted_and_killed_during_a_crawl_loses_nothing(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	hosts, pages := 30, shortOr(25, 250)
	f := newFleet(t, true, webfarm.Config{Seed: 4, Hosts: hosts, Pages: pages, Links: 12, Latency: 5 * time.Millisecond})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	for n, end := range []func(testing.TB){f.pg.Stop, f.pg.Kill} {
		f.served(int64(hosts*pages*(n+1)/4), 5*time.Minute)
		end(t)
		time.Sleep(time.Second)
		f.pg.Start(t)
	}
	f.whole(s, j.ID, pace)
}

func Test_postgres_that_fails_over_to_its_replica_during_a_crawl_loses_nothing_and_the_status_says_why(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f := newFleet(t, true, webfarm.Config{Seed: 13, Hosts: 20, Pages: 15, Links: 12, Latency: 5 * time.Millisecond})
	replica := f.pg.Replica(t, true)
	f.db = f.pg.Either(replica, f.db)
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(80, time.Minute)
	f.pg.Kill(t)
	f.until(20*time.Second, "somebody says that it waits for the ledger", func() bool {
		out, err := exec.Command(binary, "workers", "--redis-url", f.redis.URL()).CombinedOutput()
		return err == nil && strings.Contains(string(out), "write the ledger")
	})
	replica.Promote(t)
	f.whole(s, j.ID, pace)
}
