package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"tiptoe/internal/ledger"
)

// within is a decision as a service makes it: what is left of a quota, or a
// refusal.
func within(j *ledger.Job, quota, pages int64) func(ledger.Usage) (ledger.JobChange, error) {
	return func(u ledger.Usage) (ledger.JobChange, error) {
		left := quota - u.Used - u.Reserved
		if left <= 0 {
			return nothing, errRefused
		}
		j.Reserved = min(pages, left)
		return ledger.JobChange{Events: []ledger.JobEvent{{Type: "status", At: t0, Data: `{"status":"queued"}`}}}, nil
	}
}

var quotaCases = []jobCase{
	{"200 orders at once at a remaining quota of 10 pages are given exactly 10", func(t *testing.T, s JobStore) {
		const quota, spent, at = 110, 100, 200
		for _, c := range []struct {
			pages int64
			jobs  int
		}{{1, 10}, {3, 4}, {50, 1}} {
			tenant := fmt.Sprint("asks", c.pages)
			newTenants(t, s, tenant)
			used := newJob(tenant, tenant+"used")
			used.Reserved = spent
			order(t, s, used)
			endJob(t, s, used.ID, ledger.Completed, spent)

			var wg sync.WaitGroup
			var mu sync.Mutex
			var granted int64
			taken := 0
			for i := range at {
				wg.Go(func() {
					j := newJob(tenant, fmt.Sprint(tenant, "-", i))
					_, err := s.CreateJob(context.Background(), j, within(j, quota, c.pages))
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						granted += j.Reserved
						taken++
					case !errors.Is(err, errRefused):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if granted != quota-spent || taken != c.jobs {
				t.Errorf("orders of %d pages: %d pages given to %d jobs, want %d to %d", c.pages, granted, taken, quota-spent, c.jobs)
			}
			wantUsage(t, s, tenant, spent, quota-spent)
			if all := got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{Tenant: tenant})); len(all) != c.jobs+1 {
				t.Errorf("%d jobs stored, want %d", len(all), c.jobs+1)
			}
		}
	}},
	{"the end of a job gives back what it did not use, once", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		for _, id := range []string{"j", "k"} {
			j := newJob("a", id)
			j.Reserved = 50
			order(t, s, j)
		}
		theirs := newJob("b", "theirs")
		theirs.Reserved = 5
		order(t, s, theirs)
		wantUsage(t, s, "a", 0, 100)
		for range 3 { // a report that is repeated
			j := endJob(t, s, "j", ledger.Partial, 20)
			if j.Reserved != 0 || j.Spent != 20 {
				t.Errorf("after its end %d pages are reserved and %d spent", j.Reserved, j.Spent)
			}
			wantUsage(t, s, "a", 20, 50)
		}
		j := endJob(t, s, "j", ledger.Failed, 33) // another end, with another bill
		if j.Status != ledger.Failed || j.Spent != 20 {
			t.Errorf("after a second end %+v", j)
		}
		wantUsage(t, s, "a", 20, 50)
		endJob(t, s, "k", ledger.Completed, 50)
		wantUsage(t, s, "a", 70, 0)
		wantUsage(t, s, "b", 0, 5)
		wantUsage(t, s, "", 70, 5) // the operator sees the sum
	}},
	{"what an end costs is in the books before anybody else decides", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Reserved = 10
		order(t, s, j)
		endJob(t, s, "j", ledger.Completed, 4)
		k := newJob("a", "k")
		if _, err := s.CreateJob(t.Context(), k, func(u ledger.Usage) (ledger.JobChange, error) {
			equal(t, "usage", u, ledger.Usage{Tenant: "a", Month: month, Used: 4})
			return nothing, nil
		}); err != nil {
			t.Fatal(err)
		}
	}},
	{"a job that has ended cannot go on", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Reserved = 9
		order(t, s, j)
		endJob(t, s, "j", ledger.Cancelled, 2)
		before := jobWorld(t, s)
		if _, err := s.UpdateJob(t.Context(), "a", "j", setTo(ledger.Running)); !errors.Is(err, ledger.ErrEnded) {
			t.Errorf("error %v", err)
		}
		equal(t, "ledger", jobWorld(t, s), before)
	}},
	{"a job that reserved nothing pays all the same, in its own month", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Month = "2025-12"
		order(t, s, j)
		endJob(t, s, "j", ledger.Completed, 7)
		wantUsage(t, s, "a", 0, 0)
		equal(t, "December", got[ledger.Usage](t)(s.Usage(t.Context(), "a", "2025-12")), ledger.Usage{Tenant: "a", Month: "2025-12", Used: 7})
	}},
	{"a reservation that changes while a job runs is changed in the books", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Reserved = 10
		order(t, s, j)
		for _, n := range []int64{30, 5} {
			if _, err := s.UpdateJob(t.Context(), "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
				j.Status, j.Reserved = ledger.Running, n
				return nothing, nil
			}); err != nil {
				t.Fatal(err)
			}
			wantUsage(t, s, "a", 0, n)
		}
		endJob(t, s, "j", ledger.Completed, 3)
		wantUsage(t, s, "a", 3, 0)
	}},
	{"a job that is stored in an end reserves nothing", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		j := newJob("a", "j")
		j.Status, j.Reserved, j.Spent = ledger.Failed, 5, 1
		order(t, s, j)
		wantUsage(t, s, "a", 1, 0)
	}},
	{"the books stay exact while jobs are ordered, end and are deleted at once", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		const workers, each = 8, 12
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				tenant := []string{"a", "b"}[w%2]
				for i := range each {
					j := newJob(tenant, fmt.Sprint("w", w, "-", i))
					if _, err := s.CreateJob(context.Background(), j, within(j, 1_000_000, 10)); err != nil {
						t.Error(err)
						return
					}
					for range 2 {
						if _, err := s.UpdateJob(context.Background(), tenant, j.ID, func(j *ledger.Job) (ledger.JobChange, error) {
							j.Status, j.Spent = ledger.Completed, 3
							return ledger.JobChange{Events: []ledger.JobEvent{{Type: "status"}}}, nil
						}); err != nil {
							t.Error(err)
						}
					}
					if i%2 == 0 {
						if err := s.DeleteJob(context.Background(), tenant, j.ID); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		wantUsage(t, s, "a", 3*each*workers/2, 0)
		wantUsage(t, s, "b", 3*each*workers/2, 0)
	}},
}
