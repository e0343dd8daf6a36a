package frontier

import (
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

func Test_a_permit_that_is_not_on_the_wire_yet_heeds_a_retry_after_of_another_answer(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0), func(c *Crawl) { c.IgnoreRobots = true })
	w.add(c, urls("a.example", 2)...)
	var permits []*Permit
	for len(permits) < 2 {
		work, _ := w.s.Next(0, w.now)
		switch work.Kind {
		case Load:
			if err := w.s.Load(t.Context(), work, func() time.Time { return w.now }); err != nil {
				t.Fatal(err)
			}
		case Fetch:
			permits = append(permits, work.Permit)
		default:
			t.Fatalf("%d instead of two permits", work.Kind)
		}
	}
	if !w.s.Confirm(permits[1], w.now) {
		t.Fatal("called off without a reason")
	}
	w.s.Release(permits[0], w.now, politeness.Answer{Outcome: outcome.Throttled, Status: 429, Started: w.now,
		RetryAfter: w.now.Add(time.Minute), Tries: 1})
	if w.s.Confirm(permits[1], w.now.Add(time.Second)) {
		t.Error("goes out although the host asked for a minute of quiet")
	}
	if !w.s.Confirm(permits[1], w.now.Add(2*time.Minute)) {
		t.Error("still called off when the minute is over")
	}
}
