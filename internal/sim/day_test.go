package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

// The hosts of one day. Everything below is read from their own books.
const (
	patient  = "crawl-delay.sim.test"
	strict   = "retry-after.sim.test"
	narrow   = "limit.sim.test"
	fallen   = "outage.sim.test"
	departed = "gone.sim.test"
	ordinary = "ordinary.sim.test"
)

func day(t *testing.T) *Result {
	t.Helper()
	r, err := Run(Config{Seed: 24, Workers: 64, Plan: []Plan{
		{Name: patient, Pages: 4500, Latency: 80 * time.Millisecond, CrawlDelay: 10 * time.Second},
		{Name: strict, Pages: 1000, Latency: 50 * time.Millisecond, Limit: 800 * time.Millisecond, RetryAfter: 10 * time.Minute},
		{Name: narrow, Pages: 1500, Latency: 50 * time.Millisecond, Limit: 700 * time.Millisecond},
		{Name: fallen, Pages: 1500, Latency: 50 * time.Millisecond, Down: [2]time.Duration{10 * time.Minute, 25 * time.Minute}},
		{Name: departed, Pages: 1500, Latency: 50 * time.Millisecond, Down: [2]time.Duration{10 * time.Minute, 1000 * time.Hour}},
		{Name: ordinary, Pages: 1000, Latency: 50 * time.Millisecond},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Elapsed < 24*time.Hour {
		t.Errorf("the day had only %s", r.Elapsed)
	}
	t.Logf("%d requests in %s", r.Requests, r.Elapsed)
	return r
}

func Test_a_whole_day_from_the_hosts_own_books(t *testing.T) {
	r := day(t)
	t.Run("LIM1 a Crawl-delay of ten seconds is kept all day and robots.txt is read once a day", func(t *testing.T) {
		all := r.Arrivals[patient]
		least, mean := gaps(all)
		if least < 10*time.Second || mean > 10200*time.Millisecond {
			t.Errorf("gaps of %s at least and %s on average", least, mean)
		}
		if n := count(all, func(a Arrival) bool { return a.Path == "/robots.txt" }); n != 2 {
			t.Errorf("robots.txt was read %d times in %s", n, span(all))
		}
	})
	t.Run("no request comes while a Retry-After of ten minutes runs", func(t *testing.T) {
		all := r.Arrivals[strict]
		refused := 0
		for i, a := range all[:len(all)-1] {
			if a.Status != 429 {
				continue
			}
			refused++
			// One more request may have been on its way already.
			next := all[i+1]
			if next.At-a.At < time.Second && i+2 < len(all) {
				next = all[i+2]
			}
			if next.At-a.At < 10*time.Minute {
				t.Errorf("refused at %s, asked again at %s", a.At, next.At)
			}
		}
		if refused == 0 || refused > 12 {
			t.Errorf("refused %d times", refused)
		}
	})
	t.Run("LIM4 LIM5 probes find the limit and then leave it alone", func(t *testing.T) {
		all := r.Arrivals[narrow]
		settled := all[len(all)/2:]
		_, mean := gaps(settled)
		refused := count(all, is(429))
		t.Logf("refused %d times, then one request in %s", refused, mean)
		if refused < 2 || refused > 12 {
			t.Errorf("refused %d times", refused)
		}
		if n := count(settled, is(429)); n != 0 {
			t.Errorf("refused %d times in the second half", n)
		}
		if mean > 700*time.Millisecond*100/85 {
			t.Errorf("one request in %s, the host permits one in 700ms", mean)
		}
	})
	t.Run("LAY5 the breaker doubles through an outage and lets go after it", func(t *testing.T) {
		all := r.Arrivals[fallen]
		waits := breaker(t, all)
		if len(waits) != 9 {
			t.Errorf("asked %d times in a quarter of an hour: %s", len(waits), waits)
		}
		after := all[slices.IndexFunc(all, is(0))+len(waits):]
		if count(after, is(200)) < 100 {
			t.Errorf("%d requests after the outage", len(after))
		}
		if _, mean := gaps(after); mean > 500*time.Millisecond {
			t.Errorf("one request in %s after the outage", mean)
		}
	})
	t.Run("LAY6 a host that stays away is parked at ten", func(t *testing.T) {
		all := r.Arrivals[departed]
		waits := breaker(t, all)
		if len(waits) != 10 || all[len(all)-1].Status != 0 {
			t.Errorf("asked %d times in vain: %s", len(waits), waits)
		}
		if r.Outcomes[outcome.Parked] < 100 {
			t.Errorf("%d URLs are accounted for as parked", r.Outcomes[outcome.Parked])
		}
	})
	t.Run("HST5 the ordinary host beside them is crawled at the base delay", func(t *testing.T) {
		all := r.Arrivals[ordinary]
		if least, mean := gaps(all); least < delayMin || mean > 400*time.Millisecond {
			t.Errorf("gaps of %s at least and %s on average", least, mean)
		}
	})
}

// breaker returns the waits after each failure of the one outage a host had,
// each of which must be twice the one before, in seconds: 2, 4, 8, ...
func breaker(t *testing.T, all []Arrival) (waits []string) {
	t.Helper()
	from := slices.IndexFunc(all, is(0))
	if from < 0 {
		t.Fatal("there was no outage")
	}
	owed := 2 * time.Second
	for i := from; i < len(all) && all[i].Status == 0; i++ {
		if i+1 == len(all) {
			return append(waits, "for ever")
		}
		wait := all[i+1].At - all[i].At
		if wait < owed || wait > owed*5/4 {
			t.Errorf("failure %d was followed by a wait of %s, owed %s", i-from+1, wait, owed)
		}
		waits, owed = append(waits, fmt.Sprint(wait.Round(time.Second))), 2*owed
	}
	return waits
}

func is(status int) func(Arrival) bool { return func(a Arrival) bool { return a.Status == status } }

func count(all []Arrival, f func(Arrival) bool) (n int) {
	for _, a := range all {
		if f(a) {
			n++
		}
	}
	return n
}

func gaps(all []Arrival) (least, mean time.Duration) {
	least = time.Hour
	for i := 1; i < len(all); i++ {
		least = min(least, all[i].At-all[i-1].At)
	}
	return least, span(all) / time.Duration(len(all)-1)
}

func span(all []Arrival) time.Duration { return all[len(all)-1].At - all[0].At }
