package job

import (
	"context"
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
	})
}
