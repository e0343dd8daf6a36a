package sim

import (
	"testing"

	"tiptoe/internal/outcome"
)

func Test_small_webs_are_crawled_without_a_broken_promise(t *testing.T) {
	for seed := range uint64(8) {
		r, err := Run(Config{Seed: seed, Hosts: 30, PagesPerHost: 20, Workers: 64, CheckEvery: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcomes[outcome.OK] < 500 || r.Repeated != 0 {
			t.Fatalf("seed %d: not the crawl it should be: %+v", seed, *r)
		}
	}
}

func Test_crashes_at_any_moment_lose_nothing_and_repeat_at_most_what_was_in_hand(t *testing.T) {
	const workers = 16
	for seed := range uint64(12) {
		whole, err := Run(Config{Seed: seed, Hosts: 20, PagesPerHost: 15, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		n := whole.Requests
		crashes := []int{n / 7, n / 3, n / 2, 2 * n / 3, n - 5}
		r, err := Run(Config{Seed: seed, Hosts: 20, PagesPerHost: 15, Workers: workers, Crashes: crashes, CheckEvery: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Pages != whole.Pages {
			t.Errorf("seed %d: %d URLs ended, %d without crashes", seed, r.Pages, whole.Pages)
		}
		if r.Repeated > workers*len(crashes) {
			t.Errorf("seed %d: %d requests repeated by %d crashes with %d workers", seed, r.Repeated, len(crashes), workers)
		}
	}
}

func Test_the_same_seed_gives_the_same_trace_and_another_seed_another(t *testing.T) {
	c := Config{Seed: 7, Hosts: 40, PagesPerHost: 20, Workers: 32, Crashes: []int{300}}
	a, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if a.Trace != b.Trace || a.Events != b.Events {
		t.Errorf("two runs of one seed differ: %x with %d events, %x with %d", a.Trace, a.Events, b.Trace, b.Events)
	}
	c.Seed = 8
	d, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if d.Trace == a.Trace {
		t.Error("two seeds gave one trace")
	}
}

// The simulation that the project promises: a thousand hosts, a hundred
// thousand fetches, mixed delays, 429s, failures, a crash and a resume.
func Test_a_thousand_hosts_and_a_hundred_thousand_fetches_through_a_crash(t *testing.T) {
	if testing.Short() {
		t.Skip("the long simulation is left out of -short")
	}
	r, err := Run(Config{Seed: 2026, Hosts: 1000, PagesPerHost: 55, Workers: 512, Crashes: []int{60_000}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests, %d URLs, %s of virtual time, %d events, trace %x", r.Requests, r.Pages, r.Elapsed, r.Events, r.Trace)
	if r.Requests < 100_000 {
		t.Errorf("only %d fetches", r.Requests)
	}
	for _, o := range []outcome.Outcome{outcome.OK, outcome.Redirect, outcome.NotFound, outcome.Robots, outcome.Connect} {
		if r.Outcomes[o] == 0 {
			t.Errorf("no URL ended %s", o)
		}
	}
}
