package politeness

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

// limiter is a server that permits so many requests a second and answers 429
// to the rest, with some room for bursts.
type limiter struct {
	gap   time.Duration
	burst int
	full  time.Time // when the allowance would be whole again
}

func (l *limiter) admit(at time.Time) bool {
	if l.full.Before(at) {
		l.full = at
	}
	if l.full.Sub(at) > time.Duration(l.burst-1)*l.gap {
		return false
	}
	l.full = l.full.Add(l.gap)
	return true
}

// visit is one crawl of a rate-limited host, request by request.
type visit struct {
	pages     int // asked for
	done      int
	throttled int // all 429s
	late      int // 429s once 100 pages were done
	lateReqs  int
	starts    []time.Time
	now       time.Time
}

type flight struct {
	start, end time.Time
	ok         bool
}

// crawl fetches pages from the limiter with what s knows. Answers take latency.
func (v *visit) crawl(s *State, r Rules, l *limiter, latency time.Duration, rnd *rand.Rand) {
	var air []flight
	land := func(f flight) {
		o := outcome.OK
		status := 200
		if !f.ok {
			o, status = outcome.Throttled, 429
			v.throttled++
			if v.done >= 100 {
				v.late++
			}
		} else {
			v.done++
		}
		if v.done >= 100 {
			v.lateReqs++
		}
		s.Finished(f.end, r, Answer{Outcome: o, Status: status, Started: f.start, Latency: latency, Tries: 1}, rnd.Float64())
	}
	for v.done < v.pages {
		at, _ := s.ReadyAt()
		if at.Before(v.now) {
			at = v.now
		}
		if len(air) > 0 && (len(air) >= s.Cap(r) || !air[0].end.After(at)) {
			v.now = air[0].end
			land(air[0])
			air = air[1:]
			continue
		}
		v.now = at
		gap, _ := s.Gap(r, rnd.Float64())
		s.Started(at, gap)
		ok := l.admit(at)
		if ok {
			v.starts = append(v.starts, at)
		}
		air = append(air, flight{at, at.Add(latency), ok})
	}
	for _, f := range air {
		v.now = f.end
		land(f)
	}
}

// pace is the rate of the last n pages, in pages a second.
func (v *visit) pace(n int) float64 {
	last := v.starts[len(v.starts)-n:]
	return float64(n-1) / last[n-1].Sub(last[0]).Seconds()
}

func Test_LIM5_the_pace_converges_on_the_servers_true_limit(t *testing.T) {
	for _, perSec := range []int{1, 2, 3, 5, 7, 20} {
		for _, burst := range []int{1, 10} {
			for _, base := range []Rules{
				{PerHost: 2, MaxRetries: 3},
				{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3},
			} {
				t.Run(fmt.Sprintf("%d a second, burst %d, base %s", perSec, burst, base.DelayMax), func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(uint64(perSec), uint64(burst)))
					s := new(State)
					gap := time.Second / time.Duration(perSec)
					v := &visit{pages: 2000, now: t0}
					v.crawl(s, base, &limiter{gap: gap, burst: burst}, 30*time.Millisecond, rnd)

					permitted := float64(perSec)
					if own := (base.DelayMin + base.DelayMax) / 2; own > 0 {
						permitted = min(permitted, 1/own.Seconds())
					}
					if got := v.pace(500); got < 0.85*permitted {
						t.Errorf("settled at %.2f pages/s, %.0f%% of the %.2f permitted", got, 100*got/permitted, permitted)
					}
					if share := float64(v.late) / float64(v.lateReqs); share > 0.02 {
						t.Errorf("%.1f%% of the requests after 100 pages were refused (%d of %d)", 100*share, v.late, v.lateReqs)
					}
					t.Logf("%.2f/s of %.2f permitted, 429s: %d, of them %d after 100 pages; learned %s", v.pace(500), permitted, v.throttled, v.late, s.Learned)

					again := &visit{pages: 500, now: v.now.Add(time.Hour)}
					s.Decay(again.now, HalfLife)
					again.crawl(s, base, &limiter{gap: gap, burst: burst}, 30*time.Millisecond, rnd)
					if again.throttled > 0 {
						t.Errorf("a second crawl was refused %d times", again.throttled)
					}
				})
			}
		}
	}
}

func Test_LIM4_a_limit_that_was_lifted_is_unlearned_a_second_per_twenty_pages_and_then_by_halves(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := &State{Learned: 21 * time.Second, Safe: 21 * time.Second, Step: LearnStep}
	v := &visit{pages: 20*20 + 2, now: t0}
	v.crawl(s, Rules{PerHost: 1}, &limiter{gap: time.Millisecond, burst: 1000}, time.Millisecond, rnd)
	if s.Learned != time.Second {
		t.Errorf("after %d pages the delay is %s", v.done, s.Learned)
	}
	v.pages += 20 * 11
	v.crawl(s, Rules{PerHost: 1}, &limiter{gap: time.Millisecond, burst: 1000}, time.Millisecond, rnd)
	if s.Learned != 0 {
		t.Errorf("after %d pages the delay is still %s", v.done, s.Learned)
	}
}

func Test_LIM5_a_penalty_is_not_mistaken_for_the_limit(t *testing.T) {
	// Permits one in 100 ms; then refuses everything for a while, once.
	const limit = 100 * time.Millisecond
	k := newTalk()
	k.r = Rules{PerHost: 1}
	visit := func(n int) {
		t.Helper()
		for range n {
			if k.s.Learned < limit {
				k.throttle(1)
			} else {
				k.ok(1)
			}
		}
		if k.s.Learned < limit || k.s.Learned > limit*115/100 {
			t.Fatalf("the pace is one in %s, the server permits one in %s", k.s.Learned, limit)
		}
	}
	visit(400)
	k.throttle(6)
	if k.s.Learned < 6*time.Second {
		t.Fatalf("six refusals in a row left the delay at %s", k.s.Learned)
	}
	visit(600)
}
