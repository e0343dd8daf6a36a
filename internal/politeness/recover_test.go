package politeness

import (
	"testing"
	"time"
)

// settle talks to a server that permits one request in limit until the search
// is over.
func (k *talk) settle(t *testing.T, limit time.Duration) {
	t.Helper()
	for range 2000 {
		if !k.s.Settled.IsZero() {
			return
		}
		if k.s.Learned < limit {
			k.throttle(1)
		} else {
			k.ok(1)
		}
	}
	t.Fatal("never settled")
}

func Test_LIM5_one_429_at_a_settled_pace_costs_twenty_slow_requests_and_a_little_of_the_pace(t *testing.T) {
	for _, limit := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 7 * time.Second} {
		k := newTalk()
		k.r = Rules{PerHost: 1}
		k.settle(t, limit)
		k.ok(5)
		was := k.s.Learned
		k.throttle(1)
		k.learned(t, was+LearnStep)
		k.ok(20)
		if now := k.s.Learned; now <= was || now > was+max(was/16, time.Millisecond) {
			t.Errorf("limit %s: settled at %s, then one 429, and after 20 answers at %s", limit, was, now)
		}
		k.ok(39) // it must prove itself longer than the first time
		if k.s.Confirmed {
			t.Errorf("limit %s: believed after 39 answers", limit)
		}
		k.ok(1)
		if !k.s.Confirmed || k.s.Settled.IsZero() && limit > 20*time.Millisecond {
			t.Errorf("limit %s: confirmed %v, settled %v after 40 answers", limit, k.s.Confirmed, k.s.Settled)
		}
	}
}

func Test_LIM4_no_probe_more_than_doubles_the_pace(t *testing.T) {
	k := newTalk()
	k.r = Rules{PerHost: 22}
	k.throttle(1)
	for k.s.Learned > 2*time.Millisecond {
		was := k.s.Learned
		if k.ok(20); k.s.Learned < was/2 {
			t.Fatalf("from %s to %s", was, k.s.Learned)
		}
	}
}

func Test_a_base_delay_that_was_refused_again_is_not_tried_a_third_time(t *testing.T) {
	k := newTalk() // 200 to 500 ms
	k.throttle(1)
	for k.s.Learned > 0 {
		k.ok(20)
	}
	k.ok(20)
	k.throttle(1) // so the first time was no accident
	for range 20 {
		if k.ok(20); k.s.Learned <= k.r.DelayMin {
			t.Fatalf("back to the base delay: learned %s", k.s.Learned)
		}
	}
}
