package fleet

import (
	"testing"
	"time"
)

func Test_the_stores_clock_is_known_by_the_best_look_at_it(t *testing.T) {
	ours := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var a ahead
	// look asks a store that is truly ahead by so much; the answer is on its way
	// for a part of the time that all of it takes.
	look := func(truly, took time.Duration, back float64) (by, give time.Duration) {
		t.Helper()
		got := ours.Add(took)
		a.heard(ours, got, ours.Add(truly+took-time.Duration(back*float64(took))))
		ours = got
		if by, give = a.look(ours); (by - truly).Abs() > give {
			t.Errorf("%s ahead is taken for %s, give or take %s", truly, by, give)
		}
		return by, give
	}
	if by, give := a.look(ours); by != 0 || give != 0 {
		t.Errorf("nothing is known, and it is %s, %s", by, give)
	}
	look(3*time.Second, time.Second, 0.9)
	if _, give := look(3*time.Second, 2*time.Millisecond, 0.1); give > 2*time.Millisecond {
		t.Errorf("after a quick look it may be off by %s", give)
	}
	if _, give := look(3*time.Second, 2*time.Second, 0); give > 10*time.Millisecond {
		t.Errorf("a slow look spoilt it: off by %s", give)
	}
	ours = ours.Add(time.Hour)
	if _, give := a.look(ours); give < 3*time.Second {
		t.Errorf("after an hour of drift it is off by %s only", give)
	}
	look(2*time.Second, 20*time.Millisecond, 0.5)
	look(-time.Minute, 40*time.Millisecond, 0.5) // somebody set a clock
}
