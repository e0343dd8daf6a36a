package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/ledger"
)

var statuses = []ledger.Status{ledger.Queued, ledger.Running, ledger.Paused, ledger.Completed, ledger.Partial, ledger.Failed, ledger.Cancelled}

// steps are the legal ones as SPEC §11 has them, written down a second time.
var steps = strings.Fields(`queued>running queued>paused queued>cancelled
	running>completed running>partial running>failed running>cancelled running>paused
	paused>queued paused>cancelled`)

func Test_every_pair_of_statuses_is_a_step_exactly_if_the_table_says_so(t *testing.T) {
	for _, from := range append(statuses, "", "success") {
		for _, to := range append(statuses, "", "success") {
			j := ledger.Job{Status: from}
			err := step(&j, to)
			var illegal *Illegal
			switch legal := slices.Contains(steps, string(from+">"+to)); {
			case legal && (err != nil || j.Status != to):
				t.Errorf("%s to %s: %v", from, to, err)
			case !legal && (!errors.As(err, &illegal) || j.Status != from):
				t.Errorf("%s to %s: passed, or moved all the same: %v", from, to, err)
			}
		}
	}
}

func Test_an_end_is_final_and_says_so(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 2, nil)
		j := w.end(w.order("a", Request{URL: url}).ID)
		for name, call := range map[string]func(context.Context, string, string) (ledger.Job, error){
			"cancel": w.svc.Cancel, "pause": w.svc.Pause, "resume": w.svc.Resume,
		} {
			var illegal *Illegal
			if _, err := call(t.Context(), "a", j.ID); !errors.As(err, &illegal) || !strings.Contains(err.Error(), "an end is final") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := w.job(j.ID); after.Status != ledger.Completed || after.Updated != j.Updated {
			t.Error(show(after))
		}
	})
}

func Test_a_job_that_is_foreign_is_like_one_that_is_not_there(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.tenant("b", "none", 1)
		j := w.order("a", Request{URL: w.net.site("a.example", 100, nil)})
		for name, call := range map[string]func(context.Context, string, string) (ledger.Job, error){
			"cancel": w.svc.Cancel, "pause": w.svc.Pause, "resume": w.svc.Resume,
			"delete": func(ctx context.Context, tenant, id string) (ledger.Job, error) {
				return ledger.Job{}, w.svc.Delete(ctx, tenant, id)
			},
		} {
			_, foreign := call(t.Context(), "b", j.ID)
			_, missing := call(t.Context(), "b", "j_none")
			if !errors.Is(foreign, ledger.ErrNoJob) || fmt.Sprint(foreign) != fmt.Sprint(missing) {
				t.Errorf("%s: %v, %v", name, foreign, missing)
			}
		}
		if st := w.job(j.ID).Status; st.Done() || st == ledger.Paused {
			t.Error(st)
		}
	})
}

// The story of each job, as its events tell it, is read back and every step
// held against the table.
func Test_cancel_pause_resume_and_the_end_at_once_never_leave_the_table(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxCrawls = 3 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var ids []string
		for i := range 12 {
			url := w.net.site(fmt.Sprintf("s%d.example", i), 6, nil)
			j := w.order("a", Request{URL: url})
			ids = append(ids, j.ID)
			for k := range 3 {
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				all.Go(func() {
					for range 8 {
						time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
						call := []func(context.Context, string, string) (ledger.Job, error){w.svc.Pause, w.svc.Resume, w.svc.Resume, w.svc.Cancel}[rnd.IntN(8)/2%4]
						if k > 0 {
							call = []func(context.Context, string, string) (ledger.Job, error){w.svc.Pause, w.svc.Resume}[rnd.IntN(2)]
						}
						_, err := call(context.Background(), "a", j.ID)
						var illegal *Illegal
						if err != nil && !errors.As(err, &illegal) {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		for _, id := range ids { // whoever was paused last goes on now
			if _, err := w.svc.Resume(t.Context(), "a", id); err != nil {
				var illegal *Illegal
				if !errors.As(err, &illegal) {
					t.Error(err)
				}
			}
			w.end(id)
			at := ledger.Queued
			story := w.events(id, "status")
			for _, e := range story[1:] {
				if !slices.Contains(steps, string(at+">"+e.Status)) {
					t.Errorf("%s became %s: %+v", at, e.Status, story)
				}
				at = e.Status
			}
			if j := w.job(id); j.Status != at || j.Reserved != 0 || (j.Success == nil) || j.Ended.IsZero() {
				t.Errorf("told %s, stored %+v", at, j)
			}
		}
	})
}

func Test_who_cancels_a_job_that_is_being_paused_gets_it_cancelled(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 50, func(*hit) reply { return reply{took: 10 * time.Second} })
		j := w.order("a", Request{URL: url})
		w.until(j.ID, ledger.Running)
		time.Sleep(time.Second)
		var both sync.WaitGroup
		both.Go(func() { w.svc.Pause(context.Background(), "a", j.ID) })
		synctest.Wait()
		both.Go(func() {
			if j, err := w.svc.Cancel(context.Background(), "a", j.ID); err != nil || j.Status != ledger.Cancelled {
				t.Errorf("%s, %v", j.Status, err)
			}
		})
		both.Wait()
		if j := w.job(j.ID); j.Status != ledger.Cancelled {
			t.Error(show(j))
		}
	})
}

func Test_who_cancels_a_job_that_ends_by_itself_meanwhile_is_told(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 1, func(*hit) reply { return reply{took: time.Second} })
		j := w.order("a", Request{URL: url})
		w.until(j.ID, ledger.Running)
		time.Sleep(500 * time.Millisecond) // its only page arrives within the grace
		got, err := w.svc.Cancel(t.Context(), "a", j.ID)
		if w.job(j.ID).Status == ledger.Cancelled && err == nil {
			return
		}
		var illegal *Illegal
		if !errors.As(err, &illegal) {
			t.Errorf("%s, %v; it is %s", got.Status, err, w.job(j.ID).Status)
		}
	})
}

// slowGrant lets somebody else act when a slot is granted in the store, and
// the service has not heard of it yet.
type slowGrant struct {
	Store
	granted func(id string)
}

func (s slowGrant) StartNext(ctx context.Context, since time.Time, choose func(ledger.Contest) string, fn func(*ledger.Job) (ledger.JobChange, error)) (ledger.Job, bool, error) {
	j, ok, err := s.Store.StartNext(ctx, since, choose, fn)
	if ok {
		s.granted(j.ID)
	}
	return j, ok, err
}

func Test_a_job_can_be_cancelled_in_the_instant_of_its_grant(t *testing.T) {
	done := make(chan error, 1)
	var w *world
	o := options{wrap: func(s Store) Store {
		return slowGrant{s, func(id string) {
			go func() {
				_, err := w.svc.Cancel(context.Background(), "a", id)
				done <- err
			}()
			time.Sleep(10 * time.Millisecond)
		}}
	}}
	inWith(t, o, func(t *testing.T, world *world) {
		w = world
		done = make(chan error, 1) // of this bubble
		j := w.order("a", Request{URL: w.net.site("a.example", 50, nil)})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if j := w.job(j.ID); j.Status != ledger.Cancelled {
			t.Error(show(j))
		}
	})
}
