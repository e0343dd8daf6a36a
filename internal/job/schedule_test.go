package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

func (w *world) schedule(tenant, rule string, r Request) ledger.Schedule {
	w.t.Helper()
	ten, err := w.db.Tenant(context.Background(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := w.svc.CreateSchedule(context.Background(), ten, ledger.Schedule{Name: "often", Rule: rule, Request: []byte(jsonOf(r)), Enabled: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) scheduled(s ledger.Schedule) (ledger.Schedule, []ledger.Job) {
	w.t.Helper()
	jobs, err := w.db.Jobs(context.Background(), ledger.JobFilter{Schedule: s.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	if s, err = w.db.Schedule(context.Background(), s.Tenant, s.ID); err != nil {
		w.t.Fatal(err)
	}
	return s, jobs
}

func Test_a_schedule_orders_every_6_12_24_or_48_hours(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, every := range []time.Duration{6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour} {
			s := w.schedule("a", fmt.Sprintf("%.0fh", every.Hours()), Request{URL: w.net.site("a.example", 2, nil)})
			due := s.Created.Add(every)
			w.set.change(func(set *settings) { set.shift += every - 30*time.Second })
			time.Sleep(20 * time.Second)
			if _, jobs := w.scheduled(s); len(jobs) != 0 {
				t.Errorf("%s: ordered too early", every)
			}
			time.Sleep(80 * time.Second) // whoever moves the clock is noticed within a minute
			s, jobs := w.scheduled(s)
			if len(jobs) != 1 || jobs[0].Created.Before(due) || jobs[0].Status != ledger.Completed || !s.Next.Equal(due.Add(every)) || !s.Last.Equal(due) {
				t.Errorf("%s: %d jobs, %+v", every, len(jobs), s)
			}
			if err := w.db.DeleteSchedule(t.Context(), "a", s.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func Test_a_schedule_orders_on_the_minute(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := w.schedule("a", "*/3 * * * *", Request{URL: w.net.site("a.example", 2, nil)})
		begun := w.now()
		time.Sleep(10 * time.Minute)
		s, jobs := w.scheduled(s)
		if len(jobs) != 3 || s.Skipped != 0 || s.Note != "" || s.LastJob != jobs[0].ID {
			t.Fatalf("%d jobs, %+v", len(jobs), s)
		}
		for i, j := range jobs {
			if late := j.Created.Sub(begun.Add(time.Duration(3-i) * 3 * time.Minute)); late < 0 || late > 50*time.Millisecond || j.Status != ledger.Completed {
				t.Errorf("%s late: %s", late, show(j))
			}
		}
	})
}

func Test_a_schedule_is_skipped_and_says_so_while_its_last_job_still_goes_on(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := w.schedule("a", "* * * * *", Request{URL: w.net.site("a.example", 2, nil)})
		time.Sleep(61 * time.Second)
		s, jobs := w.scheduled(s)
		if len(jobs) != 1 || s.Skipped != 0 {
			t.Fatalf("%d jobs, %+v", len(jobs), s)
		}
		// The next job is paused: it has not ended, however long it takes.
		w.net.site("a.example", 40, slow)
		time.Sleep(time.Minute)
		_, jobs = w.scheduled(s)
		if _, err := w.svc.Pause(t.Context(), "a", jobs[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		s, after := w.scheduled(s)
		if len(after) != 2 || s.Skipped != 3 || s.Note != "skipped: job "+jobs[0].ID+" was still paused" || s.LastJob != jobs[0].ID {
			t.Errorf("%d jobs, %+v", len(after), s)
		}
		if _, err := w.svc.Cancel(t.Context(), "a", jobs[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s, after = w.scheduled(s); len(after) != 3 || s.Skipped != 3 || s.Note != "" {
			t.Errorf("%d jobs, %+v", len(after), s)
		}
	})
}

func Test_what_was_missed_while_nobody_ran_is_made_up_for_once(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := w.schedule("a", "6h", Request{URL: w.net.site("a.example", 2, nil)})
		hourly := w.schedule("a", "15 * * * *", Request{URL: w.net.site("b.example", 2, nil)})
		w.close()
		time.Sleep(100 * time.Hour)
		w.open()
		back := w.now()
		time.Sleep(10 * time.Second)
		for rule, s := range map[time.Duration]ledger.Schedule{6 * time.Hour: s, 15 * time.Minute: hourly} {
			s, jobs := w.scheduled(s)
			if len(jobs) != 1 || s.Skipped != 0 || !s.Next.After(back) || s.Next.Sub(back) > rule+time.Second {
				t.Errorf("%d jobs, %+v", len(jobs), s)
			}
		}
	})
}

// stuck is a store in which schedules cannot move on.
type stuck struct {
	Store
	on *atomic.Bool
}

func (s stuck) UpdateSchedule(ctx context.Context, tenant, id string, fn func(*ledger.Schedule) error) (ledger.Schedule, error) {
	if s.on.Load() {
		return ledger.Schedule{}, errors.New("killed here")
	}
	return s.Store.UpdateSchedule(ctx, tenant, id, fn)
}

func Test_a_crash_between_the_order_and_the_moving_on_orders_once(t *testing.T) {
	on := new(atomic.Bool)
	on.Store(true)
	inWith(t, options{wrap: func(s Store) Store { return stuck{s, on} }}, func(t *testing.T, w *world) {
		s := w.schedule("a", "* * * * *", Request{URL: w.net.site("a.example", 2, nil)})
		time.Sleep(65 * time.Second) // it is tried again and again
		if s, jobs := w.scheduled(s); len(jobs) != 1 || !s.Last.IsZero() {
			t.Fatalf("%d jobs, %+v", len(jobs), s)
		}
		w.kill()
		on.Store(false)
		time.Sleep(2 * time.Second)
		s, jobs := w.scheduled(s)
		if len(jobs) != 1 || s.LastJob != jobs[0].ID || s.Last.IsZero() || s.Note != "" || !s.Next.After(w.now()) {
			t.Errorf("%d jobs, %+v", len(jobs), s)
		}
	})
}

func Test_the_schedules_of_a_disabled_tenant_rest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := w.schedule("a", "0 * * * *", Request{URL: w.net.site("a.example", 2, nil)})
		disable := func(v bool) {
			if _, err := w.db.UpdateTenant(t.Context(), "a", func(t *ledger.Tenant) error { t.Disabled = v; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		disable(true)
		time.Sleep(150 * time.Minute)
		s, jobs := w.scheduled(s)
		if len(jobs) != 0 {
			t.Errorf("%d jobs, %+v", len(jobs), s)
		}
		disable(false)
		time.Sleep(2 * time.Minute) // what it missed is made up for once
		if s, jobs = w.scheduled(s); len(jobs) != 1 || s.Next.Sub(w.now()) > 30*time.Minute {
			t.Errorf("%d jobs, %+v", len(jobs), s)
		}
	})
}

func Test_a_schedule_whose_order_is_refused_says_why_and_holds_up_no_other(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.plans = append(s.plans, limits.Plan{Name: "tiny", Quota: 1, Schedules: 5}) })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.tenant("poor", "tiny", 1)
		w.end(w.order("poor", Request{URL: w.net.site("x.example", 1, nil)}).ID)
		poor := w.schedule("poor", "* * * * *", Request{URL: w.net.site("x.example", 1, nil)})
		rich := w.schedule("a", "* * * * *", Request{URL: w.net.site("a.example", 1, nil)})
		time.Sleep(70 * time.Second)
		s, jobs := w.scheduled(poor)
		if len(jobs) != 0 || !strings.HasPrefix(s.Note, "refused: Usage limit: this month's 1 pages") || !s.Next.After(w.now()) {
			t.Errorf("%d jobs, %+v", len(jobs), s)
		}
		if _, jobs := w.scheduled(rich); len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
	})
}

func Test_a_schedule_is_checked_as_if_it_were_placed_now(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.plans = append(s.plans, limits.Plan{Name: "without"}) })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, q, none := ledger.Tenant{ID: "a", Plan: "none"}, w.tenant("q", "quota", 1), w.tenant("n", "without", 1)
		good := jsonOf(Request{URL: "https://a.example/"})
		for field, s := range map[string]ledger.Schedule{
			"rule":        {Rule: "5h", Request: []byte(good)},
			"job":         {Rule: "6h", Request: []byte(`{"url":5}`)},
			"job.url":     {Rule: "6h", Request: []byte(`{}`)},
			"job.include": {Rule: "6h", Request: []byte(`{"url":"a.example","include":["re:("]}`)},
		} {
			var bad *BadRequest
			if _, err := w.svc.CreateSchedule(t.Context(), a, s); !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		var refused *Refused
		if _, err := w.svc.CreateSchedule(t.Context(), none, ledger.Schedule{Rule: "6h", Request: []byte(good)}); !errors.As(err, &refused) {
			t.Error(err)
		}
		for i := range 3 {
			_, err := w.svc.CreateSchedule(t.Context(), q, ledger.Schedule{Rule: "6h", Request: []byte(good)})
			if (err == nil) != (i < 2) || i == 2 && !errors.As(err, &refused) {
				t.Errorf("schedule %d: %v", i, err)
			}
		}
	})
}

func Test_a_schedule_that_is_changed_or_switched_off_is_due_accordingly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := ledger.Tenant{ID: "a", Plan: "none"}
		s := w.schedule("a", "48h", Request{URL: w.net.site("a.example", 1, nil)})
		s.Rule = "*/30 * * * *"
		s, err := w.svc.UpdateSchedule(t.Context(), a, s)
		if err != nil || s.Next.Sub(w.now()) != 30*time.Minute {
			t.Fatalf("%+v, %v", s, err)
		}
		time.Sleep(10 * time.Minute)
		s.Name = "renamed" // and due as before
		if s, err = w.svc.UpdateSchedule(t.Context(), a, s); err != nil || s.Next.Sub(w.now()) != 20*time.Minute {
			t.Errorf("%+v, %v", s, err)
		}
		time.Sleep(20*time.Minute + time.Second)
		if _, jobs := w.scheduled(s); len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
		s.Enabled = false
		if s, err = w.svc.UpdateSchedule(t.Context(), a, s); err != nil || !s.Next.IsZero() {
			t.Errorf("%+v, %v", s, err)
		}
		time.Sleep(2 * time.Hour)
		if _, jobs := w.scheduled(s); len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
		s.Rule = "nonsense"
		if _, err := w.svc.UpdateSchedule(t.Context(), a, s); err == nil {
			t.Error("taken")
		}
		if _, err := w.svc.UpdateSchedule(t.Context(), ledger.Tenant{ID: "b"}, s); !errors.Is(err, ledger.ErrNoSchedule) {
			t.Error(err)
		}
	})
}
