package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

func scheduleIDs(all []ledger.Schedule) []string {
	list := []string{}
	for _, s := range all {
		list = append(list, s.ID)
	}
	return list
}

var scheduleCases = []jobCase{
	{"a schedule is read back, listed by age, changed and deleted", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		full := ledger.Schedule{ID: "z", Tenant: "a", Name: "nightly", Rule: "0 3 * * *", Request: []byte(`{"url": "https://a.example/"}`), Enabled: true,
			Created: t0, Next: t0.Add(time.Hour), Last: t0.Add(-time.Hour), LastJob: "j", Skipped: 2, Note: "the last one still runs"}
		young := ledger.Schedule{ID: "y", Tenant: "a", Rule: "6h", Created: t0.Add(time.Second)}
		theirs := ledger.Schedule{ID: "x", Tenant: "b", Rule: "6h", Created: t0.Add(-time.Second)}
		for _, sch := range []ledger.Schedule{young, full, theirs} {
			must(t, s.CreateSchedule(t.Context(), sch, 0))
		}
		equal(t, "one", got[ledger.Schedule](t)(s.Schedule(t.Context(), "a", "z")), full)
		equal(t, "a's", got[[]ledger.Schedule](t)(s.Schedules(t.Context(), "a")), []ledger.Schedule{full, young})
		equal(t, "all", got[[]ledger.Schedule](t)(s.Schedules(t.Context(), "")), []ledger.Schedule{theirs, full, young})
		if err := s.CreateSchedule(t.Context(), ledger.Schedule{ID: "z", Tenant: "b", Rule: "6h"}, 0); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a second z: %v", err)
		}
		if err := s.CreateSchedule(t.Context(), ledger.Schedule{ID: "w", Tenant: "nobody", Rule: "6h"}, 0); !errors.Is(err, ledger.ErrNoTenant) {
			t.Errorf("a schedule of nobody: %v", err)
		}

		want := ledger.Schedule{ID: "z", Tenant: "a", Rule: "12h", Enabled: true, Created: t0, Next: t0.Add(2 * time.Hour), Skipped: 3}
		up, err := s.UpdateSchedule(t.Context(), "a", "z", func(x *ledger.Schedule) error {
			equal(t, "what fn sees", *x, full)
			*x = want
			x.ID, x.Tenant, x.Created = "y", "b", t0.Add(time.Hour)
			return nil
		})
		must(t, err)
		equal(t, "returned", up, want)
		equal(t, "stored", got[ledger.Schedule](t)(s.Schedule(t.Context(), "", "z")), want)
		if _, err := s.UpdateSchedule(t.Context(), "a", "z", func(x *ledger.Schedule) error { x.Rule = "48h"; return errRefused }); !errors.Is(err, errRefused) {
			t.Errorf("refused: %v", err)
		}
		equal(t, "after a refusal", got[ledger.Schedule](t)(s.Schedule(t.Context(), "a", "z")), want)

		must(t, s.DeleteSchedule(t.Context(), "a", "z"))
		if err := s.DeleteSchedule(t.Context(), "a", "z"); !errors.Is(err, ledger.ErrNoSchedule) {
			t.Errorf("deleted twice: %v", err)
		}
		equal(t, "left", scheduleIDs(got[[]ledger.Schedule](t)(s.Schedules(t.Context(), ""))), []string{"x", "y"})
	}},
	{"a tenant never has more schedules than its plan allows, however many it sends at once", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		must(t, s.CreateSchedule(t.Context(), ledger.Schedule{ID: "theirs", Tenant: "b", Rule: "6h"}, 3))
		var wg sync.WaitGroup
		var full atomic.Int32
		for i := range 12 {
			wg.Go(func() {
				err := s.CreateSchedule(context.Background(), ledger.Schedule{ID: fmt.Sprint("s", i), Tenant: "a", Rule: "6h", Enabled: i%2 == 0}, 3)
				switch {
				case errors.Is(err, ledger.ErrFull):
					full.Add(1)
				case err != nil:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if all := got[[]ledger.Schedule](t)(s.Schedules(t.Context(), "a")); len(all) != 3 || full.Load() != 9 {
			t.Errorf("%d schedules, %d refused", len(all), full.Load())
		}
	}},
	{"schedules are due the earliest first, and those that rest are not", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		if next := got[time.Time](t)(s.NextSchedule(t.Context())); !next.IsZero() {
			t.Errorf("the next of none is due at %v", next)
		}
		for _, c := range []struct {
			tenant, id string
			in         time.Duration
			enabled    bool
		}{
			{"a", "late", 3 * time.Hour, true}, {"a", "tie-2", 2 * time.Hour, true}, {"b", "tie-1", 2 * time.Hour, true},
			{"a", "soon", time.Hour, true}, {"b", "sooner", time.Minute, true}, {"a", "off", time.Second, false},
		} {
			must(t, s.CreateSchedule(t.Context(), ledger.Schedule{ID: c.id, Tenant: c.tenant, Rule: "6h", Enabled: c.enabled, Next: t0.Add(c.in)}, 0))
		}
		due := func(in time.Duration, limit int) []string {
			t.Helper()
			return scheduleIDs(got[[]ledger.Schedule](t)(s.DueSchedules(t.Context(), t0.Add(in), limit)))
		}
		next := func(want time.Duration) {
			t.Helper()
			if at := got[time.Time](t)(s.NextSchedule(t.Context())); !at.Equal(t0.Add(want)) {
				t.Errorf("the next is due at %v, want %v", at, t0.Add(want))
			}
		}
		equal(t, "before any", due(59*time.Second, 9), []string{})
		equal(t, "at the very time", due(time.Hour, 9), []string{"sooner", "soon"})
		equal(t, "all", due(24*time.Hour, 0), []string{"sooner", "soon", "tie-1", "tie-2", "late"})
		equal(t, "the first", due(24*time.Hour, 3), []string{"sooner", "soon", "tie-1"})
		next(time.Minute)

		rest := func(disabled bool) {
			t.Helper()
			_, err := s.UpdateTenant(t.Context(), "b", func(x *ledger.Tenant) error { x.Disabled = disabled; return nil })
			must(t, err)
		}
		rest(true) // the schedules of a disabled tenant rest
		equal(t, "without b", due(24*time.Hour, 0), []string{"soon", "tie-2", "late"})
		next(time.Hour)
		rest(false)
		next(time.Minute)

		if _, err := s.UpdateSchedule(t.Context(), "b", "sooner", func(x *ledger.Schedule) error { x.Enabled = false; return nil }); err != nil {
			t.Fatal(err)
		}
		next(time.Hour)
		if off := got[ledger.Schedule](t)(s.Schedule(t.Context(), "b", "sooner")); !off.Next.IsZero() {
			t.Errorf("a disabled schedule is due at %v", off.Next)
		}
	}},
}
