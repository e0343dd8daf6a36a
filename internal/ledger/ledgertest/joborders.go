package ledgertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

var errRefused = errors.New("refused")

func fullJob(tenant, id string) *ledger.Job {
	yes := true
	return &ledger.Job{ID: id, Tenant: tenant, Type: "warm", Status: ledger.Running, Error: "waits", Success: &yes, Priority: -3,
		Seeds: []string{"https://a.example/?a=1&b=<2>", `https://a.example/"`}, Request: []byte(`{"pages": 3}`), Limits: []byte(`{"b":1,"a":2}`),
		Webhook: "https://hook.example/", Schedule: "s1", Crawl: 7, Idempotency: "mine", Fingerprint: "f00", Month: month,
		Reserved: 50, Spent: 4, Created: t0, Granted: t0.Add(time.Second), Ran: 1500 * time.Microsecond, Updated: t0.Add(time.Minute)}
}

var orderCases = []jobCase{
	{"a job is read back as it was ordered", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		first := order(t, s, newJob("a", "first"))
		want := order(t, s, fullJob("a", "j"))
		if first.Seq <= 0 || want.Seq <= first.Seq {
			t.Errorf("seq %d, then %d", first.Seq, want.Seq)
		}
		equal(t, "job", got[ledger.Job](t)(s.Job(t.Context(), "a", "j")), *want)
		equal(t, "smallest job", got[ledger.Job](t)(s.Job(t.Context(), "a", "first")), *first)
		equal(t, "listed", got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{})), []ledger.Job{*want, *first})
	}},
	{"a job is returned as it will be read back, and fractions of a millisecond are dropped at once", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Created = t0.Add(999 * time.Microsecond).In(time.FixedZone("elsewhere", 3600))
		order(t, s, j)
		equal(t, "created", *j, got[ledger.Job](t)(s.Job(t.Context(), "a", "j")))
		up, err := s.UpdateJob(t.Context(), "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
			j.Granted, j.Ran = t0.Add(1234567*time.Nanosecond), 1234567*time.Nanosecond
			return nothing, nil
		})
		must(t, err)
		equal(t, "updated", up, got[ledger.Job](t)(s.Job(t.Context(), "a", "j")))
	}},
	{"an update changes everything but the identity of a job", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		old := order(t, s, newJob("a", "j"))
		other := order(t, s, newJob("a", "other"))
		want := *fullJob("a", "j")
		want.Idempotency, want.Fingerprint = "", ""
		want.Seq = old.Seq
		up, err := s.UpdateJob(t.Context(), "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
			equal(t, "what fn sees", *j, *old)
			*j = *fullJob("b", "k")
			j.Seq, j.Month, j.Created = 99, "1999-01", t0.Add(time.Hour)
			return nothing, nil
		})
		must(t, err)
		equal(t, "returned", up, want)
		equal(t, "stored", got[ledger.Job](t)(s.Job(t.Context(), "a", "j")), want)
		equal(t, "another job", got[ledger.Job](t)(s.Job(t.Context(), "a", "other")), *other)
	}},
	{"a job of nobody, or one that exists already, is refused", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		decide := func(ledger.Usage) (ledger.JobChange, error) { return nothing, nil }
		for _, tenant := range []string{"nobody", ""} {
			if _, err := s.CreateJob(t.Context(), newJob(tenant, "x"), decide); !errors.Is(err, ledger.ErrNoTenant) {
				t.Errorf("a job of %q: %v", tenant, err)
			}
		}
		order(t, s, newJob("a", "j"))
		again := newJob("b", "j")
		again.Reserved = 5
		if _, err := s.CreateJob(t.Context(), again, decide); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a second job of the same id: %v", err)
		}
		wantUsage(t, s, "b", 0, 0)
	}},
	{"an error from a callback changes nothing", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		orders(t, s, "a", "j")
		before := jobWorld(t, s)
		change := ledger.JobChange{Events: []ledger.JobEvent{{Type: "status", At: t0}},
			Deliveries: []ledger.Delivery{{Event: "x", URL: "https://hook.example/", Next: t0}}}
		refuse := func(j *ledger.Job) (ledger.JobChange, error) {
			j.Status, j.Reserved = ledger.Running, 9
			return change, errRefused
		}
		j := newJob("a", "k")
		for name, call := range map[string]func() error{
			"CreateJob": func() error {
				_, err := s.CreateJob(t.Context(), j, func(ledger.Usage) (ledger.JobChange, error) { return refuse(j) })
				return err
			},
			"UpdateJob": func() error { _, err := s.UpdateJob(t.Context(), "a", "j", refuse); return err },
			"StartNext": func() error { _, _, err := s.StartNext(t.Context(), t0, firstWaiting, refuse); return err },
			"UpdateTenant": func() error {
				_, err := s.UpdateTenant(t.Context(), "a", func(t *ledger.Tenant) error { t.Name = "x"; return errRefused })
				return err
			},
		} {
			if err := call(); !errors.Is(err, errRefused) {
				t.Errorf("%s: %v", name, err)
			}
			equal(t, "after "+name, jobWorld(t, s), before)
		}
	}},
	{"a panic in a callback changes nothing, is passed on, and leaves the store usable", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		orders(t, s, "a", "j")
		must(t, s.CreateSchedule(t.Context(), ledger.Schedule{ID: "s", Tenant: "a", Rule: "6h"}, 0))
		before := jobWorld(t, s)
		fn := func(j *ledger.Job) (ledger.JobChange, error) { j.Status = ledger.Failed; panic("bang") }
		for range 2 { // more often than there are connections that write
			for name, call := range map[string]func(){
				"decide": func() {
					s.CreateJob(t.Context(), newJob("a", "k"), func(ledger.Usage) (ledger.JobChange, error) { panic("bang") })
				},
				"fn":             func() { s.UpdateJob(t.Context(), "a", "j", fn) },
				"fn of a start":  func() { s.StartNext(t.Context(), t0, firstWaiting, fn) },
				"choose":         func() { s.StartNext(t.Context(), t0, func(ledger.Contest) string { panic("bang") }, fn) },
				"fn of a tenant": func() { s.UpdateTenant(t.Context(), "a", func(*ledger.Tenant) error { panic("bang") }) },
				"fn of a schedule": func() {
					s.UpdateSchedule(t.Context(), "a", "s", func(*ledger.Schedule) error { panic("bang") })
				},
			} {
				func() {
					defer func() {
						if r := recover(); r != "bang" {
							t.Errorf("%s: recovered %v", name, r)
						}
					}()
					call()
				}()
				equal(t, "after a panic in "+name, jobWorld(t, s), before)
			}
		}
		for _, id := range numbered("k", 20) { // more often than there are connections
			order(t, s, newJob("a", id))
		}
		endJob(t, s, "j", ledger.Completed, 1)
		wantUsage(t, s, "a", 1, 0)
	}},
	{"an order repeated under its idempotency name is the first one", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		first := newJob("a", "first")
		first.Idempotency, first.Fingerprint, first.Reserved = "mine", "f1", 5
		order(t, s, first)
		again := newJob("a", "again")
		again.Idempotency, again.Fingerprint, again.Month, again.Reserved = "mine", "f2", "2026-04", 5
		existing, err := s.CreateJob(t.Context(), again, func(ledger.Usage) (ledger.JobChange, error) {
			t.Error("decide was asked about a repeated order")
			return nothing, nil
		})
		if err != nil || existing == nil {
			t.Fatal(existing, err)
		}
		equal(t, "existing", *existing, *first)
		wantUsage(t, s, "a", 0, 5)

		theirs := newJob("b", "theirs") // the name is the tenant's own
		theirs.Idempotency = "mine"
		order(t, s, theirs)
		orders(t, s, "a", "x", "y") // no name is not a name

		endJob(t, s, "first", ledger.Completed, 0)
		must(t, s.DeleteJob(t.Context(), "a", "first"))
		order(t, s, again) // with its job the name is free again
	}},
	{"orders sent at once under one idempotency name are one job", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		var wg sync.WaitGroup
		var fresh atomic.Int32
		for i, id := range numbered("j", 20) {
			wg.Go(func() {
				j := newJob("a", id)
				j.Idempotency, j.Month = "mine", []string{month, "2026-04"}[i%2] // also over the end of a month
				existing, err := s.CreateJob(context.Background(), j, func(ledger.Usage) (ledger.JobChange, error) {
					j.Reserved = 5
					return nothing, nil
				})
				if err != nil {
					t.Error(err)
				}
				if existing == nil {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		if all := got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{})); fresh.Load() != 1 || len(all) != 1 || all[0].Reserved != 5 {
			t.Errorf("%d called new, stored %+v", fresh.Load(), all)
		}
	}},
	{"updates of one job at the same time lose none", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		orders(t, s, "a", "j")
		const writers, each = 8, 10
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					_, err := s.UpdateJob(context.Background(), "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
						j.Spent++
						return ledger.JobChange{Events: []ledger.JobEvent{{Type: "tick"}}}, nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if j := got[ledger.Job](t)(s.Job(t.Context(), "a", "j")); j.Spent != writers*each {
			t.Errorf("%d of %d updates", j.Spent, writers*each)
		}
		if ev := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", 0, 0)); len(ev) != writers*each {
			t.Errorf("%d of %d events", len(ev), writers*each)
		}
	}},
	{"jobs are chosen by every filter, newest first, behind a cursor that neither repeats nor skips", jobFilters},
	{"text from strangers in a job is stored as valid UTF-8 without NUL", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Error, j.Seeds, j.Webhook = "a\x00b\xff"+strings.Repeat("é", ledger.MaxText), []string{"https://a.example/\x00\xff"}, "https://x/\x00"
		j.Idempotency = "my\x00name"
		order(t, s, j)
		must(t, s.AddEvents(t.Context(), []ledger.JobEvent{{Job: "j", Type: "a\x00", Data: "\xff"}}))
		j2 := got[ledger.Job](t)(s.Job(t.Context(), "a", "j"))
		equal(t, "seeds", j2.Seeds, []string{"https://a.example/\uFFFD\uFFFD"})
		if !strings.HasPrefix(j2.Error, "a\uFFFDb\uFFFDé") || len(j2.Error) > ledger.MaxText {
			t.Errorf("error %.20q of %d bytes", j2.Error, len(j2.Error))
		}
		again := newJob("a", "again")
		again.Idempotency = j.Idempotency
		if existing, err := s.CreateJob(t.Context(), again, nil); err != nil || existing == nil || existing.ID != "j" {
			t.Errorf("existing %v, %v", existing, err)
		}
		if _, err := s.Job(t.Context(), "a", "no\x00ne\xff"); !errors.Is(err, ledger.ErrNoJob) {
			t.Errorf("a strange id: %v", err)
		}
		if all, err := s.Jobs(t.Context(), ledger.JobFilter{Match: "\x00"}); err != nil || len(all) != 1 {
			t.Errorf("found by a strange text: %d, %v", len(all), err)
		}
	}},
}

// jobFilters compares the store with a plain loop over the same jobs.
func jobFilters(t *testing.T, s JobStore) {
	newTenants(t, s, "a", "b")
	statuses := []ledger.Status{ledger.Queued, ledger.Running, ledger.Paused, ledger.Completed, ledger.Partial, ledger.Failed, ledger.Cancelled}
	var stored []ledger.Job
	for i, id := range numbered("j", 61) {
		j := newJob([]string{"a", "b"}[i%3%2], id)
		j.Status, j.Type = statuses[i*5%7], []string{"crawl", "warm"}[i%2]
		j.Seeds = append(j.Seeds, "https://x.example/?"+strings.Repeat("a&", i%4))
		if i%4 == 0 {
			j.Schedule = "s1"
		}
		stored = append(stored, *order(t, s, j))
	}
	slices.Reverse(stored)
	for name, f := range map[string]ledger.JobFilter{
		"all":                  {},
		"tenant":               {Tenant: "a"},
		"nobody":               {Tenant: "c"},
		"status":               {Statuses: []ledger.Status{ledger.Running}},
		"statuses":             {Statuses: []ledger.Status{ledger.Running, ledger.Completed, ledger.Queued, ledger.Running}},
		"tenant's statuses":    {Tenant: "b", Statuses: []ledger.Status{ledger.Paused, ledger.Failed}},
		"type":                 {Type: "warm"},
		"schedule":             {Schedule: "s1", Tenant: "a"},
		"id":                   {Match: "j01"},
		"seed":                 {Match: "?a&a&a"},
		"not two seeds' seam":  {Match: `","`},
		"not a pattern":        {Match: "%"},
		"limit":                {Limit: 5, Statuses: []ledger.Status{ledger.Running, ledger.Completed}},
		"before":               {Before: stored[20].Seq, Tenant: "a"},
		"before the very last": {Before: stored[60].Seq},
	} {
		want := jobSieve(stored, f)
		equal(t, name, jobIDs(got[[]ledger.Job](t)(s.Jobs(t.Context(), f))), jobIDs(want))
		var walked []string
		for f.Limit = 4; ; {
			page := got[[]ledger.Job](t)(s.Jobs(t.Context(), f))
			walked = append(walked, jobIDs(page)...)
			if len(page) < f.Limit || len(walked) > len(stored) {
				break
			}
			f.Before = page[len(page)-1].Seq
			newest := newJob("a", "new-"+name+walked[len(walked)-1]) // what is ordered meanwhile does not shift the rest
			newest.Status, newest.Type, newest.Schedule = ledger.Running, "warm", "s1"
			order(t, s, newest)
			endJob(t, s, newest.ID, ledger.Completed, 0)
			must(t, s.DeleteJob(t.Context(), "", newest.ID))
		}
		if name != "limit" {
			equal(t, name+", page by page", walked, jobIDs(want))
		}
	}
}

// jobSieve is what a filter means, in a plain loop.
func jobSieve(jobs []ledger.Job, f ledger.JobFilter) []ledger.Job {
	var out []ledger.Job
	for _, j := range jobs {
		in := func(s string) bool { return strings.Contains(s, f.Match) }
		if (f.Tenant == "" || j.Tenant == f.Tenant) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, j.Status)) &&
			(f.Type == "" || j.Type == f.Type) && (f.Schedule == "" || j.Schedule == f.Schedule) &&
			(in(j.ID) || slices.ContainsFunc(j.Seeds, in)) && (f.Before == 0 || j.Seq < f.Before) && (f.Limit == 0 || len(out) < f.Limit) {
			out = append(out, j)
		}
	}
	return out
}

// jobWorld is all that a store says about jobs and tenants, for comparing two
// moments of it.
func jobWorld(t *testing.T, s JobStore) any {
	t.Helper()
	type world struct {
		Jobs       []ledger.Job
		Events     [][]ledger.JobEvent
		Deliveries [][]ledger.Delivery
		Tenants    []ledger.Tenant
		Schedules  []ledger.Schedule
		Keys       []ledger.Key
		Usage      []ledger.Usage
	}
	w := world{Jobs: got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{})), Tenants: got[[]ledger.Tenant](t)(s.Tenants(t.Context())),
		Schedules: got[[]ledger.Schedule](t)(s.Schedules(t.Context(), "")), Keys: got[[]ledger.Key](t)(s.Keys(t.Context(), ""))}
	for _, j := range w.Jobs {
		w.Events = append(w.Events, got[[]ledger.JobEvent](t)(s.Events(t.Context(), j.ID, 0, 0)))
		w.Deliveries = append(w.Deliveries, got[[]ledger.Delivery](t)(s.DeliveriesOf(t.Context(), j.ID)))
	}
	for _, tenant := range w.Tenants {
		w.Usage = append(w.Usage, got[ledger.Usage](t)(s.Usage(t.Context(), tenant.ID, month)))
	}
	return w
}
