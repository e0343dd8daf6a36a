package fleetsim

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/ledger"
)

var (
	seeds = flag.Int("fleet.seeds", 30, "how many fleets are simulated")
	first = flag.Uint64("fleet.first", 0, "the first seed")
	trace = flag.Bool("fleet.trace", false, "print every event of the first seed")
)

// fleetOf is another kind of crawl for every fourth seed: one that ends by
// itself, one with a page limit, one that is slower than its workers' settings,
// one that a person stops in the middle.
func fleetOf(seed uint64) Config {
	c := Config{Seed: seed, Workers: 5, Hosts: 40, Pages: 15, Loss: 0.03, Chaos: 4 * time.Second, Settle: synctest.Wait}
	switch seed % 4 {
	case 1:
		c.Cap = 200
	case 2:
		c.Pages, c.Delay = 6, 2500*time.Millisecond
	case 3:
		c.Stop = time.Duration(5+seed%40) * time.Second
	}
	return c
}

// run simulates in virtual time.
func run(t *testing.T, c Config) (r *Result, err error) {
	synctest.Test(t, func(*testing.T) { r, err = Run(c) })
	return r, err
}

func Test_a_fleet_that_crashes_freezes_and_loses_replies_keeps_every_promise(t *testing.T) {
	var sum Result
	ends := map[ledger.Status]int{}
	for i := range uint64(*seeds) {
		c := fleetOf(*first + i)
		if *trace && i == 0 {
			c.Log = func(line string) { t.Log(line) }
		}
		r, err := run(t, c)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("seed %d: %+v", c.Seed, *r)
		sum.add(r)
		ends[r.Status]++
		// Each that dies, or loses an answer, leaves a portion of ten behind.
		if bad := r.Crashes + r.Freezes + r.Cuts + r.LostReplies; r.Short > 10*bad || r.Short > 100 {
			t.Errorf("seed %d: %d pages short of %d", c.Seed, r.Short, c.Cap)
		}
	}
	t.Logf("in all: %+v; ended %v", sum, ends)
	// A simulation in which nothing happens proves nothing.
	n := *seeds
	if n >= 10 && (sum.Crashes < n || sum.Freezes < n || sum.Cuts < n || sum.Stops < n || sum.Takeovers < n || sum.LostReplies < n || sum.Parked < n ||
		sum.HeldBack == 0 || sum.Expired < n || sum.Released < n || sum.Repeated == 0 || ends[ledger.Partial] < n/4 || ends[ledger.Completed] < n/4) {
		t.Error("too little happened")
	}
}

func (r *Result) add(o *Result) {
	r.Requests += o.Requests
	r.Pages += o.Pages
	r.Repeated += o.Repeated
	r.InDoubt += o.InDoubt
	r.Crashes += o.Crashes
	r.Freezes += o.Freezes
	r.Cuts += o.Cuts
	r.Stops += o.Stops
	r.Takeovers += o.Takeovers
	r.Parked += o.Parked
	r.Late += o.Late
	r.LostReplies += o.LostReplies
	r.HeldBack += o.HeldBack
	r.Expired += o.Expired
	r.Released += o.Released
	r.Events += o.Events
}

func Test_a_fleet_to_which_nothing_happens_repeats_nothing(t *testing.T) {
	c := fleetOf(*first)
	c.Loss, c.Chaos = 0, 0
	if *trace {
		c.Log = func(line string) { t.Log(line) }
	}
	r, err := run(t, c)
	if err != nil {
		t.Fatal(err)
	}
	// What others add is heard of while the lease goes on, not by its end.
	if r.Repeated != 0 || r.Expired != 0 || r.Requests < 800 || r.Unfinished > 10 {
		t.Errorf("not the crawl it should be: %+v", *r)
	}
}

func Test_the_same_seed_gives_the_same_trace_and_another_seed_another(t *testing.T) {
	traces := map[uint64]uint64{}
	for seed := range uint64(8) { // two of each kind
		for range 2 {
			r, err := run(t, fleetOf(seed))
			if err != nil {
				t.Fatal(err)
			}
			if of, known := traces[r.Trace]; known && of != seed {
				t.Errorf("the seeds %d and %d give one trace", of, seed)
			}
			traces[r.Trace] = seed
		}
	}
	if len(traces) != 8 {
		t.Errorf("eight seeds, each twice, gave %d traces: %v", len(traces), traces)
	}
}
