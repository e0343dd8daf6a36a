package job

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// elsewhere moves a job's heartbeat as a driver in another process would, and
// with it grants it there.
func (w *world) elsewhere(id string, grant bool) {
	w.t.Helper()
	_, err := w.db.UpdateJob(context.Background(), "", id, func(j *ledger.Job) (ledger.JobChange, error) {
		if j.Updated = w.now(); grant {
			j.Status, j.Granted = ledger.Running, w.now()
		}
		return ledger.JobChange{}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func Test_a_job_of_another_server_is_taken_up_when_nothing_was_heard_of_it_for_long(t *testing.T) {
	inWith(t, options{shared: true, idle: true}, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("s.example", 10, nil)})
		w.elsewhere(j.ID, true)
		w.serve()
		for range 20 {
			time.Sleep(heartbeat)
			w.elsewhere(j.ID, false)
			if w.svc.driven(j.ID) != nil {
				t.Fatal("a job that another server drives was taken up")
			}
		}
		silent := w.now()
		j = w.end(j.ID)
		if waited := j.Granted.Sub(silent); j.Status != ledger.Completed || waited < silence-time.Second || waited > 2*silence {
			t.Errorf("%s; it was taken up after %s", show(j), waited)
		}
	})
}

// away is a store that now and then nobody reaches.
type away struct {
	Store
	gone *atomic.Bool
}

func (s away) Jobs(ctx context.Context, f ledger.JobFilter) ([]ledger.Job, error) {
	if s.gone.Load() {
		return nil, errors.New("the connection was refused")
	}
	return s.Store.Jobs(ctx, f)
}

func Test_a_store_that_was_away_for_long_takes_no_job_from_a_server_that_lives(t *testing.T) {
	gone := new(atomic.Bool)
	inWith(t, options{shared: true, idle: true, wrap: func(s Store) Store { return away{s, gone} }}, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("s.example", 10, nil)})
		w.elsewhere(j.ID, true)
		j = w.job(j.ID)
		w.serve()
		for range 3 {
			time.Sleep(heartbeat)
			w.elsewhere(j.ID, false)
			time.Sleep(silence / 5) // and is seen
			gone.Store(true)
			time.Sleep(4 * silence) // it cannot be heard, and we cannot hear
			gone.Store(false)
			time.Sleep(2 * heartbeat)
			if now := w.job(j.ID); !now.Granted.Equal(j.Granted) {
				t.Fatalf("a job that another server drives was taken up: %s", show(now))
			}
			w.elsewhere(j.ID, false)
		}
		if j = w.end(j.ID); j.Status != ledger.Completed { // now it is silent indeed
			t.Error(show(j))
		}
	})
}

func Test_a_driver_whose_job_another_server_has_taken_writes_nothing_more_of_it(t *testing.T) {
	inWith(t, options{shared: true}, func(t *testing.T, w *world) {
		j := w.until(w.order("a", Request{URL: w.net.site("s.example", 10, nil)}).ID, ledger.Running)
		a := w.svc.driven(j.ID)
		time.Sleep(time.Millisecond) // another time of grant
		w.elsewhere(j.ID, true)
		if err := a.mine(&j); err != nil {
			t.Errorf("its own grant: %v", err)
		}
		<-a.ended
		if j = w.job(j.ID); j.Status != ledger.Running || j.Spent != 0 {
			t.Errorf("the driver wrote %s", show(j))
		}
		if !w.logs.has("another server has taken a job up") {
			t.Error("nobody is told:", w.logs.tail())
		}
		if w.logs.has("could not be written down") {
			t.Error("that another server has the job is called an error:", w.logs.tail())
		}
	})
}
