package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

func Test_SAF_2_SAF_6_five_jobs_at_once_run_strictly_one_at_a_time_in_order_of_submission(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var ids []string
		for i := range 5 {
			ids = append(ids, w.order("a", Request{URL: w.net.site(fmt.Sprintf("s%d.example", i), 10, nil)}).ID)
		}
		synctest.Wait()
		for i, id := range ids {
			j := w.job(id)
			place, ok := w.svc.Position(id)
			if i == 0 && (j.Status != ledger.Running || ok) || i > 0 && (j.Status != ledger.Queued || place != i || j.Error != "") {
				t.Errorf("job %d is %s %q, place %d", i, j.Status, j.Error, place) // waiting is no error
			}
		}
		if queued, running, slots := w.svc.Contest(); queued != 4 || running != 1 || slots != 1 {
			t.Errorf("%d wait, %d run, %d slots", queued, running, slots)
		}
		var last ledger.Job
		for i, id := range ids {
			j := w.end(id)
			if j.Status != ledger.Completed || j.Spent != 10 {
				t.Error(show(j))
			}
			if i > 0 && (j.Granted.Before(last.Ended) || j.Granted.Sub(last.Ended) > 100*time.Millisecond) {
				t.Errorf("job %d was given its slot %s after the end of the one before", i, j.Granted.Sub(last.Ended))
			}
			last = j
		}
		var hosts []string // as the web saw them
		for _, h := range w.net.pages() {
			hosts = append(hosts, h.host)
		}
		if !slices.IsSorted(hosts) {
			t.Errorf("they took turns: %v", hosts)
		}
	})
}

// panicking crashes on one host as a decoder might.
type panicking struct{ fetch.Doer }

func (p panicking) Do(ctx context.Context, req *fetch.Request) (*fetch.Response, error) {
	if req.URL.HostKey() == "bang.example" && strings.HasPrefix(req.URL.RequestURI(), "/p") {
		panic("bang")
	}
	return p.Doer.Do(ctx, req)
}

// crashing is a builder that panics, when the order was already taken.
type crashing struct {
	Builder
	armed *atomic.Bool
}

func (c crashing) Spec(r *Request, seeds []string, e *limits.Effective) (crawl.Spec, error) {
	if c.armed.Load() && r.Label == "bang" {
		panic("bang")
	}
	if c.armed.Load() && r.Label == "fail" {
		return crawl.Spec{}, errors.New("no longer possible")
	}
	return c.Builder.Spec(r, seeds, e)
}

func Test_SAF_2_the_slot_is_handed_on_at_once_however_a_job_ends(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		act     func(w *world, id string) // on the job that runs
		want    ledger.Status
		why     string
	}{
		"success": {want: ledger.Completed},
		"failure": {request: Request{Label: "fail"}, want: ledger.Failed, why: "internal error: no longer possible"},
		"panic":   {request: Request{Label: "bang"}, want: ledger.Failed, why: "internal error: the crawl crashed; the log says where"},
		"timeout": {request: Request{Seconds: ptr(0.5)}, want: ledger.Partial, why: "Budget exceeded: time limit (0.5s)"},
		"cancel":  {act: func(w *world, id string) { w.svc.Cancel(context.Background(), "a", id) }, want: ledger.Cancelled, why: "Cancelled"},
		"pause":   {act: func(w *world, id string) { w.svc.Pause(context.Background(), "a", id) }, want: ledger.Paused, why: "Paused"},
	} {
		t.Run(name, func(t *testing.T) {
			armed := new(atomic.Bool)
			inWith(t, options{builder: func(b Builder) Builder { return crashing{b, armed} }}, func(t *testing.T, w *world) {
				blocker := w.order("a", Request{URL: w.net.site("first.example", 10, nil)})
				r := tc.request
				r.URL = w.net.site("a.example", 20, nil)
				j, next := w.order("a", r), w.order("a", Request{URL: w.net.site("next.example", 2, nil)})
				armed.Store(true)
				w.end(blocker.ID)
				if tc.act != nil {
					w.until(j.ID, ledger.Running)
					time.Sleep(700 * time.Millisecond)
					tc.act(w, j.ID)
				}
				ended := w.until(j.ID, tc.want)
				if ended.Error != tc.why {
					t.Errorf("%q", ended.Error)
				}
				last := w.end(next.ID)
				if wait := last.Granted.Sub(ended.Updated); last.Status != ledger.Completed || wait < 0 || wait > 10*time.Millisecond {
					t.Errorf("%s, and its slot came %s after the end of the one before", last.Status, wait)
				}
				if name == "panic" && !w.logs.has("level=ERROR", "panic=bang", j.ID) {
					t.Error("the log does not say where")
				}
			})
		})
	}
}

func Test_SAF_2_a_panic_in_one_request_costs_that_page_and_neither_the_job_nor_the_process(t *testing.T) {
	synctestWorld(t, func(w *world) { w.fetch = panicking{w.net} }, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("bang.example", 3, nil)})
		next := w.order("a", Request{URL: w.net.site("next.example", 2, nil)})
		if j := w.end(j.ID); j.Status != ledger.Completed || j.Spent != 3 {
			t.Error(show(j))
		}
		p, ok, err := w.db.Page(t.Context(), w.job(j.ID).Crawl, "https://bang.example/p1")
		if err != nil || !ok || p.Outcome.String() != "poison" {
			t.Errorf("%+v, %t, %v", p, ok, err)
		}
		if j := w.end(next.ID); j.Status != ledger.Completed {
			t.Error(show(j))
		}
	})
}

// brokenEnd is a store that cannot write a while.
type brokenEnd struct {
	Store
	fails *atomic.Int32
}

func (s brokenEnd) UpdateJob(ctx context.Context, tenant, id string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, error) {
	return s.Store.UpdateJob(ctx, tenant, id, func(j *ledger.Job) (ledger.JobChange, error) {
		c, err := fn(j)
		if err == nil && j.Status.Done() && s.fails.Add(-1) >= 0 {
			return c, errors.New("the disk is full")
		}
		return c, err
	})
}

func Test_SAF_2_a_slot_is_not_lost_when_the_end_of_its_job_cannot_be_written_for_a_while(t *testing.T) {
	fails := new(atomic.Int32)
	fails.Store(3)
	inWith(t, options{wrap: func(s Store) Store { return brokenEnd{s, fails} }}, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 2, nil)})
		next := w.order("a", Request{URL: w.net.site("b.example", 2, nil)})
		if j := w.end(j.ID); j.Status != ledger.Completed || j.Spent != 2 {
			t.Error(show(j))
		}
		if j := w.end(next.ID); j.Status != ledger.Completed {
			t.Error(show(j))
		}
	})
}

func Test_SAF_2_a_restart_under_a_lower_cap_takes_up_no_more_jobs_than_it_has_slots(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxCrawls = 3 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range 3 {
			ids = append(ids, w.order("a", Request{URL: w.net.site(fmt.Sprintf("s%d.example", i), 60, nil)}).ID)
		}
		time.Sleep(2500 * time.Millisecond)
		if _, running, _ := w.svc.Contest(); running != 3 {
			t.Fatalf("%d run", running)
		}
		w.set.change(func(s *settings) { s.caps.MaxCrawls = 1 })
		w.kill()
		begun := time.Now()
		for _, id := range ids {
			if j := w.end(id); j.Status != ledger.Partial || j.Spent != 50 {
				t.Error(show(j))
			}
		}
		var hosts []string
		for _, h := range w.net.pages() {
			if h.at.After(begun) {
				hosts = append(hosts, h.host)
			}
		}
		if !slices.IsSorted(hosts) {
			t.Errorf("more than one at a time: %v", hosts)
		}
	})
}

func Test_a_tenant_with_a_hundred_jobs_does_not_starve_one_with_a_single_job(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.tenant("b", "none", 1)
		for i := range 100 {
			w.order("a", Request{URL: w.net.site(fmt.Sprintf("s%d.example", i), 1, nil)})
		}
		late := w.order("b", Request{URL: w.net.site("late.example", 1, nil)})
		if place, _ := w.svc.Position(late.ID); place != 1 {
			t.Errorf("place %d", place)
		}
		w.end(late.ID)
		ended, err := w.db.Jobs(t.Context(), ledger.JobFilter{Tenant: "a", Statuses: []ledger.Status{ledger.Completed}})
		if err != nil || len(ended) > 2 {
			t.Errorf("%d jobs of the other went first, %v", len(ended), err)
		}
		w.set.change(func(s *settings) { s.caps.MaxCrawls = 0 }) // the rest at once
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func Test_a_plan_s_concurrent_crawls_leave_the_other_slots_to_others(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) {
			s.caps.MaxCrawls = 3
			s.plans = append(s.plans, limits.Plan{Name: "one", Crawls: 1})
		})
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.tenant("b", "one", 1)
		var mine []string
		for i := range 3 {
			mine = append(mine, w.order("b", Request{URL: w.net.site(fmt.Sprintf("b%d.example", i), 10, nil)}).ID)
		}
		synctest.Wait()
		for i, want := range []ledger.Status{ledger.Running, ledger.Queued, ledger.Queued} {
			if st := w.job(mine[i]).Status; st != want {
				t.Errorf("job %d is %s", i, st)
			}
		}
		for i := range 2 {
			j := w.order("a", Request{URL: w.net.site(fmt.Sprintf("a%d.example", i), 10, nil)})
			synctest.Wait()
			if st := w.job(j.ID).Status; st != ledger.Running {
				t.Errorf("another tenant's job is %s", st)
			}
		}
		for i := 1; i < 3; i++ {
			if before, j := w.end(mine[i-1]), w.end(mine[i]); j.Granted.Before(before.Ended) {
				t.Errorf("%s before %s", j.Granted, before.Ended)
			}
		}
	})
}
