package job

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

func Test_SAF_1_SAF_4_64_workers_meet_the_page_cap_exactly_and_the_end_says_what_was_asked_for(t *testing.T) {
	inWith(t, options{workers: 64}, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 500, nil)
		j := w.end(w.order("a", Request{URL: url, Pages: ptr(int64(1000)), PerHost: ptr(64), DelayMS: ptr(int64(0))}).ID)
		if j.Status != ledger.Partial || j.Error != "Safety limit: Maximum 50 pages per crawl (requested: 1000)" || j.Success == nil || !*j.Success {
			t.Error(show(j))
		}
		if j.Spent != 50 || w.rows(j) != 50 || len(w.net.pagesOf("a.example")) != 50 {
			t.Errorf("%d spent, %d rows, %d requests", j.Spent, w.rows(j), len(w.net.pagesOf("a.example")))
		}
		time.Sleep(time.Hour) // never retried
		if n := len(w.net.pagesOf("a.example")); n != 50 {
			t.Errorf("%d requests", n)
		}
		for _, say := range []string{"Safety limit: Maximum 50 pages per crawl (requested: 1000)"} { // [SAF-11] at the order and at the end
			if n := strings.Count(w.logs.String(), "level=WARN msg=\""+say); n != 2 || !w.logs.has("level=WARN", say, "site="+url) {
				t.Errorf("logged %d times\n%s", n, w.logs)
			}
		}
	})
}

func Test_SAF_1_a_site_smaller_than_the_cap_is_completed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for pages, want := range map[int]ledger.Status{49: ledger.Completed, 50: ledger.Completed, 51: ledger.Partial} {
			j := w.end(w.order("a", Request{URL: w.net.site(fmt.Sprintf("s%d.example", pages), pages, nil)}).ID)
			if j.Status != want || j.Spent != int64(min(pages, 50)) || w.rows(j) != j.Spent || !*j.Success || (want == ledger.Completed) != (j.Error == "") {
				t.Errorf("%d pages: %s", pages, show(j))
			}
		}
	})
}

func slow(*hit) reply { return reply{took: 7 * time.Second} }

func Test_SAF_3_SAF_5_a_slow_site_is_cut_off_at_the_timeout_counted_from_the_grant(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		first := w.order("a", Request{URL: w.net.site("a.example", 40, slow)})
		second := w.order("a", Request{URL: w.net.site("b.example", 40, slow)})
		for _, id := range []string{first.ID, second.ID} {
			j := w.end(id)
			if took := j.Ended.Sub(j.Granted); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("it had its slot for %s", took)
			}
			if j.Status != ledger.Partial || j.Error != "Safety limit: Crawl timeout exceeded (60000ms)" || j.Success == nil || *j.Success {
				t.Error(show(j))
			}
			if !w.logs.has("level=WARN", j.Error, "site="+j.Seeds[0]) { // [SAF-11]
				t.Error("not logged")
			}
		}
		if j := w.job(second.ID); j.Granted.Sub(j.Created) < time.Minute {
			t.Error("it did not have to wait, so nothing was shown")
		}
	})
}

// lateTenant is a store that needs its time.
type lateTenant struct{ Store }

func (s lateTenant) Tenant(ctx context.Context, id string) (ledger.Tenant, error) {
	time.Sleep(5 * time.Second)
	return s.Store.Tenant(ctx, id)
}

func Test_SAF_3_the_clock_runs_from_the_grant_also_when_the_crawl_begins_late(t *testing.T) {
	inWith(t, options{wrap: func(s Store) Store { return lateTenant{s} }}, func(t *testing.T, w *world) {
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 40, slow)}).ID)
		if took := j.Ended.Sub(j.Granted); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("it had its slot for %s", took)
		}
	})
}

func Test_SAF_3_a_job_paused_after_40_seconds_has_20_left(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxPages = 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		j := w.order("a", Request{URL: w.net.site("a.example", 2000, nil), Pages: ptr(int64(5000)), DelayMS: ptr(int64(700))})
		time.Sleep(40 * time.Second)
		j, err := w.svc.Pause(t.Context(), "a", j.ID)
		if err != nil || j.Status != ledger.Paused || j.Ran < 40*time.Second || j.Ran > 41*time.Second || j.Success != nil || !j.Ended.IsZero() {
			t.Fatal(show(j), err)
		}
		n := len(w.net.pages())
		time.Sleep(10 * time.Minute)
		if len(w.net.pages()) != n {
			t.Error("a paused job made requests")
		}
		resumed := time.Now()
		if _, err := w.svc.Resume(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		j = w.end(j.ID)
		if left := time.Since(resumed); left > 20*time.Second || left < 18*time.Second || j.Ran > 61*time.Second {
			t.Errorf("it had %s more, %s in all", left, j.Ran)
		}
		if j.Error != "Safety limit: Crawl timeout exceeded (60000ms)" || *j.Success || w.rows(j) > j.Spent {
			t.Error(show(j))
		}
	})
}

func Test_SAF_8_kill_9_lifts_neither_the_time_nor_the_pages(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.set.change(func(s *settings) { s.caps.MaxPages = 0 })
			if err := w.svc.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			j := w.order("a", Request{URL: w.net.site("a.example", 2000, nil), Pages: ptr(int64(5000)), DelayMS: ptr(int64(700))})
			time.Sleep(41500 * time.Millisecond)
			w.kill()
			again := time.Now()
			j = w.end(j.ID)
			if all := 41500*time.Millisecond + time.Since(again); all > 61*time.Second || all < 56*time.Second {
				t.Errorf("it had its slot for %s", all)
			}
			if j.Status != ledger.Partial || j.Error != "Safety limit: Crawl timeout exceeded (60000ms)" || *j.Success {
				t.Error(show(j))
			}
		})
	})
	t.Run("time, again and again", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.set.change(func(s *settings) { s.caps.Timeout = 10 * time.Second })
			if err := w.svc.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			j := w.order("a", Request{URL: w.net.site("a.example", 2000, func(*hit) reply { return reply{took: time.Second} })})
			for n := 0; !w.job(j.ID).Status.Done(); n++ {
				if n == 12 {
					t.Fatal("a process that dies every 1.5 s gives its job all the time in the world")
				}
				time.Sleep(1500 * time.Millisecond)
				w.kill()
				time.Sleep(time.Millisecond)
			}
			j = w.job(j.ID)
			if j.Error != "Safety limit: Crawl timeout exceeded (10000ms)" || !w.logs.has("level=WARN", j.Error, "site="+j.Seeds[0]) {
				t.Error(show(j))
			}
			row, err := w.db.Crawl(t.Context(), j.Crawl)
			if err != nil || row.Status != ledger.Partial || row.Reason != j.Error || row.Ended.IsZero() || row.Counters.Processed != w.rows(j) {
				t.Errorf("its crawl is %+v, %v", row, err)
			}
		})
	})
	t.Run("pages", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			j := w.order("a", Request{URL: w.net.site("a.example", 500, nil), Pages: ptr(int64(1000))})
			for range 4 {
				time.Sleep(1100 * time.Millisecond)
				w.kill()
			}
			j = w.end(j.ID)
			if j.Status != ledger.Partial || j.Error != "Safety limit: Maximum 50 pages per crawl (requested: 1000)" || j.Spent != 50 || w.rows(j) != 50 {
				t.Errorf("%s, %d rows", show(j), w.rows(j))
			}
			// What was in flight at a kill is asked for again, nothing else.
			if n := len(w.net.pages()); n > 50+4*2*2 {
				t.Errorf("%d requests", n)
			}
		})
	})
}

func Test_SAF_8_a_clean_restart_and_pauses_lift_no_cap_either(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 500, nil), Pages: ptr(int64(1000))})
		time.Sleep(time.Second)
		w.restart()
		time.Sleep(time.Second)
		if _, err := w.svc.Pause(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		w.restart()
		if j := w.job(j.ID); j.Status != ledger.Paused {
			t.Fatal(show(j))
		}
		if _, err := w.svc.Resume(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		if j = w.end(j.ID); j.Status != ledger.Partial || j.Spent != 50 || w.rows(j) != 50 || len(w.net.pages()) > 54 {
			t.Errorf("%s, %d rows, %d requests", show(j), w.rows(j), len(w.net.pages()))
		}
	})
}

func Test_SAF_8_a_lower_cap_holds_for_those_who_wait_and_a_higher_one_raises_nothing_that_was_granted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ask := ptr(int64(1000))
		paused := w.order("a", Request{URL: w.net.site("paused.example", 500, nil), Pages: ask})
		time.Sleep(2 * time.Second) // 20 pages
		if j, err := w.svc.Pause(t.Context(), "a", paused.ID); err != nil || j.Status != ledger.Paused {
			t.Fatal(show(j), err)
		}
		had := len(w.net.pagesOf("paused.example"))
		runs := w.order("a", Request{URL: w.net.site("runs.example", 500, nil), Pages: ask})
		waits := w.order("a", Request{URL: w.net.site("waits.example", 500, nil), Pages: ask})
		slow := w.order("a", Request{URL: w.net.site("slow.example", 500, slow), Pages: ask})
		small := w.order("a", Request{URL: w.net.site("small.example", 500, nil), Pages: ptr(int64(5))})
		if _, err := w.svc.Resume(t.Context(), "a", paused.ID); err != nil {
			t.Fatal(err)
		}
		w.set.change(func(s *settings) { s.caps.MaxPages, s.caps.Timeout = 10, 20*time.Second })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			id    string
			pages int64
			why   string
		}{
			{runs.ID, 50, "Safety limit: Maximum 50 pages per crawl (requested: 1000)"}, // it runs and keeps it
			{waits.ID, 10, "Safety limit: Maximum 10 pages per crawl (requested: 1000)"},
			{slow.ID, 0, "Safety limit: Crawl timeout exceeded (20000ms)"},
			{small.ID, 5, "Budget exceeded: page limit (5)"},
		} {
			if j := w.end(c.id); j.Error != c.why || c.pages > 0 && (j.Spent != c.pages || w.rows(j) != c.pages) {
				t.Error(show(j))
			}
		}
		if j := w.end(paused.ID); j.Error != "Safety limit: Maximum 10 pages per crawl (requested: 1000)" || len(w.net.pagesOf("paused.example")) != had {
			t.Errorf("%s, %d requests and then %d", show(j), had, len(w.net.pagesOf("paused.example")))
		}
		block := w.order("a", Request{URL: w.net.site("block.example", 3, nil)})
		granted := w.order("a", Request{URL: w.net.site("granted.example", 500, nil), Pages: ask})
		w.set.change(func(s *settings) { s.caps.MaxPages, s.caps.Timeout = 400, 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.end(block.ID)
		if j := w.end(granted.ID); j.Spent != 10 || j.Error != "Safety limit: Maximum 10 pages per crawl (requested: 1000)" {
			t.Error(show(j))
		}
	})
}

func Test_a_reload_that_fails_leaves_everything_as_it_was(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxPages, s.broken = 7, fmt.Errorf("--plans: nonsense") })
		if err := w.svc.Reload(t.Context()); err == nil || w.svc.Caps() != defaultCaps || len(w.svc.Plans()) != 2 {
			t.Errorf("%v, %+v", err, w.svc.Caps())
		}
	})
}

// The process is killed between the end of the crawl and the end of its job.
func Test_an_end_that_the_crawl_found_is_the_job_s_also_when_caps_and_clock_have_moved_on(t *testing.T) {
	for name, tc := range map[string]struct {
		site    func(*hit) reply
		pages   int
		want    ledger.Status
		success bool
		why     string
	}{
		"completed": {nil, 30, ledger.Completed, true, ""},
		"pages":     {nil, 80, ledger.Partial, true, "Safety limit: Maximum 50 pages per crawl (requested: 50)"},
		"time":      {slow, 80, ledger.Partial, false, "Safety limit: Crawl timeout exceeded (60000ms)"},
	} {
		t.Run(name, func(t *testing.T) {
			fails := new(atomic.Int32)
			fails.Store(1 << 30)
			inWith(t, options{wrap: func(s Store) Store { return brokenEnd{s, fails} }}, func(t *testing.T, w *world) {
				j := w.order("a", Request{URL: w.net.site("a.example", tc.pages, tc.site)})
				time.Sleep(61 * time.Second)
				n := len(w.net.pages())
				w.set.change(func(s *settings) { s.caps.MaxPages, s.caps.Timeout = 7, 3*time.Second })
				w.opts.wrap = nil
				w.kill()
				j = w.end(j.ID)
				if j.Status != tc.want || *j.Success != tc.success || j.Error != tc.why || j.Spent != w.rows(j) && name != "time" || len(w.net.pages()) != n {
					t.Errorf("%s, %d rows, %d requests, then %d", show(j), w.rows(j), n, len(w.net.pages()))
				}
			})
		})
	}
}
