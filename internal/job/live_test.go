package job

import (
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

func Test_the_series_of_a_job_adds_up_to_its_counters_and_never_has_more_than_600_points(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s series
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		st := crawl.Status{Started: start, At: start}
		s.begin(st)
		n := rapid.IntRange(1, 5000).Draw(t, "seconds")
		rnd := rapid.IntRange(0, 7).Draw(t, "kind")
		for i := range n {
			st.At = st.At.Add(time.Second)
			k := int64((i*7 + rnd) % 5)
			st.Processed += k
			st.StatusClasses[(i+rnd)%6] += k
			st.HTTP429 += k % 2
			s.add(&st)
			if len(s.points) > seriesMost {
				t.Fatalf("%d points after %d seconds", len(s.points), i+1)
			}
		}
		var classes [6]int64
		var throttled int64
		var pages float64
		last := start
		for _, p := range s.points {
			for c := range classes {
				classes[c] += p.Classes[c]
			}
			throttled += p.HTTP429
			pages += p.PagesPerSecond * p.At.Sub(last).Seconds()
			if !p.At.After(last) {
				t.Fatalf("%s after %s", p.At, last)
			}
			last = p.At
		}
		if classes != st.StatusClasses || throttled != st.HTTP429 || math.Abs(pages-float64(st.Processed)) > 0.01 || !last.Equal(st.At) {
			t.Fatalf("%v %d %f, want %v %d %d", classes, throttled, pages, st.StatusClasses, st.HTTP429, st.Processed)
		}
	})
}

func Test_a_running_job_has_a_live_picture_and_a_series_that_agree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.Timeout = 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		url := w.net.site("a.example", 45, func(h *hit) reply {
			switch {
			case h.path == "/p7" && h.nth == 1:
				return reply{status: http.StatusTooManyRequests}
			case h.path == "/p9":
				return reply{status: http.StatusNotFound}
			}
			return reply{}
		})
		j := w.order("a", Request{URL: url})
		w.until(j.ID, ledger.Running)
		for range 8 {
			time.Sleep(time.Second)
			synctest.Wait()
			st, ok := w.svc.Live(t.Context(), j.ID)
			points, _ := w.svc.Series(j.ID)
			if !ok || w.now().Sub(st.At) > time.Second {
				t.Fatalf("%t, %s old", ok, w.now().Sub(st.At))
			}
			var classes [6]int64
			var throttled int64
			for _, p := range points {
				throttled += p.HTTP429
				for c := range classes {
					classes[c] += p.Classes[c]
				}
			}
			if classes != st.StatusClasses || throttled != st.HTTP429 || classes[2]+classes[4] == 0 {
				t.Errorf("%v and %d, the picture has %v and %d", classes, throttled, st.StatusClasses, st.HTTP429)
			}
		}
		w.end(j.ID)
		synctest.Wait()
		if _, ok := w.svc.Live(t.Context(), j.ID); ok {
			t.Error("there is a live picture of a job that has ended")
		}
		if _, ok := w.svc.Series(j.ID); ok {
			t.Error("there is a series of a job that has ended")
		}
	})
}

func Test_the_series_of_a_job_that_goes_on_begins_with_its_second_part(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 200, nil)})
		time.Sleep(2500 * time.Millisecond)
		if _, err := w.svc.Pause(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.svc.Resume(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		points, ok := w.svc.Series(j.ID)
		if !ok || len(points) != 1 || points[0].PagesPerSecond > 11 {
			t.Errorf("%+v", points) // the pages of the first part were not fetched in this second
		}
	})
}

func Test_watchers_are_told_of_every_change_and_one_who_never_listens_holds_nobody_up(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 10, nil)})
		deaf, stopDeaf := w.svc.Watch(j.ID)
		changed, stop := w.svc.Watch(j.ID)
		other, stopOther := w.svc.Watch("j_other")
		var told, seen int
		var watcher sync.WaitGroup
		watcher.Go(func() {
			for range changed {
				told++
				over := w.job(j.ID).Status.Done()
				if seen = len(w.events(j.ID, "")); over {
					return
				}
			}
		})
		watcher.Wait()
		if told < 5 || seen != 3 { // queued, running, completed
			t.Errorf("told %d times, saw %d events", told, seen)
		}
		if len(deaf) != 1 || len(other) != 0 {
			t.Errorf("%d and %d", len(deaf), len(other))
		}
		stop()
		stop() // twice is once
		stopDeaf()
		stopOther()
		if len(w.svc.watch.all) != 0 {
			t.Errorf("%d watched jobs are left", len(w.svc.watch.all))
		}
	})
}

func Test_a_thousand_watchers_come_and_go_while_a_job_runs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 30, nil)})
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				ch, stop := w.svc.Watch(j.ID)
				defer stop()
				time.Sleep(time.Duration(i) * time.Millisecond)
				<-ch
			})
		}
		all.Wait()
		if j = w.end(j.ID); j.Status != ledger.Completed {
			t.Error(show(j))
		}
	})
}
