package job

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/politeness"
)

func Test_JOB_1_twenty_failed_tasks_in_a_row_fail_the_job_with_that_reason(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 60, func(h *hit) reply {
			if h.path == "/" {
				return reply{}
			}
			return reply{status: http.StatusTeapot}
		})
		j := w.end(w.order("a", Request{URL: url}).ID)
		if j.Status != ledger.Failed || j.Error != "20 tasks in a row failed, the last with client_error" || *j.Success || j.Spent < 21 || j.Spent > 25 {
			t.Error(show(j))
		}
	})
}

func Test_RET_3_twenty_429s_at_the_slowest_pace_cancel_the_job_if_the_operator_wants_it(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.cancel, s.fail, s.caps.Timeout = 20, 0, 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		slowest := politeness.State{Learned: 59 * time.Second, Updated: w.now()}
		if err := w.db.Commit(t.Context(), &ledger.Batch{Domains: []ledger.Domain{crawl.DomainRow("a.example", slowest)}}); err != nil {
			t.Fatal(err)
		}
		url := w.net.site("a.example", 60, func(h *hit) reply {
			if h.path == "/" {
				return reply{}
			}
			return reply{status: http.StatusTooManyRequests}
		})
		j := w.end(w.order("a", Request{URL: url}).ID)
		if j.Status != ledger.Cancelled || j.Error != "20 answers of 429 in a row although the delay is 1m0s" || *j.Success {
			t.Error(show(j))
		}
	})
}

func Test_a_crawl_without_one_page_is_a_failed_job_that_tells_the_fate_of_its_seed(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(*hit) reply
		want  string
	}{
		"404":    {func(*hit) reply { return reply{status: 404} }, "Not one page could be fetched. https://a.example/: 404 Not Found"},
		"robots": {func(*hit) reply { return reply{body: "User-agent: *\nDisallow: /\n"} }, "Not one page could be fetched. https://a.example/: robots.txt disallows it; nothing was requested (Disallow: /)"},
		"teapot": {func(h *hit) reply { return reply{status: map[bool]int{true: 404, false: 418}[h.path == "/robots.txt"]} }, "Not one page could be fetched. https://a.example/: the server refused the request (4xx)"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.net.hosts["a.example"] = tc.serve
				if j := w.end(w.order("a", Request{URL: "https://a.example/"}).ID); j.Status != ledger.Failed || j.Error != tc.want || *j.Success {
					t.Error(show(j))
				}
			})
		})
	}
}

func Test_a_page_cap_that_is_met_without_one_good_page_is_no_success(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var urls []string
		for i := range 60 {
			urls = append(urls, fmt.Sprintf("https://a.example/gone%d", i))
		}
		j := w.end(w.order("a", Request{URLs: urls}).ID)
		if j.Status != ledger.Partial || *j.Success || j.Spent != 50 {
			t.Error(show(j))
		}
	})
}

func Test_a_job_that_stalls_says_once_what_it_waits_for(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.Timeout = 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		url := w.net.site("a.example", 4, func(h *hit) reply {
			if h.path == "/p1" && h.nth == 1 {
				return reply{status: 429, header: map[string]string{"Retry-After": "90"}}
			}
			return reply{}
		})
		j := w.order("a", Request{URL: url})
		time.Sleep(14 * time.Second)
		if got := w.events(j.ID, "stalled"); len(got) != 0 {
			t.Errorf("after 14 s: %+v", got)
		}
		if j = w.end(j.ID); j.Status != ledger.Completed || j.Spent != 4 {
			t.Error(show(j))
		}
		got := w.events(j.ID, "stalled")
		if len(got) != 1 || !strings.Contains(got[0].Message, "a.example") || !strings.Contains(got[0].Message, "Retry-After") {
			t.Errorf("%+v", got)
		}
		throttled := w.events(j.ID, "throttled")
		if len(throttled) != 1 || throttled[0].Host != "a.example" || throttled[0].Message != "a.example was throttled: one request every 1s now" {
			t.Errorf("%+v", throttled)
		}
	})
}

func Test_the_events_of_a_job_are_bounded_and_the_last_one_says_so(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 20, nil)})
		w.until(j.ID, ledger.Running)
		time.Sleep(100 * time.Millisecond)
		a := w.svc.driven(j.ID)
		for range 40 { // slowly enough that none is lost in a burst
			for range 50 {
				w.svc.hooks(a).Throttled(crawl.ThrottleEvent{Host: "x", Delay: time.Second})
			}
			time.Sleep(time.Millisecond)
		}
		j = w.end(j.ID)
		all := w.events(j.ID, "")
		if n := len(all) - len(w.events(j.ID, "status")); n != eventsKept {
			t.Errorf("%d events", n)
		}
		if last := w.events(j.ID, "warning"); len(last) == 0 || last[len(last)-1].Message != "more events of this job are not kept" {
			t.Errorf("%+v", last)
		}
	})
}

func Test_a_burst_of_events_never_holds_the_engine_up(t *testing.T) {
	s := &Service{now: time.Now}
	a := &active{events: make(chan ledger.JobEvent, 2)}
	for range 10 * eventsKept { // nobody reads
		s.hooks(a).Warned("x")
	}
	if len(a.events) != 2 {
		t.Error(len(a.events))
	}
}

func Test_pages_that_were_fetched_are_paid_for_also_when_the_job_fails_later(t *testing.T) {
	armed := new(atomic.Bool)
	inWith(t, options{builder: func(b Builder) Builder { return crashing{b, armed} }}, func(t *testing.T, w *world) {
		w.tenant("q", "quota", 1)
		for _, label := range []string{"fail", "bang"} {
			armed.Store(false)
			j := w.order("q", Request{URL: w.net.site(label+".example", 100, nil), Label: label, Pages: ptr(int64(40))})
			time.Sleep(time.Second)
			if _, err := w.svc.Pause(t.Context(), "q", j.ID); err != nil {
				t.Fatal(err)
			}
			rows := w.rows(w.job(j.ID))
			armed.Store(true)
			if _, err := w.svc.Resume(t.Context(), "q", j.ID); err != nil {
				t.Fatal(err)
			}
			if j := w.end(j.ID); j.Status != ledger.Failed || j.Spent != rows || rows == 0 || !strings.HasPrefix(j.Error, "internal error: ") {
				t.Errorf("%s, %d rows", show(j), rows)
			}
		}
	})
}

func Test_a_job_that_ended_can_be_deleted_with_all_that_is_known_of_it(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 90, nil)})
		if err := w.svc.Delete(t.Context(), "a", j.ID); err != ErrNotEnded {
			t.Error(err)
		}
		j = w.end(j.ID)
		if err := w.svc.Delete(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.Job(t.Context(), "", j.ID); err == nil {
			t.Error("it is still there")
		}
		if _, err := w.db.Crawl(t.Context(), j.Crawl); err == nil {
			t.Error("its crawl is still there")
		}
		if w.front.Seen(1, fingerprint("https://a.example/")) {
			t.Error("its frontier is still there")
		}
	})
}

func Test_kill_9_during_ten_jobs_loses_nothing_and_every_quota_is_exact(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) {
			s.caps.MaxCrawls, s.plans[1].Quota = 4, 1000
		})
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range 10 {
			ids = append(ids, w.order("q", Request{URL: w.net.site(fmt.Sprintf("s%d.example", i), 5+5*i, nil), Pages: ptr(int64(30))}).ID)
		}
		for range 3 {
			time.Sleep(900 * time.Millisecond)
			w.kill()
		}
		var spent int64
		for i, id := range ids {
			j := w.end(id)
			want := int64(min(5+5*i, 30))
			spent += want
			if j.Spent != want || w.rows(j) != want || (j.Status == ledger.Completed) != (5+5*i <= 30) {
				t.Errorf("%s, %d rows", show(j), w.rows(j))
			}
		}
		w.usage("q", spent, 0)
	})
}

func Test_jobs_that_run_when_the_process_stops_are_left_running_and_go_on_in_the_next(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 30, nil)})
		time.Sleep(time.Second)
		begun := time.Now()
		w.close()
		if took := time.Since(begun); took > crawl.Grace+lastGrace {
			t.Errorf("the stop took %s", took)
		}
		n := len(w.net.pages())
		w.open()
		if j := w.job(j.ID); j.Status != ledger.Running || j.Ran < time.Second {
			t.Error(show(j))
		}
		if j = w.end(j.ID); j.Status != ledger.Completed || j.Spent != 30 || n == 0 || len(w.net.pages()) > 32 {
			t.Errorf("%s, %d requests", show(j), len(w.net.pages()))
		}
	})
}

// slowBooks need a second to say what a crawl has fetched.
type slowBooks struct{ *sqlite.Ledger }

func (b slowBooks) Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	time.Sleep(time.Second)
	return b.Ledger.Pages(ctx, crawl, f)
}

func Test_a_job_that_goes_on_makes_no_request_before_it_knows_what_it_has_paid_for(t *testing.T) {
	inWith(t, options{books: func(l *sqlite.Ledger) crawl.Ledger { return slowBooks{l} }}, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 80, nil)})
		time.Sleep(3 * time.Second)
		w.kill()
		back, n := time.Now(), len(w.net.pages())
		if j = w.end(j.ID); j.Spent != 50 || w.rows(j) != 50 || n < 10 {
			t.Errorf("%s, %d rows, %d requests before", show(j), w.rows(j), n)
		}
		if first := w.net.pages()[n]; first.at.Sub(back) < time.Second {
			t.Errorf("it asked for %s after %s", first.path, first.at.Sub(back))
		}
	})
}

func Test_a_cancel_from_a_caller_who_leaves_is_carried_out_all_the_same(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.order("a", Request{URL: w.net.site("a.example", 30, slow)})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w.svc.Cancel(ctx, "a", j.ID)
		if j = w.end(j.ID); j.Status != ledger.Cancelled {
			t.Error(show(j))
		}
	})
}

func Test_a_cancel_while_a_job_is_being_paused_is_carried_out_here_and_at_another_server(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		inFleet(t, options{}, func(t *testing.T, w *world, other *Service) {
			asked := w.svc
			if elsewhere {
				asked = other
			}
			j := w.order("a", Request{URL: w.net.site("a.example", 30, slow)})
			time.Sleep(time.Second)
			ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond) // or nobody would need to remember
			defer leave()
			w.svc.Pause(ctx, "a", j.ID)
			ctx, leave = context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer leave()
			asked.Cancel(ctx, "a", j.ID)
			if got := w.job(j.ID); got.Status != ledger.Running {
				t.Fatalf("the pause was quick: %s", show(got))
			}
			if j = w.until(j.ID, ledger.Paused, ledger.Cancelled); j.Status != ledger.Cancelled || j.Error != "Cancelled" || j.Ended.IsZero() {
				t.Errorf("asked elsewhere %t: %s", elsewhere, show(j))
			}
		})
	}
}
