package politeness

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/outcome"
)

func Test_LIM1_the_gap_is_the_largest_of_its_parts_and_says_which(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    State
		r    Rules
		min  time.Duration
		why  Why
	}{
		{"base", State{}, basic, 200 * time.Millisecond, WhyBase},
		{"Crawl-delay", State{CrawlDelay: 2 * time.Second, Learned: time.Second}, basic, 2 * time.Second, WhyCrawlDelay},
		{"learned", State{CrawlDelay: 2 * time.Second, Learned: 3 * time.Second}, basic, 3 * time.Second, WhyLearned},
		{"latency off", State{Latency: 9 * time.Second}, basic, 200 * time.Millisecond, WhyBase},
		{"latency on [NXT-3]", State{Latency: 4 * time.Second, Learned: time.Second}, Rules{LatencyFactor: 2}, 8 * time.Second, WhyLatency},
		{"latency is bounded", State{Latency: 4 * time.Hour}, Rules{LatencyFactor: 2}, LearnCap, WhyLatency},
	} {
		if got := tc.s.MinGap(tc.r); got != tc.min {
			t.Errorf("%s: least gap %s, want %s", tc.name, got, tc.min)
		}
		if _, why := tc.s.Gap(tc.r, 0); why != tc.why {
			t.Errorf("%s: because of %s, want %s", tc.name, why, tc.why)
		}
	}
}

func Test_HST5_the_base_gap_is_drawn_from_its_range(t *testing.T) {
	var s State
	lo, _ := s.Gap(basic, 0)
	mid, _ := s.Gap(basic, 0.5)
	hi, _ := s.Gap(basic, 0.9999)
	if lo != 200*time.Millisecond || mid != 350*time.Millisecond || hi < 499*time.Millisecond || hi >= 500*time.Millisecond {
		t.Errorf("%s, %s, %s", lo, mid, hi)
	}
}

func Test_a_crawl_delay_is_honoured_in_full_and_clamped_at_a_minute(t *testing.T) {
	var s State
	if s.SetCrawlDelay(1500*time.Millisecond) || s.CrawlDelay != 1500*time.Millisecond {
		t.Errorf("%s", s.CrawlDelay)
	}
	if s.SetCrawlDelay(60*time.Second) || s.CrawlDelay != 60*time.Second {
		t.Errorf("%s", s.CrawlDelay)
	}
	if !s.SetCrawlDelay(90*time.Second) || s.CrawlDelay != 60*time.Second {
		t.Errorf("%s, or the clamp was not said", s.CrawlDelay)
	}
	if s.SetCrawlDelay(-time.Second); s.CrawlDelay != 0 {
		t.Errorf("%s", s.CrawlDelay)
	}
}

func Test_CON1_one_slot_less_for_every_five_seconds_and_CON2_back_when_it_falls(t *testing.T) {
	r := Rules{DelayMin: time.Second, DelayMax: time.Second, PerHost: 4}
	for _, tc := range []struct {
		learned time.Duration
		want    int
	}{{0, 4}, {time.Second, 4}, {5900 * time.Millisecond, 4}, {6 * time.Second, 3}, {11 * time.Second, 2}, {16 * time.Second, 1}, {60 * time.Second, 1}, {6 * time.Second, 3}, {0, 4}} {
		s := State{Learned: tc.learned}
		if got := s.Cap(r); got != tc.want {
			t.Errorf("learned %s: %d in flight, want %d", tc.learned, got, tc.want)
		}
	}
}

func Test_NXT6_the_window_grows_one_by_one_and_halves(t *testing.T) {
	k := newTalk()
	k.r = Rules{PerHost: 20, Adaptive: true}
	if got := k.s.Cap(k.r); got != 2 {
		t.Fatalf("starts with %d", got)
	}
	slow := func(d time.Duration) func(*Answer) { return func(a *Answer) { a.Latency = d } }
	last := 2
	for range 400 {
		k.hear(outcome.OK, 200, slow(100*time.Millisecond))
		if got := k.s.Cap(k.r); got < last || got > last+1 {
			t.Fatalf("from %d to %d", last, got)
		} else {
			last = got
		}
	}
	if last != 20 {
		t.Fatalf("grew to %d, want 20", last)
	}
	for name, bad := range map[string]func(*talk){
		"429":         func(k *talk) { k.hear(outcome.Throttled, 429, slow(100*time.Millisecond)) },
		"500":         func(k *talk) { k.hear(outcome.ServerError, 500, slow(100*time.Millisecond)) },
		"slow answer": func(k *talk) { k.hear(outcome.OK, 200, slow(time.Second)) },
	} {
		c := *k
		bad(&c)
		if got := c.s.Window; got != 10 {
			t.Errorf("%s: window %g, want 10", name, got)
		}
	}
	for range 10 {
		k.hear(outcome.ServerError, 500)
	}
	if got := k.s.Cap(k.r); got != 1 {
		t.Errorf("after ten failures %d in flight", got)
	}
}

func Test_a_restart_owes_a_full_gap_from_now(t *testing.T) {
	s := State{Learned: 4 * time.Second, NextAvailable: t0.Add(-time.Hour)}
	s.AfterRestart(t0, basic, 0)
	if got := s.NextAvailable.Sub(t0); got < 4*time.Second {
		t.Errorf("only %s owed", got)
	}
	s = State{BlockedUntil: t0.Add(20 * time.Minute)}
	s.AfterRestart(t0, basic, 0)
	if s.BlockedUntil != t0.Add(20*time.Minute) {
		t.Error("a restart forgot Retry-After")
	}
}

func Test_times_from_a_clock_that_ran_ahead_are_clamped(t *testing.T) {
	far := t0.Add(1000 * time.Hour)
	s := State{NextAvailable: far, BlockedUntil: far, Settled: far, ChangedAt: far, FailedAt: far, Updated: far, LastSuccess: far}
	s.Clamp(t0)
	if s.NextAvailable != t0.Add(LearnCap) || s.BlockedUntil != t0.Add(MaxBlock) {
		t.Errorf("next %s, blocked %s", s.NextAvailable.Sub(t0), s.BlockedUntil.Sub(t0))
	}
	for i, at := range []time.Time{s.Settled, s.ChangedAt, s.FailedAt, s.Updated, s.LastSuccess} {
		if at.After(t0) {
			t.Errorf("time %d is still in the future", i)
		}
	}
	// A ChangedAt in the future would make every later answer look old.
	s.Finished(t0.Add(time.Second), basic, Answer{Outcome: outcome.Throttled, Status: 429, Started: t0, Tries: 1}, 0)
	if s.Learned == 0 {
		t.Error("the host can teach nothing any more")
	}
}

func Test_what_was_learned_halves_every_week_and_blocks_do_not(t *testing.T) {
	block := t0.Add(8 * 24 * time.Hour)
	s := State{Learned: 8 * time.Second, Safe: 8 * time.Second, Floor: 4 * time.Second, Failing: 2 * time.Second, FailingKnown: true,
		BlockedUntil: block, Updated: t0, Failures: 9, Settled: t0}
	s.Decay(t0.Add(7*24*time.Hour), HalfLife)
	if s.Learned != 4*time.Second || s.Safe != 4*time.Second || s.Floor != 2*time.Second || s.Failing != time.Second {
		t.Errorf("learned %s safe %s floor %s failing %s", s.Learned, s.Safe, s.Floor, s.Failing)
	}
	if s.BlockedUntil != block || s.Failures != 0 || !s.Settled.IsZero() {
		t.Errorf("blocked until %s, failures %d, settled %s", s.BlockedUntil, s.Failures, s.Settled)
	}
	whole, parts := State{Learned: time.Minute, Updated: t0}, State{Learned: time.Minute, Updated: t0}
	whole.Decay(t0.Add(14*24*time.Hour), HalfLife)
	for i := range 14 {
		parts.Decay(t0.Add(time.Duration(i+1)*24*time.Hour), HalfLife)
	}
	if d := (whole.Learned - parts.Learned).Abs(); d > time.Millisecond {
		t.Errorf("two weeks at once leave %s, day by day %s", whole.Learned, parts.Learned)
	}
	fresh := State{Learned: time.Second}
	fresh.Decay(t0, HalfLife)
	if fresh.Learned != time.Second {
		t.Error("a state that was never updated decayed")
	}
}

func Test_DOM3_a_state_owes_a_wait_until_nothing_would_be_lost(t *testing.T) {
	for name, s := range map[string]State{
		"pace": {NextAvailable: t0.Add(1)}, "block": {BlockedUntil: t0.Add(1)}, "learned": {Learned: 1},
		"failures": {Failures: 1}, "denied": {Denied: 1},
	} {
		if !s.OwesWait(t0) {
			t.Errorf("%s is owed nothing", name)
		}
	}
	if (&State{NextAvailable: t0, BlockedUntil: t0, LastSuccess: t0, Latency: time.Second}).OwesWait(t0) {
		t.Error("a host that owes nothing can never be forgotten")
	}
}

func Test_jitter_is_never_below_what_is_owed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(90*time.Second)).Draw(rt, name))
		}
		lo := d("base")
		s := State{Learned: min(d("learned"), LearnCap), Latency: d("latency")}
		s.SetCrawlDelay(d("crawl-delay"))
		r := Rules{DelayMin: lo, DelayMax: lo + d("range"), PerHost: 2, LatencyFactor: float64(rapid.IntRange(0, 2).Draw(rt, "factor")), MaxRetries: 3}
		rnd := rapid.Float64Range(0, 0.999999).Draw(rt, "rnd")
		gap, _ := s.Gap(r, rnd)
		for name, owed := range map[string]time.Duration{"base": r.DelayMin, "Crawl-delay": s.CrawlDelay, "learned": s.Learned, "least gap": s.MinGap(r)} {
			if gap < owed {
				rt.Fatalf("gap %s is below the %s of %s", gap, name, owed)
			}
		}

		// Whatever the answer: never before Retry-After, never before the
		// backoff, never a block beyond an hour, never a delay beyond 60 s.
		after := d("retry-after")
		try := rapid.IntRange(1, 3).Draw(rt, "try")
		o := rapid.SampledFrom(outcome.All()).Draw(rt, "outcome")
		v := s.Finished(t0, r, Answer{Outcome: o, Status: 403, Started: t0, RetryAfter: t0.Add(after), Tries: try}, rnd)
		if ready, _ := s.ReadyAt(); ready.Before(t0.Add(after)) && after > 0 {
			rt.Fatalf("ready %s before Retry-After", t0.Add(after).Sub(ready))
		}
		if v.Retry && o != outcome.Cancelled {
			if wait := v.NotBefore.Sub(t0); wait < backoff(try) || wait < after {
				rt.Fatalf("retry after %s; backoff %s, Retry-After %s", wait, backoff(try), after)
			}
		}
		if s.BlockedUntil.Sub(t0) > MaxBlock || s.Learned > LearnCap {
			rt.Fatalf("blocked for %s, learned %s", s.BlockedUntil.Sub(t0), s.Learned)
		}
	})
}

func Test_any_run_of_answers_keeps_the_state_within_its_bounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := newTalk()
		k.r.Adaptive, k.r.PerHost = rapid.Bool().Draw(rt, "adaptive"), rapid.IntRange(1, 20).Draw(rt, "per host")
		outs := []outcome.Outcome{outcome.OK, outcome.OK, outcome.OK, outcome.Throttled, outcome.ServerError, outcome.NotFound, outcome.Cancelled}
		for range rapid.IntRange(1, 60).Draw(rt, "runs") {
			o := rapid.SampledFrom(outs).Draw(rt, "outcome")
			for range rapid.IntRange(1, 25).Draw(rt, "times") {
				k.hear(o, 200)
			}
			s := &k.s
			switch {
			case s.Learned < 0 || s.Learned > LearnCap:
				rt.Fatalf("learned %s", s.Learned)
			case s.Probing && s.Learned >= s.Safe && s.Safe > 0:
				rt.Fatalf("probing at %s, safe is %s", s.Learned, s.Safe)
			case !s.Probing && s.FailingKnown && s.Learned < s.Failing:
				rt.Fatalf("keeps %s, which failed at %s", s.Learned, s.Failing)
			case s.SuccessStreak >= max(ProbeAfter, s.Proof) || s.Proof > maxProof || s.SuccessStreak < 0:
				rt.Fatalf("success streak %d", s.SuccessStreak)
			}
			if n := s.Cap(k.r); n < 1 || n > k.r.PerHost {
				rt.Fatalf("cap %d of %d", n, k.r.PerHost)
			}
		}
	})
}
