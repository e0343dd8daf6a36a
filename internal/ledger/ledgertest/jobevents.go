package ledgertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

var eventCases = []jobCase{
	{"the story of a job is read back in order, on behind any event", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		_, err := s.CreateJob(t.Context(), j, func(ledger.Usage) (ledger.JobChange, error) {
			return ledger.JobChange{Events: []ledger.JobEvent{{At: t0, Type: "status", Data: `{"status":"queued"}`}}}, nil
		})
		must(t, err)
		orders(t, s, "a", "k")
		if _, err := s.UpdateJob(t.Context(), "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
			return ledger.JobChange{Events: []ledger.JobEvent{{At: t0, Type: "one", Job: "k"}, {At: t0, Type: "two"}}}, nil // whose it is the update says
		}); err != nil {
			t.Fatal(err)
		}
		must(t, s.AddEvents(t.Context(), []ledger.JobEvent{
			{Job: "k", Type: "elsewhere"}, {Job: "j", At: t0.Add(time.Second), Type: "three", Data: `{"n":3}`}, {Job: "gone", Type: "never"}, {Job: "j", Type: "four"}}))
		must(t, s.AddEvents(t.Context(), nil))

		all := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", 0, 0))
		want := []ledger.JobEvent{{At: t0, Type: "status", Data: `{"status":"queued"}`}, {At: t0, Type: "one"}, {At: t0, Type: "two"},
			{At: t0.Add(time.Second), Type: "three", Data: `{"n":3}`}, {Type: "four"}}
		last := int64(0)
		for i := range all {
			if all[i].ID <= last {
				t.Errorf("event %d follows event %d", all[i].ID, last)
			}
			last = all[i].ID
			if i < len(want) {
				want[i].ID, want[i].Job = last, "j"
			}
		}
		equal(t, "events", all, want)
		equal(t, "behind the second, two of them", got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", all[1].ID, 2)), want[2:4])
		equal(t, "behind the last", got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", last, 9)), []ledger.JobEvent{})
		if ev := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "gone", 0, 0)); len(ev) != 0 {
			t.Errorf("a job that does not exist has events %v", ev)
		}
	}},
	{"who goes on behind the last event seen misses none while others write", func(t *testing.T, s JobStore) {
		const writers, each = 6, 20
		newTenants(t, s, "a")
		orders(t, s, "a", "j", "k")
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					data := fmt.Sprintf(`"%d-%d"`, w, i)
					var err error
					if w%2 == 0 {
						pair := []ledger.JobEvent{{Job: "j", Type: "x", Data: data}, {Job: "k", Type: "x", Data: data}}
						if w == 0 { // batches that meet in another order do not lock each other out
							slices.Reverse(pair)
						}
						err = s.AddEvents(context.Background(), pair)
					} else {
						_, err = s.UpdateJob(context.Background(), "a", "j", func(*ledger.Job) (ledger.JobChange, error) {
							return ledger.JobChange{Events: []ledger.JobEvent{{Type: "x", Data: data}}}, nil
						})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		var seen []ledger.JobEvent
		for running := true; running; {
			select {
			case <-done:
				running = false // and once more
			default:
			}
			for last := int64(0); ; {
				if len(seen) > 0 {
					last = seen[len(seen)-1].ID
				}
				more := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", last, 7))
				if seen = append(seen, more...); len(more) == 0 {
					break
				}
			}
		}
		if len(seen) != writers*each {
			t.Errorf("saw %d of %d events", len(seen), writers*each)
		}
		equal(t, "all of them", seen, got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", 0, 0)))
	}},
}
