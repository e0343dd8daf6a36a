package fleettest

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

// lines lead to the stores; the test's own questions go past them.
type lines struct {
	redis, pg    *testenv.Line
	redisURL, db string
}

// onLines makes everybody who is started from now on reach the stores by lines.
func (f *fleet) onLines(up func(server io.Writer, client io.Reader)) *lines {
	f.t.Helper()
	u, err := url.Parse(f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	l := &lines{redis: testenv.NewLine(f.t, "tcp", f.redis.Addr(), up), pg: testenv.NewLine(f.t, "unix", u.Query().Get("host")+"/.s.PGSQL.5432", nil)}
	l.redisURL = "redis://" + l.redis.Addr()
	l.db = "postgres://tiptoe@" + l.pg.Addr() + u.Path + "?sslmode=disable"
	f.lines = l
	return l
}

// beyond is longer than a lease lasts.
const beyond = leaseTTL + 2*time.Second

func Test_stores_that_are_slow_and_stall_for_longer_than_a_lease_lose_nothing_and_the_status_says_why(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	const hosts, pages = 20, 15
	f := newFleet(t, false, webfarm.Config{Seed: 10, Hosts: hosts, Pages: pages, Links: 12, Latency: 5 * time.Millisecond})
	l := f.onLines(nil)
	// The governor finds out that the stores are not overloaded but far away,
	// after some twenty commits: the same, for minutes.
	args := shortOr([]string{"--workers", "64", "--no-governor"}, []string{"--workers", "64"})
	s := f.serve(args...)
	f.work(args...)
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 2 })
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(hosts, time.Minute)
	l.redis.Slow(200*time.Millisecond, 500*time.Millisecond)
	l.pg.Slow(200*time.Millisecond, 500*time.Millisecond)
	f.served(hosts*pages/4, 5*time.Minute)
	f.silent(l.redis.Stall, l.redis.Mend, func() bool { return f.waitsFor(s, j.ID, "does not answer") })
	f.served(hosts*pages/2, 5*time.Minute)
	f.silent(l.pg.Stall, l.pg.Mend, func() bool { return f.workersSay("write the ledger") })
	if !full { // the end takes a dozen answers, one after the other
		l.redis.Slow(0, 0)
		l.pg.Slow(0, 0)
	}
	f.whole(s, j.ID, pace)
}

func Test_stores_that_cannot_be_reached_for_long_lose_nothing_and_the_status_says_why(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	const hosts, pages = 20, 25
	f := newFleet(t, false, webfarm.Config{Seed: 11, Hosts: hosts, Pages: pages, Links: 12, Latency: 5 * time.Millisecond})
	l := f.onLines(nil)
	s := f.serve("--workers", "64")
	f.work("--workers", "64")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 2 })
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(hosts*pages/4, time.Minute)
	f.silent(l.redis.Cut, l.redis.Mend, func() bool { return f.waitsFor(s, j.ID, "does not answer") })
	f.served(hosts*pages/2, time.Minute)
	f.silent(l.pg.Cut, l.pg.Mend, func() bool { return f.workersSay("write the ledger") })
	f.whole(s, j.ID, pace)
}

// silent takes a store away for longer than a lease, or for a minute in the
// long form. Somebody must say why nothing happens, and nothing must happen.
func (f *fleet) silent(away, back func(), says func() bool) {
	f.t.Helper()
	away()
	gone := time.Now()
	f.until(2*beyond, "somebody says why it waits", says)
	time.Sleep(time.Until(gone.Add(beyond - time.Second)))
	stopped := f.farm.Books()
	if stopped.Missing == 0 {
		f.t.Error("the crawl was over before the leases were; this proves nothing")
	}
	time.Sleep(time.Until(gone.Add(shortOr(beyond, time.Minute))))
	if n := f.farm.Books().Requests; n != stopped.Requests {
		f.t.Errorf("%d requests reached the farm after the leases could have expired", n-stopped.Requests)
	}
	back()
}

// waitsFor reports whether a job says that it waits for something.
func (f *fleet) waitsFor(s *server, id, what string) bool {
	j, ok := f.job(s, id)
	return ok && j.WaitingFor != nil && strings.Contains(*j.WaitingFor, what)
}

// workersSay reports whether all workers say that they wait for something.
func (f *fleet) workersSay(what string) bool {
	f.t.Helper()
	for _, w := range f.list() {
		if !strings.Contains(w.Waiting, what) {
			return false
		}
	}
	return true
}

func Test_a_ledger_that_is_away_when_a_crawl_ends_fails_no_job(t *testing.T) {
	t.Parallel()
	const hosts, pages = 4, 5
	f := newFleet(t, false, webfarm.Config{Seed: 16, Hosts: hosts, Pages: pages, Links: 12, Latency: 5 * time.Millisecond})
	l := f.onLines(nil)
	s := f.serve("--workers", "16")
	j := f.order(s, fields{"delay_ms": 200})
	f.until(30*time.Second, "all pages are written", func() bool { return f.rows(1) == hosts*pages })
	l.pg.Cut()
	time.Sleep(5 * time.Second)
	l.pg.Mend()
	if j = f.ended(s, j.ID, time.Minute); j.Status != "completed" || j.Pages.Spent != hosts*pages {
		t.Errorf("the job ended as %s with %d pages: %v", j.Status, j.Pages.Spent, errorOf(j))
	}
}
