package politeness

import (
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

var taught = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// settle lets a host answer everything with 200 and returns the shortest
// delay that a request was sent with.
func settle(s *State, r Rules, answers int) time.Duration {
	now, least := taught, s.Learned
	for range answers {
		now = now.Add(s.Learned + time.Second)
		s.Finished(now, r, Answer{Outcome: outcome.OK, Status: 200, Started: now, Tries: 1}, 0.5)
		least = min(least, s.Learned)
	}
	return least
}

func Test_a_delay_set_by_hand_is_probed_like_a_learned_one(t *testing.T) {
	var s State
	if err := s.Teach(taught, 5*time.Second, 0); err != nil {
		t.Fatal(err)
	}
	if gap, why := s.Gap(Rules{DelayMin: time.Second, DelayMax: time.Second}, 0); gap != 5*time.Second || why != WhyLearned {
		t.Errorf("gap %s because of the %s", gap, why)
	}
	if least := settle(&s, Rules{PerHost: 2}, 500); least != 0 {
		t.Errorf("500 good answers brought the delay down to %s only", least)
	}
}

func Test_a_floor_set_by_hand_holds_against_probes(t *testing.T) {
	var s State
	if err := s.Teach(taught, 5*time.Second, 2500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	least := settle(&s, Rules{PerHost: 2}, 1000)
	if least < 2500*time.Millisecond || least > 2600*time.Millisecond {
		t.Errorf("probed down to %s, want just about the floor of 2.5s", least)
	}
}

func Test_a_delay_set_by_hand_ages_from_the_day_it_was_set(t *testing.T) {
	s := State{Learned: time.Second, Updated: taught.Add(-100 * HalfLife)}
	if err := s.Teach(taught, 8*time.Second, 4*time.Second); err != nil {
		t.Fatal(err)
	}
	s.Decay(taught.Add(HalfLife), HalfLife)
	if s.Learned != 4*time.Second || s.Floor != 2*time.Second {
		t.Errorf("delay %s, floor %s after a half-life", s.Learned, s.Floor)
	}
}

func Test_a_block_set_by_hand_holds_and_can_be_lifted(t *testing.T) {
	var s State
	if err := s.Hold(taught, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if at, block := s.ReadyAt(); !block || !at.Equal(taught.Add(10*time.Minute)) || s.BlockWhy.String() != "the operator" {
		t.Errorf("ready %s, block %v by %s", at, block, s.BlockWhy)
	}
	if err := s.Hold(taught, 0); err != nil || !s.BlockedUntil.IsZero() {
		t.Errorf("blocked until %s, %v", s.BlockedUntil, err)
	}
}

func Test_what_no_rule_could_have_learned_is_refused(t *testing.T) {
	var s State
	for _, err := range []error{
		s.Teach(taught, 61*time.Second, 0), s.Teach(taught, -1, 0), s.Teach(taught, time.Second, 2*time.Second),
		s.Hold(taught, MaxBlock+1), s.Hold(taught, -1),
	} {
		if err == nil {
			t.Error("no error")
		}
	}
	if s != (State{}) {
		t.Errorf("a refused value left %+v", s)
	}
}

func Test_CON_1_and_2_a_slot_is_withheld_for_each_5_s_and_given_back(t *testing.T) {
	r := Rules{DelayMin: time.Second, DelayMax: time.Second, PerHost: 3}
	for learned, want := range map[time.Duration]int{
		0: 0, time.Second: 0, 5999 * time.Millisecond: 0, 6 * time.Second: 1, 10 * time.Second: 1, 11 * time.Second: 2, 60 * time.Second: 2,
	} {
		s := State{Learned: learned}
		if got := s.Withheld(r); got != want || s.Cap(r) != 3-want {
			t.Errorf("at %s: %d withheld, cap %d; want %d, %d", learned, got, s.Cap(r), want, 3-want)
		}
	}
	s := State{Learned: 5 * time.Second, Safe: 5 * time.Second}
	v := s.Finished(taught, r, Answer{Outcome: outcome.Throttled, Status: 429, Started: taught, Tries: 1}, 0.5)
	if v.Withheld != 1 {
		t.Errorf("the 429 that made it 6 s withheld %d slots", v.Withheld)
	}
	back := 0
	for i := range 20 {
		at := taught.Add(time.Duration(i+1) * time.Minute)
		back += s.Finished(at, r, Answer{Outcome: outcome.OK, Status: 200, Started: at, Tries: 1}, 0.5).Withheld
	}
	if back != -1 {
		t.Errorf("the probe after 20 successes gave %d back", -back)
	}
}
