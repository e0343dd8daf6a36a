package politeness

import (
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

var (
	t0    = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	basic = Rules{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3}
)

// talk is a conversation with one host: every answer is to a request that was
// sent after the last one came.
type talk struct {
	s   State
	r   Rules
	now time.Time
}

func newTalk() *talk { return &talk{r: basic, now: t0} }

func (k *talk) hear(o outcome.Outcome, status int, set ...func(*Answer)) Verdict {
	sent := k.now
	k.now = k.now.Add(time.Second)
	a := Answer{Outcome: o, Status: status, Started: sent, Tries: 1}
	for _, f := range set {
		f(&a)
	}
	return k.s.Finished(k.now, k.r, a, 0.5)
}

func (k *talk) ok(n int) (v Verdict) {
	for range n {
		v = k.hear(outcome.OK, 200)
	}
	return v
}

func (k *talk) throttle(n int) (v Verdict) {
	for range n {
		v = k.hear(outcome.Throttled, 429)
	}
	return v
}

func (k *talk) learned(t *testing.T, want time.Duration) {
	t.Helper()
	if k.s.Learned != want {
		t.Fatalf("learned delay is %s, want %s", k.s.Learned, want)
	}
}

func Test_LIM3_each_429_in_a_streak_adds_a_second_up_to_sixty(t *testing.T) {
	k := newTalk()
	for i := 1; i <= 70; i++ {
		v := k.throttle(1)
		k.learned(t, min(time.Duration(i)*time.Second, 60*time.Second))
		if k.s.ErrorStreak != i || k.s.SuccessStreak != 0 || !v.Raised {
			t.Fatalf("429 number %d: streak %d, raised %v", i, k.s.ErrorStreak, v.Raised)
		}
	}
	if k.s.Throttles != 70 {
		t.Errorf("%d throttles counted", k.s.Throttles)
	}
}

func Test_LIM3_a_503_with_retry_after_counts_as_429_and_one_without_does_not(t *testing.T) {
	k := newTalk()
	k.hear(outcome.FromStatus(503, true), 503)
	k.learned(t, time.Second)
	k = newTalk()
	k.hear(outcome.FromStatus(503, false), 503)
	k.learned(t, 0)
	if k.s.Failures != 1 {
		t.Errorf("a plain 503 counts %d failures", k.s.Failures)
	}
}

func Test_LIM3_the_first_step_is_above_what_is_kept_anyway(t *testing.T) {
	k := newTalk()
	k.r.DelayMin, k.r.DelayMax = 2*time.Second, 2*time.Second
	k.throttle(1)
	k.learned(t, 3*time.Second)
	k = newTalk()
	k.s.SetCrawlDelay(10 * time.Second)
	k.throttle(1)
	k.learned(t, 11*time.Second)
}

func Test_LIM3_429s_to_requests_sent_before_the_last_lesson_teach_nothing_new(t *testing.T) {
	k := newTalk()
	sent := k.now
	for range 20 { // twenty in flight when the limit was hit
		k.hear(outcome.Throttled, 429, func(a *Answer) { a.Started = sent })
	}
	k.learned(t, time.Second)
	if k.s.ErrorStreak != 20 {
		t.Errorf("error streak %d", k.s.ErrorStreak)
	}
	k.throttle(1)
	k.learned(t, 2*time.Second)
}

func Test_LIM4_twenty_successes_in_a_row_lower_the_delay_by_a_second(t *testing.T) {
	k := newTalk()
	k.throttle(5)
	if v := k.ok(19); v.Lowered {
		t.Fatal("probed after 19")
	}
	k.learned(t, 5*time.Second)
	if v := k.ok(1); !v.Lowered {
		t.Fatal("no probe after 20")
	}
	k.learned(t, 4*time.Second)
	if k.s.Safe != 5*time.Second || !k.s.Probing {
		t.Errorf("safe %s, probing %v", k.s.Safe, k.s.Probing)
	}
	k.ok(20) // one lucky success does not confirm a probe, twenty do
	k.learned(t, 3*time.Second)
	if k.s.Safe != 4*time.Second {
		t.Errorf("safe %s after a confirmed probe", k.s.Safe)
	}
	for range 10 {
		k.ok(20)
	}
	k.learned(t, 0)
}

func Test_LIM4_a_streak_is_broken_by_anything_that_is_not_a_success(t *testing.T) {
	for name, o := range map[string]outcome.Outcome{"429": outcome.Throttled, "500": outcome.ServerError, "403": outcome.Blocked, "timeout": outcome.Timeout} {
		k := newTalk()
		k.throttle(3)
		before := k.s.Learned
		k.ok(19)
		k.hear(o, map[outcome.Outcome]int{outcome.Throttled: 429, outcome.ServerError: 500, outcome.Blocked: 403}[o])
		if k.s.SuccessStreak != 0 {
			t.Errorf("%s: streak is %d", name, k.s.SuccessStreak)
		}
		k.ok(19)
		if k.s.Learned < before {
			t.Errorf("%s: lowered after 19 + 19", name)
		}
	}
}

func Test_LIM4_answers_to_requests_sent_at_the_old_delay_do_not_count_for_the_new(t *testing.T) {
	k := newTalk()
	k.throttle(2)
	k.ok(20)
	k.learned(t, time.Second)
	old := k.s.ChangedAt.Add(-time.Second)
	for range 40 {
		k.hear(outcome.OK, 200, func(a *Answer) { a.Started = old })
	}
	k.learned(t, time.Second)
	k.hear(outcome.Throttled, 429, func(a *Answer) { a.Started = old })
	k.learned(t, time.Second) // and a late 429 does not fail the probe
	if !k.s.Probing {
		t.Error("the probe was ended by an answer to an older request")
	}
}

func Test_LIM5_a_failed_probe_returns_to_the_safe_delay_and_halves_the_step_down_to_50ms(t *testing.T) {
	k := newTalk()
	k.throttle(5)
	step := time.Second
	for range 5 { // 1 s, 500, 250, 125 and 62.5 ms
		k.ok(20)
		if !k.s.Probing || k.s.Learned != 5*time.Second-step {
			t.Fatalf("step %s: probing %v at %s", step, k.s.Probing, k.s.Learned)
		}
		v := k.throttle(1)
		if !v.Reverted || v.Raised {
			t.Fatalf("step %s: verdict %+v", step, v)
		}
		k.learned(t, 5*time.Second)
		if k.s.Floor != 5*time.Second || k.s.Safe != 5*time.Second {
			t.Fatalf("floor %s, safe %s: not the last safe delay", k.s.Floor, k.s.Safe)
		}
		step /= 2
	}
	// 31 ms would be the next: below 50 ms the search is over.
	if k.s.Settled.IsZero() {
		t.Fatal("not settled")
	}
	k.ok(100)
	k.learned(t, 5*time.Second)
}

func Test_a_delay_that_was_raised_holds_at_once(t *testing.T) {
	k := newTalk()
	k.throttle(2)
	if ready, _ := k.s.ReadyAt(); ready.Sub(k.now) < 2*time.Second {
		t.Errorf("after a 429 the next request may go in %s", ready.Sub(k.now))
	}
	k.ok(20)
	k.throttle(1) // during the probe
	if ready, _ := k.s.ReadyAt(); ready.Sub(k.now) < 2*time.Second {
		t.Errorf("after a failed probe the next request may go in %s", ready.Sub(k.now))
	}
	k = newTalk()
	k.ok(1)
	for range 5 {
		k.hear(outcome.Blocked, 403)
	}
	if ready, _ := k.s.ReadyAt(); ready.Sub(k.now) < k.s.Learned {
		t.Errorf("after five 403s the next request may go in %s", ready.Sub(k.now))
	}
}

func Test_LIM5_a_value_that_failed_is_never_probed_again_and_the_floor_is_the_last_safe_delay(t *testing.T) {
	// The server's true limit is one request in 3.3 s.
	k := newTalk()
	k.throttle(5)
	failed := map[time.Duration]bool{}
	for range 400 {
		if k.s.Learned >= 3300*time.Millisecond {
			k.ok(1)
			continue
		}
		if failed[k.s.Learned] {
			t.Fatalf("%s failed before and was probed again", k.s.Learned)
		}
		failed[k.s.Learned] = true
		k.throttle(1)
		if k.s.Floor < 3300*time.Millisecond {
			t.Fatalf("the floor became the failing delay: %s", k.s.Floor)
		}
	}
	if k.s.Learned > 3400*time.Millisecond || k.s.Settled.IsZero() {
		t.Errorf("after 400 answers at %s, settled %v; the limit is 3.3s", k.s.Learned, k.s.Settled)
	}
}

func Test_a_settled_pace_is_probed_again_after_a_day(t *testing.T) {
	k := newTalk()
	k.throttle(3)
	for k.s.Settled.IsZero() {
		if k.ok(20); k.s.Probing {
			k.throttle(1)
		}
	}
	at := k.s.Learned
	k.ok(40)
	k.learned(t, at)
	k.now = k.now.Add(SettledFor)
	k.ok(20)
	if !k.s.Probing || k.s.Learned >= at {
		t.Errorf("after a day still at %s", k.s.Learned)
	}
}

func Test_retry_after_and_rate_limit_headers_set_the_block_clamped_at_an_hour(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration
		limit time.Duration
		want  time.Duration
		why   Why
	}{
		{"Retry-After", 30 * time.Second, 0, 30 * time.Second, WhyRetryAfter},
		{"Retry-After of a day", 24 * time.Hour, 0, time.Hour, WhyRetryAfter},
		{"rate-limit headers", 0, 40 * time.Second, 40 * time.Second, WhyRateLimit},
		{"both, the longer wins", 10 * time.Second, 20 * time.Second, 20 * time.Second, WhyRateLimit},
		{"in the past", -time.Minute, 0, 0, WhyNone},
	} {
		k := newTalk()
		end := k.now.Add(time.Second)
		k.hear(outcome.Throttled, 429, func(a *Answer) {
			if tc.after != 0 {
				a.RetryAfter = end.Add(tc.after)
			}
			if tc.limit != 0 {
				a.RateLimit = end.Add(tc.limit)
			}
		})
		if tc.want == 0 {
			if !k.s.BlockedUntil.IsZero() {
				t.Errorf("%s: blocked until %s", tc.name, k.s.BlockedUntil)
			}
			continue
		}
		if got := k.s.BlockedUntil.Sub(end); got != tc.want || k.s.BlockWhy != tc.why {
			t.Errorf("%s: blocked for %s by %s, want %s by %s", tc.name, got, k.s.BlockWhy, tc.want, tc.why)
		}
		if at, blocked := k.s.ReadyAt(); !blocked || at != k.s.BlockedUntil {
			t.Errorf("%s: ready at %s", tc.name, at)
		}
	}
}

func Test_a_block_never_becomes_shorter(t *testing.T) {
	k := newTalk()
	long := k.now.Add(10 * time.Minute)
	k.hear(outcome.Throttled, 429, func(a *Answer) { a.RetryAfter = long })
	k.hear(outcome.Throttled, 429, func(a *Answer) { a.RetryAfter = k.now.Add(5 * time.Second) })
	if k.s.BlockedUntil != long {
		t.Errorf("blocked until %s, was %s", k.s.BlockedUntil, long)
	}
}

func Test_LAY5_the_breaker_doubles_to_an_hour_and_LAY6_parks_at_ten(t *testing.T) {
	for _, o := range []outcome.Outcome{outcome.Connect, outcome.Timeout, outcome.ServerError, outcome.DNS, outcome.Protocol} {
		k := newTalk()
		for n := 1; n <= 14; n++ {
			v := k.hear(o, 0)
			k.now = k.s.BlockedUntil // the next request goes when the block is over
			want := min(time.Second<<n, BreakerCap)
			if wait := k.s.BlockedUntil.Sub(k.s.FailedAt); wait < want || wait > min(want*11/10, BreakerCap) {
				t.Fatalf("%s: failure %d waits %s, want %s", o, n, wait, want)
			}
			if k.s.BlockWhy != WhyBreaker || v.Parked != (n >= 10) {
				t.Fatalf("%s: failure %d: why %s, parked %v", o, n, k.s.BlockWhy, v.Parked)
			}
		}
		k.ok(1)
		if k.s.Failures != 0 {
			t.Errorf("%s: a success left %d failures", o, k.s.Failures)
		}
	}
}

func Test_LAY6_4xx_pages_never_count_as_failures(t *testing.T) {
	k := newTalk()
	for range 30 {
		for _, status := range []int{400, 404, 410, 418, 401, 451} {
			if v := k.hear(outcome.FromStatus(status, false), status); v.Parked || v.Blocked {
				t.Fatalf("%d: %+v", status, v)
			}
		}
	}
	if k.s.Failures != 0 || k.s.BlockedUntil.After(k.now) || k.s.Learned != 0 {
		t.Errorf("failures %d, blocked until %s, learned %s", k.s.Failures, k.s.BlockedUntil, k.s.Learned)
	}
}

func Test_LAY5_a_burst_of_failures_in_one_outage_counts_once(t *testing.T) {
	k := newTalk()
	sent := k.now
	for range 20 {
		k.hear(outcome.Connect, 0, func(a *Answer) { a.Started = sent })
	}
	if k.s.Failures != 1 {
		t.Errorf("%d failures for twenty requests of one outage", k.s.Failures)
	}
}

func Test_RET1_a_lone_403_slows_only_its_url(t *testing.T) {
	k := newTalk()
	k.ok(1)
	v := k.hear(outcome.Blocked, 403)
	if !v.Retry || v.Why != WhyBackoff || k.s.Learned != 0 || k.s.BlockedUntil.After(k.now) {
		t.Errorf("verdict %+v, learned %s, blocked until %s", v, k.s.Learned, k.s.BlockedUntil)
	}
}

func Test_RET1_five_403s_in_a_row_on_a_host_that_gave_200s_count_as_blocking(t *testing.T) {
	k := newTalk()
	k.ok(1)
	for n := 1; n <= 4; n++ {
		if v := k.hear(outcome.Blocked, 403); v.Raised || v.Blocked {
			t.Fatalf("403 number %d: %+v", n, v)
		}
	}
	if v := k.hear(outcome.Blocked, 403); !v.Raised || !v.Blocked || k.s.BlockWhy != WhyDenied {
		t.Errorf("fifth 403: %+v, why %s", v, k.s.BlockWhy)
	}
	k.learned(t, 1500*time.Millisecond) // a second above the base delay

	k = newTalk() // a host that never let us in is not one that turned on us
	for range 20 {
		if v := k.hear(outcome.Blocked, 403); v.Raised || v.Blocked {
			t.Fatalf("%+v", v)
		}
	}
	k = newTalk()
	k.ok(1)
	for range 10 {
		k.hear(outcome.Blocked, 403)
		k.ok(1)
	}
	k.learned(t, 0)
}

func Test_RET1_which_outcomes_are_tried_again_and_how_often(t *testing.T) {
	for _, tc := range []struct {
		o       outcome.Outcome
		status  int
		retries int
	}{
		{outcome.Throttled, 429, 3}, {outcome.Throttled, 503, 3}, {outcome.ServerError, 503, 3}, {outcome.Blocked, 403, 3},
		{outcome.Timeout, 0, 3}, {outcome.Connect, 0, 3}, {outcome.DNS, 0, 1},
		{outcome.Blocked, 401, 0}, {outcome.Blocked, 451, 0}, {outcome.NotFound, 404, 0}, {outcome.OK, 200, 0},
		{outcome.TLS, 0, 0}, {outcome.Guard, 0, 0}, {outcome.TooLarge, 200, 0}, {outcome.Redirect, 301, 0},
	} {
		got := 0
		for try := 1; try <= 10; try++ {
			k := newTalk()
			if !k.hear(tc.o, tc.status, func(a *Answer) { a.Tries = try }).Retry {
				break
			}
			got++
		}
		if got != tc.retries {
			t.Errorf("%s (%d): %d retries, want %d", tc.o, tc.status, got, tc.retries)
		}
	}
}

func Test_a_stale_connection_is_no_fault_of_the_host(t *testing.T) {
	k := newTalk()
	v := k.hear(outcome.Connect, 0, func(a *Answer) { a.Stale = true })
	if !v.Retry || v.NotBefore != k.now || k.s.Failures != 0 {
		t.Errorf("%+v, failures %d", v, k.s.Failures)
	}
	if v := k.hear(outcome.Connect, 0, func(a *Answer) { a.Stale, a.Tries = true, 5 }); v.Retry {
		t.Error("a stale connection is retried without end")
	}
}

func Test_a_cancelled_request_says_nothing_about_the_host(t *testing.T) {
	k := newTalk()
	before := k.s
	v := k.hear(outcome.Cancelled, 0)
	before.Updated = k.s.Updated
	if k.s != before || !v.Retry {
		t.Errorf("state changed to %+v, verdict %+v", k.s, v)
	}
}

func Test_BKO1_backoff_is_1_2_4_8_16_32_60(t *testing.T) {
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := backoff(i + 1); got != want*time.Second {
			t.Errorf("try %d: %s", i+1, got)
		}
	}
}

func Test_the_longest_of_retry_after_breaker_and_backoff_wins(t *testing.T) {
	k := newTalk()
	v := k.hear(outcome.Throttled, 429, func(a *Answer) { a.RetryAfter = a.Started.Add(time.Minute) })
	if v.Why != WhyRetryAfter || v.NotBefore != k.s.BlockedUntil {
		t.Errorf("%+v", v)
	}
	k = newTalk()
	v = k.hear(outcome.Throttled, 429, func(a *Answer) { a.Tries = 3; a.RetryAfter = a.Started.Add(1100 * time.Millisecond) })
	if v.Why != WhyBackoff || v.NotBefore.Sub(k.now) < 4*time.Second {
		t.Errorf("%+v", v)
	}
}
