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

// Three workers beside a server, which works too. Every 5 s the oldest worker is
// killed and a new one comes; another one is frozen for longer than a lease in
// the middle of it.
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

	frozen, blows := f.workers[0], f.watchBlows(pages)
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	var wake <-chan time.Time
	for n := 0; n < kills || wake != nil; {
		select {
		case <-wake:
			frozen.signal(syscall.SIGCONT)
			blows.down[frozen.name()], wake = false, nil
		case <-every.C:
			if n == kills {
				continue
			}
			blows.hit(f.workers[1+n], func() { f.workers[1+n].Kill() })
			f.work("--workers", strconv.Itoa(inHand))
			if n == kills/2 {
				blows.hit(frozen, func() { frozen.signal(syscall.SIGSTOP) })
				wake = time.After(leaseTTL + 2*time.Second)
			}
			n++
		}
	}
	if j, ok := f.job(s, j.ID); !ok || j.Ended != nil {
		t.Fatal("the crawl ended before the last kill; this proves too little")
	}
	j = f.ended(s, j.ID, 10*time.Minute)
	taken := blows.end()
	if len(taken) < kills {
		t.Fatalf("%d hosts were taken over after %d kills; this proves too little", len(taken), kills)
	}
	half, worst := taken[len(taken)/2], taken[len(taken)-1]
	b := f.farm.Books()
	smallest := f.gaps()
	t.Logf("%s: %d pages of %d hosts, %d kills and a freeze; %d served twice (%d were in hand), smallest gap %s in the ledger and %.1f ms at the farm, at most %d in flight; %d times a host was taken over, half of them within %s, all within %s",
		j.Status, b.Pages, hosts, kills, b.Duplicates, blows.inHand, smallest, *b.MinGapMS, b.MaxInFlight, len(taken), half.Round(time.Millisecond), worst.Round(time.Millisecond))
	if j.Status != "completed" {
		t.Errorf("the job ended as %s", j.Status)
	}
	f.complete()
	f.inFlight(perHost)
	if b.MaxInFlight < perHost {
		t.Errorf("no host had %d requests in flight; its cap proves nothing", perHost)
	}
	if b.Duplicates > blows.inHand {
		t.Errorf("%d pages were served twice, %d were in hand at the kills and the freeze", b.Duplicates, blows.inHand)
	}
	// A heartbeat is a third of a lease, a turn half a second; the host's own
	// pace comes on top, and what this machine was late, for the turn and for
	// the request.
	if most := leaseTTL + leaseTTL/3 + 500*time.Millisecond + pace + 2*time.Duration(f.pulse.worst.Load()); worst > most {
		t.Errorf("a host of a lost worker was asked again after %s, more than %s", worst, most)
	}
	f.arrivals(pace)
}
