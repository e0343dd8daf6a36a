package ledgertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// firstWaiting is the plainest queue.
func firstWaiting(c ledger.Contest) string {
	if len(c.Waiting) == 0 {
		return ""
	}
	return c.Waiting[0].ID
}

// start gives a job its slot at a time.
func start(at time.Time) func(*ledger.Job) (ledger.JobChange, error) {
	return func(j *ledger.Job) (ledger.JobChange, error) {
		j.Status, j.Granted = ledger.Running, at
		return ledger.JobChange{Events: []ledger.JobEvent{{Type: "status", At: at}}}, nil
	}
}

func running(c ledger.Contest) int {
	n := 0
	for _, k := range c.Running {
		n += k
	}
	return n
}

var queueCases = []jobCase{
	{"the contest shows who waits in order, who runs, who was served since, and the tenants of those who wait", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b", "c")
		if _, err := s.UpdateTenant(t.Context(), "b", func(t *ledger.Tenant) error { t.Weight, t.Disabled = 5, true; return nil }); err != nil {
			t.Fatal(err)
		}
		empty := got[ledger.Contest](t)(s.Contest(t.Context(), t0))
		equal(t, "empty", empty, ledger.Contest{})

		orders(t, s, "a", "a1", "a2")
		orders(t, s, "c", "c1")
		b := newJob("b", "b1")
		b.Priority = 7
		order(t, s, b)
		orders(t, s, "a", "a3", "a4", "a5")
		for id, fn := range map[string]func(*ledger.Job) (ledger.JobChange, error){
			"a1": start(t0), "c1": start(t0.Add(time.Hour)), "a3": start(t0.Add(time.Hour)), "a5": setTo(ledger.Paused),
		} {
			if _, err := s.UpdateJob(t.Context(), "", id, fn); err != nil {
				t.Fatal(err)
			}
		}
		endJob(t, s, "a3", ledger.Completed, 1)
		want := ledger.Contest{
			Waiting: []ledger.Waiting{{ID: "a2", Tenant: "a"}, {ID: "b1", Tenant: "b", Priority: 7}, {ID: "a4", Tenant: "a"}},
			Running: map[string]int{"a": 1, "c": 1},
			Served:  map[string]int{"a": 1, "c": 1},
			Tenants: map[string]ledger.Tenant{"a": got[ledger.Tenant](t)(s.Tenant(t.Context(), "a")), "b": got[ledger.Tenant](t)(s.Tenant(t.Context(), "b"))},
		}
		for i, w := range want.Waiting {
			want.Waiting[i].Seq = got[ledger.Job](t)(s.Job(t.Context(), "", w.ID)).Seq
		}
		equal(t, "for people", got[ledger.Contest](t)(s.Contest(t.Context(), t0.Add(time.Hour))), want)
		want.Served["a"] = 2
		equal(t, "since earlier", got[ledger.Contest](t)(s.Contest(t.Context(), t0)), want)
		var seen ledger.Contest
		_, ok, err := s.StartNext(t.Context(), t0, func(c ledger.Contest) string { seen = c; return "" }, nil)
		if ok || err != nil {
			t.Errorf("nobody was chosen, and: %v, %v", ok, err)
		}
		equal(t, "when a slot is given away", seen, want)
	}},
	{"fetches and commands hold no slot, and fetches are listed only when they are asked for", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		for _, kind := range []string{"crawl", ledger.TypeFetch, ledger.TypeCommand} {
			j := newJob("a", kind)
			j.Type, j.Status, j.Granted = kind, ledger.Running, t0
			order(t, s, j)
		}
		c := got[ledger.Contest](t)(s.Contest(t.Context(), t0))
		equal(t, "contest", c, ledger.Contest{Running: map[string]int{"a": 1}, Served: map[string]int{"a": 1}})
		for kind, want := range map[string][]string{"": {ledger.TypeCommand, "crawl"}, ledger.TypeFetch: {ledger.TypeFetch}} {
			equal(t, "of type "+kind, jobIDs(got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{Tenant: "a", Type: kind}))), want)
		}
		got[ledger.Job](t)(s.Job(t.Context(), "a", ledger.TypeFetch))
	}},
	{"fetches and crawls of the command line hold no slot and cost what they spent", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		for i, kind := range []string{ledger.TypeFetch, ledger.TypeCommand, "crawl"} {
			j := newJob("a", "j"+kind)
			j.Type, j.Status, j.Granted, j.Reserved = kind, ledger.Running, t0, int64(i+1)
			order(t, s, j)
		}
		c := got[ledger.Contest](t)(s.Contest(t.Context(), t0))
		equal(t, "running", c.Running, map[string]int{"a": 1})
		equal(t, "served", c.Served, map[string]int{"a": 1})
		list := func(f ledger.JobFilter) []string { return jobIDs(got[[]ledger.Job](t)(s.Jobs(t.Context(), f))) }
		running := []ledger.Status{ledger.Running}
		equal(t, "those that are listed", list(ledger.JobFilter{Tenant: "a"}), []string{"jcrawl", "jcommand"})
		equal(t, "those that are listed for the operator", list(ledger.JobFilter{Statuses: running}), []string{"jcrawl", "jcommand"})
		equal(t, "fetches", list(ledger.JobFilter{Type: ledger.TypeFetch, Statuses: running}), []string{"jfetch"})
		equal(t, "foreign fetches", len(list(ledger.JobFilter{Tenant: "b", Type: ledger.TypeFetch})), 0)
		endJob(t, s, "jfetch", ledger.Completed, 1)
		u := got[ledger.Usage](t)(s.Usage(t.Context(), "a", newJob("a", "x").Month))
		if u.Used != 1 || u.Reserved != 5 {
			t.Errorf("%+v", u)
		}
	}},
	{"the chosen job gets the slot and nobody else does", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		orders(t, s, "a", "j", "k", "l")
		j, ok, err := s.StartNext(t.Context(), t0, func(ledger.Contest) string { return "k" }, start(t0.Add(time.Hour)))
		if err != nil || !ok || j.ID != "k" || j.Status != ledger.Running || !j.Granted.Equal(t0.Add(time.Hour)) {
			t.Errorf("%+v, %v, %v", j, ok, err)
		}
		c := got[ledger.Contest](t)(s.Contest(t.Context(), t0))
		if len(c.Waiting) != 2 || c.Waiting[0].ID != "j" || c.Waiting[1].ID != "l" || c.Running["a"] != 1 || c.Served["a"] != 1 {
			t.Errorf("afterwards %+v", c)
		}
		if ev := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "k", 0, 0)); len(ev) != 1 {
			t.Errorf("events %v", ev)
		}
		before := jobWorld(t, s)
		for _, id := range []string{"k", "none"} {
			if _, ok, err := s.StartNext(t.Context(), t0, func(ledger.Contest) string { return id }, start(t0)); err == nil || ok {
				t.Errorf("%s does not wait and was started: %v, %v", id, ok, err)
			}
		}
		equal(t, "ledger", jobWorld(t, s), before)
	}},
	{"eight who give slots away at once keep to a cap of three and start each job once", func(t *testing.T, s JobStore) {
		const starters, jobs, most = 8, 40, 3
		newTenants(t, s, "a", "b")
		ids := numbered("j", jobs)
		for i, id := range ids {
			order(t, s, newJob([]string{"a", "b"}[i%2], id))
		}
		var choosing, held, ended, turn atomic.Int32
		var mu sync.Mutex
		var started []string
		choose := func(c ledger.Contest) string {
			if choosing.Add(1) != 1 {
				t.Error("two choose at once")
			}
			defer choosing.Add(-1)
			if n := running(c); n > most {
				t.Errorf("%d run", n)
			} else if n == most || len(c.Waiting) == 0 {
				return ""
			}
			return c.Waiting[int(turn.Add(1))%len(c.Waiting)].ID // each another one: it is not the job that keeps them apart
		}
		var wg sync.WaitGroup
		for range starters {
			wg.Go(func() {
				for ended.Load() < jobs && !t.Failed() {
					j, ok, err := s.StartNext(context.Background(), t0, choose, start(t0))
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						continue
					}
					if n := held.Add(1); n > most {
						t.Errorf("%d slots are held", n)
					}
					mu.Lock()
					started = append(started, j.ID)
					mu.Unlock()
					held.Add(-1)
					if _, err := s.UpdateJob(context.Background(), "", j.ID, setTo(ledger.Completed)); err != nil {
						t.Error(err)
						return
					}
					ended.Add(1)
				}
			})
		}
		wg.Wait()
		seen := map[string]int{}
		for _, id := range started {
			seen[id]++
		}
		if len(seen) != jobs || len(started) != jobs {
			t.Errorf("%d starts of %d jobs, want %d of each", len(started), len(seen), jobs)
		}
	}},
	{"a job that is cancelled while slots are given away is never started afterwards", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		ids := numbered("j", 30)
		orders(t, s, "a", ids...)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range ids {
				_, err := s.UpdateJob(context.Background(), "a", ids[len(ids)-1-i], func(j *ledger.Job) (ledger.JobChange, error) {
					if j.Status == ledger.Queued {
						j.Status = ledger.Cancelled
					}
					return nothing, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for {
				_, ok, err := s.StartNext(context.Background(), t0, firstWaiting, func(j *ledger.Job) (ledger.JobChange, error) {
					if j.Status != ledger.Queued {
						t.Errorf("job %s was %s and got a slot", j.ID, j.Status)
					}
					return start(t0)(j)
				})
				if err != nil {
					t.Error(err)
				}
				if !ok || err != nil {
					return
				}
			}
		})
		wg.Wait()
		c := got[ledger.Contest](t)(s.Contest(t.Context(), t0))
		cancelled := got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{Statuses: []ledger.Status{ledger.Cancelled}}))
		if len(c.Waiting) != 0 || running(c)+len(cancelled) != len(ids) {
			t.Errorf("%d run, %d were cancelled, %d wait", running(c), len(cancelled), len(c.Waiting))
		}
	}},
}
