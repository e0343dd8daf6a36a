package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// pane is a window in memory.
type pane struct {
	mu     sync.Mutex
	text   map[string][]byte
	until  map[string]time.Time
	looks  int
	broken bool // it does not answer
}

func newPane() *pane { return &pane{text: map[string][]byte{}, until: map[string]time.Time{}} }

func (p *pane) Show(_ context.Context, name string, text []byte, ttl time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text[name], p.until[name] = text, time.Now().Add(ttl)
	return nil
}

func (p *pane) Shown(ctx context.Context, name string) ([]byte, time.Duration, error) {
	p.mu.Lock()
	p.looks++
	text, left, broken := p.text[name], time.Until(p.until[name]), p.broken
	p.mu.Unlock()
	if broken {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	if left <= 0 {
		return nil, 0, nil
	}
	return text, left, nil
}

func (p *pane) set(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.looks = broken, 0
}

func (p *pane) looked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
}

// inFleet is a world with a second server over the same store, which drives
// nothing.
func inFleet(t *testing.T, o options, f func(t *testing.T, w *world, other *Service)) {
	t.Helper()
	o.shared = true
	inWith(t, o, func(t *testing.T, w *world) {
		other, err := New(w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		f(t, w, other)
	})
}

func Test_a_server_that_does_not_drive_a_job_has_the_picture_of_the_one_that_does(t *testing.T) {
	window := newPane()
	inFleet(t, options{window: window}, func(t *testing.T, w *world, other *Service) {
		w.set.delay = 10 * time.Second // so that nothing moves between two looks
		j := w.until(w.order("a", Request{URL: w.net.site("s.example", 40, nil)}).ID, ledger.Running)
		if !other.Elsewhere(j.ID) || w.svc.Elsewhere(j.ID) {
			t.Error("who drives the job is not known")
		}
		time.Sleep(5500 * time.Millisecond)
		want, _ := w.svc.Live(t.Context(), j.ID)
		got, ok := other.Live(t.Context(), j.ID)
		if !ok || got.Counters != want.Counters || got.Queued != want.Queued || got.Queued == 0 || got.Binding != want.Binding || got.Crawl != want.Crawl ||
			!slices.Equal(got.Layers, want.Layers) ||
			fmt.Sprint(got.Waiting, got.Waits, got.Outcomes, got.Hosts) != fmt.Sprint(want.Waiting, want.Waits, want.Outcomes, want.Hosts) {
			t.Errorf("%t\n%+v, want\n%+v", ok, got, want)
		}
		if old := w.now().Sub(got.At); old > 2*showEvery {
			t.Errorf("it is %s old", old)
		}

		// Many who watch cost one look a second.
		window.set(false)
		time.Sleep(showEvery)
		for range 100 {
			if _, ok := other.Live(t.Context(), j.ID); !ok {
				t.Fatal("the picture is gone")
			}
		}
		if n := window.looked(); n != 1 {
			t.Errorf("%d looks for a hundred who watch", n)
		}

		// A window that does not answer costs one timeout, however many jobs are
		// looked at, and the last picture stands until it is too old.
		window.set(true)
		time.Sleep(showEvery)
		begun := w.now()
		for n := range 100 {
			_, ok := other.Live(t.Context(), j.ID)
			other.Live(t.Context(), fmt.Sprint("another ", n))
			if !ok {
				t.Fatal("the last picture is gone")
			}
		}
		if took := w.now().Sub(begun); took > lookTimeout || window.looked() != 1 {
			t.Errorf("%d looks, which took %s", window.looked(), took)
		}
		time.Sleep(shownFor)
		if _, ok := other.Live(t.Context(), j.ID); ok {
			t.Error("what is long over is shown")
		}
	})
}

func Test_an_order_at_any_server_reaches_the_one_that_drives_the_job(t *testing.T) {
	inFleet(t, options{}, func(t *testing.T, w *world, other *Service) {
		w.set.delay = 10 * time.Second
		j := w.until(w.order("a", Request{URL: w.net.site("s.example", 40, nil)}).ID, ledger.Running)
		promptly := func(do func(context.Context, string, string) (ledger.Job, error), want ledger.Status) {
			t.Helper()
			begun := w.now()
			got, err := do(t.Context(), "a", j.ID)
			if took := w.now().Sub(begun); err != nil || got.Status != want || took > 2*time.Second {
				t.Fatalf("%s after %s: %v", show(got), took, err)
			}
		}
		time.Sleep(1300 * time.Millisecond)
		promptly(other.Pause, ledger.Paused)
		if got := w.events(j.ID, Asked); len(got) != 1 || got[0].Status != ledger.Paused || got[0].Message == "" {
			t.Errorf("those who watch are told %+v", got)
		}
		promptly(other.Resume, ledger.Queued)
		w.until(j.ID, ledger.Running)
		time.Sleep(5 * time.Second)
		if got := w.job(j.ID); got.Status != ledger.Running { // the old order was for the old grant
			t.Fatal(show(got))
		}
		if _, err := other.Cancel(t.Context(), "b", j.ID); !errors.Is(err, ledger.ErrNoJob) {
			t.Errorf("a stranger's order: %v", err)
		}
		promptly(other.Cancel, ledger.Cancelled)
		var illegal *Illegal
		if _, err := other.Pause(t.Context(), "a", j.ID); !errors.As(err, &illegal) {
			t.Errorf("a pause after the end: %v", err)
		}
	})
}

func Test_an_order_for_a_job_whose_server_has_died_is_carried_out_by_the_next(t *testing.T) {
	inFleet(t, options{idle: true}, func(t *testing.T, w *world, other *Service) {
		j := w.order("a", Request{URL: w.net.site("s.example", 40, nil)})
		w.elsewhere(j.ID, true) // and nothing more is heard of it
		begun := w.now()
		if got, err := other.Cancel(t.Context(), "a", j.ID); err != nil || got.Status != ledger.Running || w.now().Sub(begun) > stopWait+time.Second {
			t.Fatalf("%s after %s: %v", show(got), w.now().Sub(begun), err)
		}
		w.serve()
		if j = w.end(j.ID); j.Status != ledger.Cancelled || j.Spent > 2 {
			t.Error(show(j))
		}
	})
}

// orphaned is a job whose server has died, behind another one for which alone
// the next server has a slot.
func (w *world) orphaned() (first, j ledger.Job) {
	w.t.Helper()
	first = w.order("a", Request{URL: w.net.site("r.example", 40, nil)})
	j = w.order("a", Request{URL: w.net.site("s.example", 40, nil)})
	w.elsewhere(first.ID, true)
	w.elsewhere(j.ID, true)
	return first, j
}

func Test_a_cancel_for_a_job_whose_server_has_died_needs_no_slot_of_the_next(t *testing.T) {
	inFleet(t, options{idle: true}, func(t *testing.T, w *world, other *Service) {
		w.set.delay = time.Second
		first, j := w.orphaned()
		if got, err := other.Cancel(t.Context(), "a", j.ID); err != nil || got.Status != ledger.Running {
			t.Fatalf("%s: %v", show(got), err)
		}
		w.serve()
		if j = w.end(j.ID); j.Status != ledger.Cancelled || j.Spent > 2 {
			t.Error(show(j))
		}
		if first = w.job(first.ID); first.Status != ledger.Running {
			t.Errorf("the job with the slot: %s", show(first))
		}
	})
}

// lateOrder is a store in which an order comes right after the first look for
// one.
type lateOrder struct {
	Store
	come *func()
}

func (s lateOrder) Events(ctx context.Context, id string, after int64, limit int) ([]ledger.JobEvent, error) {
	list, err := s.Store.Events(ctx, id, after, limit)
	if come := *s.come; come != nil {
		*s.come = nil
		come()
	}
	return list, err
}

func Test_a_cancel_that_comes_while_a_job_is_put_back_into_the_queue_is_not_forgotten(t *testing.T) {
	come := new(func())
	inFleet(t, options{idle: true, wrap: func(s Store) Store { return lateOrder{s, come} }}, func(t *testing.T, w *world, other *Service) {
		_, j := w.orphaned()
		*come = func() {
			ctx, gone := context.WithTimeout(t.Context(), time.Millisecond) // who asked does not wait
			defer gone()
			_ = other.pass(ctx, "a", j.ID, ledger.Cancelled, "Cancelled")
		}
		w.serve()
		if j = w.end(j.ID); j.Status != ledger.Cancelled || j.Spent > 2 {
			t.Error(show(j))
		}
		var was []ledger.Status
		for _, e := range w.events(j.ID, "") {
			was = append(was, e.Status)
		}
		if want := []ledger.Status{ledger.Queued, ledger.Cancelled, ledger.Queued, ledger.Running, ledger.Cancelled}; !slices.Equal(was, want) {
			t.Errorf("%v, want %v: an order, and the queue after it", was, want)
		}
	})
}
