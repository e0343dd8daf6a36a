package crawl

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// steered is a store and the engine's part that reacts to it, without a crawl:
// there is always more to commit than may be in hand.
type steered struct {
	g      governor
	tokens *tokens
	cost   func(records int) time.Duration
	now    time.Duration // virtual
	done   int           // records
}

func newSteered(cost func(int) time.Duration) *steered {
	return &steered{g: governor{threshold: 500 * time.Millisecond}, tokens: newTokens(512), cost: cost}
}

// run commits for so long and returns the lowest limit there was and the last.
func (s *steered) run(d time.Duration) (lowest, last int) {
	lowest = s.tokens.limit
	for end := s.now + d; s.now < end; {
		n := s.tokens.limit
		if s.now == 0 {
			n = 1 // the seed
		}
		took := s.cost(n)
		s.now += took
		s.done += n
		_, last = s.tokens.govern(s.g.note(took, n <= s.tokens.least()))
		lowest = min(lowest, last)
	}
	return lowest, last
}

func jitter(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// Each record costs so much, on top of what a commit costs.
func perRecord(commit, each time.Duration) func(int) time.Duration {
	return func(n int) time.Duration { return commit + time.Duration(n)*each }
}

func Test_the_governor_lets_a_store_that_is_near_or_far_but_steady_have_everything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, cost := range map[string]func(int) time.Duration{
		"near": perRecord(5*time.Millisecond, 100*time.Microsecond),
		"50 ms away": func(n int) time.Duration {
			return jitter(r, 250*time.Millisecond, 400*time.Millisecond) + time.Duration(n)*100*time.Microsecond
		},
		"far":          perRecord(900*time.Millisecond, 100*time.Microsecond),
		"very far":     perRecord(3*time.Second, 100*time.Microsecond),
		"far, jittery": func(int) time.Duration { return jitter(r, 1200*time.Millisecond, 2800*time.Millisecond) },
	} {
		if lowest, _ := newSteered(cost).run(30 * time.Minute); lowest != 512 {
			t.Errorf("%s: the limit fell to %d of 512", name, lowest)
		}
	}
}

func Test_the_governor_slows_down_for_a_store_that_became_overloaded_and_comes_back(t *testing.T) {
	near, overloaded := perRecord(5*time.Millisecond, 100*time.Microsecond), perRecord(20*time.Millisecond, 20*time.Millisecond)
	s := newSteered(near)
	s.run(time.Minute)
	s.cost = overloaded // 512 records would take 10 s
	if _, last := s.run(2 * time.Minute); last > 64 {
		t.Errorf("two minutes after the store became slow the limit is %d", last)
	}
	// It stays so: what is slow does not become the measure.
	for range 30 {
		if _, last := s.run(time.Minute); last > 64 {
			t.Fatalf("%s after the start the limit is %d again", s.now, last)
		}
	}
	s.cost = near
	if _, last := s.run(10 * time.Second); last != 512 {
		t.Errorf("ten seconds after the store was quick again the limit is %d", last)
	}
}

func Test_the_governor_finds_that_a_store_moved_away_and_lets_it_have_everything_again(t *testing.T) {
	s := newSteered(perRecord(5*time.Millisecond, 100*time.Microsecond))
	s.run(time.Minute)
	s.cost = perRecord(time.Second, 100*time.Microsecond)
	if lowest, last := s.run(time.Minute); lowest > 4 || last != 512 {
		t.Errorf("the limit fell to %d and is %d", lowest, last)
	}
	s.done = 0
	if lowest, _ := s.run(10 * time.Minute); lowest != 512 || s.done < 290_000 {
		t.Errorf("then it fell to %d; %d records in ten minutes", lowest, s.done)
	}
}

func Test_the_governor_takes_fewer_urls_in_hand_when_the_store_has_too_much_to_do_and_grows_back(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		endless(w, 200*time.Millisecond)
		var each atomic.Int64
		each.Store(int64(time.Millisecond))
		w.cfg.Governor, w.cfg.Workers = true, 64
		w.books.slow = func(pages int) time.Duration { return time.Duration(pages) * time.Duration(each.Load()) }
		spec := plainSpec(home)
		spec.PerHost, spec.DelayMin, spec.DelayMax = 64, 0, 0
		_, err := w.crawl(spec, func(r *Run) {
			time.Sleep(2 * time.Second)
			if _, limit, most := r.e.tokens.state(); limit != most {
				t.Errorf("limit %d of %d while the store keeps up", limit, most)
			}
			each.Store(int64(100 * time.Millisecond))
			time.Sleep(time.Minute)
			if _, limit, _ := r.e.tokens.state(); limit > 20 {
				t.Errorf("limit %d of 64 while each page costs the store 100 ms", limit)
			}
			each.Store(int64(time.Millisecond))
			time.Sleep(10 * time.Second)
			if _, limit, most := r.e.tokens.state(); limit != most {
				t.Errorf("limit %d of %d after the store kept up for 10 s", limit, most)
			}
			r.Stop("enough")
		})
		if err != nil {
			t.Fatal(err)
		}
		if logs := w.logs.String(); !strings.Contains(logs, "the store is slow") || !strings.Contains(logs, "the store keeps up again") {
			t.Error("the governor said nothing")
		}
	})
}
