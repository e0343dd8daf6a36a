package fleettest

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// inHand is how many URLs a worker may have in flight or not yet written down.
const inHand = 32

func Test_workers_that_are_killed_and_frozen_lose_no_page_and_break_no_pace(t *testing.T) {
	t.Parallel()
	const pace, perHost = 400 * time.Millisecond, 2
	hosts, pages, kills := shortOr(60, 200), shortOr(90, 400), shortOr(3, 24)
	f := newFleet(t, false, webfarm.Config{Seed: 1, Hosts: hosts, Pages: pages, Links: 12, Latency: 300 * time.Millisecond, Jitter: 400 * time.Millisecond})
	s := f.serve("--workers", strconv.Itoa(inHand))
	for range 3 {
		f.work("--workers", strconv.Itoa(inHand))
	}
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 4 })
	j := f.order(s, fields{"delay_ms": pace.Milliseconds(), "per_host": perHost})
	f.served(int64(hosts), 30*time.Second)

	frozen := f.workers[0]
	var takeover time.Duration
	for n := range kills {
		time.Sleep(5 * time.Second)
		victim := f.workers[len(f.workers)-1]
		victim.kill()
		at := time.Now()
		if n == 0 {
			takeover = f.takenOver(at, pace)
		}
		f.work("--workers", strconv.Itoa(inHand))
		if n == kills/2 {
			frozen.signal(syscall.SIGSTOP)
			time.Sleep(leaseTTL + 2*time.Second)
			frozen.signal(syscall.SIGCONT)
		}
	}
	if j, ok := f.job(s, j.ID); !ok || j.Ended != nil {
		t.Fatal("the crawl ended before the last kill; this proves too little")
	}
	j = f.ended(s, j.ID, 10*time.Minute)
	b := f.farm.Books()
	smallest := f.gaps()
	t.Logf("%s: %d pages of %d hosts, %d kills and a freeze; %d served twice, smallest gap %s in the ledger and %.1f ms at the farm, at most %d in flight, taken over within %s",
		j.Status, b.Pages, hosts, kills, b.Duplicates, smallest, *b.MinGapMS, b.MaxInFlight, takeover.Round(time.Millisecond))
	if j.Status != "completed" {
		t.Errorf("the job ended as %s", j.Status)
	}
	f.complete()
	f.inFlight(perHost)
	if b.MaxInFlight < perHost {
		t.Errorf("no host had %d requests in flight; its cap proves nothing", perHost)
	}
	if most := int64((kills + 1) * inHand); b.Duplicates > most {
		t.Errorf("%d pages were served twice, at most %d were in hand at the kills and the freeze", b.Duplicates, most)
	}
	f.arrivals(pace)
}

// takenOver measures how long after a kill the hosts of the dead worker are
// fetched again: until no host with work left has been silent for long.
func (f *fleet) takenOver(killed time.Time, pace time.Duration) time.Duration {
	f.t.Helper()
	before := map[string]int64{}
	for _, h := range f.farm.Books().Hosts {
		before[h.Host] = h.Requests
	}
	f.until(leaseTTL+leaseTTL/3+5*time.Second, "every host of the dead worker is fetched again", func() bool {
		for _, h := range f.farm.Books().Hosts {
			if h.Requests == before[h.Host] && h.Pages < f.farm.Books().Expected/int64(len(before)) {
				return false
			}
		}
		return true
	})
	took := time.Since(killed)
	// One heartbeat is a third of a lease; a turn and the host's own pace come on top.
	if most := leaseTTL + leaseTTL/3 + time.Second + pace; took > most {
		f.t.Errorf("hosts of a killed worker were fetched again after %s, more than %s", took, most)
	}
	return took
}
