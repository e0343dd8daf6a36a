package job

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// inQuota is a world with a tenant that has 100 pages a month, under no cap of
// pages.
func inQuota(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxPages = 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.tenant("q", "quota", 1)
		f(t, w)
	})
}

func Test_pages_are_reserved_with_the_order_and_what_was_not_used_comes_back_with_the_end(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		done := w.order("q", Request{URL: w.net.site("done.example", 5, nil), Pages: ptr(int64(30))})
		gone := w.order("q", Request{URL: w.net.site("gone.example", 90, nil), Pages: ptr(int64(20))})
		rest := w.order("q", Request{URL: w.net.site("rest.example", 90, nil)})
		w.usage("q", 0, 100)
		if e := rest; e.Reserved != 50 {
			t.Error(show(e))
		}
		w.end(done.ID)
		w.usage("q", 5, 70)
		w.until(gone.ID, ledger.Running)
		time.Sleep(time.Second)
		j, err := w.svc.Cancel(t.Context(), "q", gone.ID)
		if err != nil || j.Spent == 0 || j.Spent >= 20 || j.Reserved != 0 {
			t.Error(show(j), err)
		}
		w.usage("q", 5+j.Spent, 50)
		if _, err := w.svc.Cancel(t.Context(), "q", rest.ID); err != nil {
			t.Fatal(err)
		}
		last := w.end(rest.ID)
		w.usage("q", 5+j.Spent+last.Spent, 0)
		if got := w.post.counts(); got["cancelled"] != 2 || got["completed"] != 1 {
			t.Errorf("metered %v", got)
		}
	})
}

func Test_an_order_beyond_the_quota_gets_what_is_left_and_the_next_is_refused_and_told_when_to_come_back(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		w.order("q", Request{URL: w.net.site("a.example", 500, nil), Pages: ptr(int64(92))})
		part := w.order("q", Request{URL: w.net.site("b.example", 500, nil)})
		if part.Reserved != 8 {
			t.Error(show(part))
		}
		before, err := w.db.Jobs(t.Context(), ledger.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.try("q", Request{URL: "https://c.example/"}, "mine")
		var refused *Refused
		if !errors.As(err, &refused) || refused.Text != "Usage limit: this month's 100 pages are used or reserved; the quota begins anew on 2000-02-01 at 00:00 UTC" {
			t.Errorf("%v", err)
		}
		if after, err := w.db.Jobs(t.Context(), ledger.JobFilter{}); err != nil || len(after) != len(before) {
			t.Errorf("%d jobs, %v", len(after), err)
		}
		w.usage("q", 0, 100)
		if w.post.counts()["refused"] != 1 || !w.logs.has("level=WARN", refused.Text, "tenant=q", "site=https://c.example/") {
			t.Error("not counted or not logged")
		}
		if _, ok, why, err := w.svc.Preview(t.Context(), ledger.Tenant{ID: "q", Plan: "quota"}, Request{URL: "https://c.example/"}); ok || why != refused.Text || err != nil {
			t.Errorf("previewed as %t, %q, %v", ok, why, err)
		}
		if j := w.end(part.ID); j.Error != "Usage limit: 8 pages were left of this month's 100 (requested: 50)" || j.Spent != 8 || !*j.Success {
			t.Error(show(j))
		}
		w.usage("q", 100, 0)
	})
}

func Test_200_parallel_orders_with_10_pages_left_spend_exactly_10(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.caps.MaxCrawls = 0 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.end(w.order("q", Request{URL: w.net.site("first.example", 200, nil), Pages: ptr(int64(90)), DelayMS: ptr(int64(0))}).ID)
		w.usage("q", 90, 0)
		var all sync.WaitGroup
		var mu sync.Mutex
		var taken []string
		for i := range 200 {
			url := w.net.site(fmt.Sprintf("s%d.example", i), 20, nil)
			all.Go(func() {
				j, _, err := w.try("q", Request{URL: url, Pages: ptr(int64(3))}, "")
				var refused *Refused
				switch {
				case err == nil:
					mu.Lock()
					taken = append(taken, j.ID)
					mu.Unlock()
				case !errors.As(err, &refused):
					t.Error(err)
				}
			})
		}
		all.Wait()
		var spent int64
		for _, id := range taken {
			spent += w.end(id).Spent
		}
		if n := len(w.net.pages()) - 90; len(taken) != 4 || spent != 10 || n != 10 {
			t.Errorf("%d orders were taken, %d pages spent, %d requested", len(taken), spent, n)
		}
		w.usage("q", 100, 0)
	})
}

func Test_the_quota_begins_anew_at_midnight_utc_on_the_first(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		eve := time.Date(2000, 1, 31, 23, 59, 50, 0, time.UTC)
		w.set.change(func(s *settings) { s.shift = time.Until(eve) })
		old := w.order("q", Request{URL: w.net.site("old.example", 300, nil)}) // runs into the new month
		w.order("q", Request{URL: w.net.site("b.example", 300, nil)})
		if _, _, err := w.try("q", Request{URL: "https://c.example/"}, ""); err == nil {
			t.Fatal("nothing was left, and it was taken")
		}
		time.Sleep(10*time.Second - time.Millisecond)
		if _, _, err := w.try("q", Request{URL: "https://c.example/"}, ""); err == nil {
			t.Error("taken a millisecond before midnight")
		}
		time.Sleep(time.Millisecond)
		w.order("q", Request{URL: w.net.site("c.example", 1, nil), Pages: ptr(int64(100)), Priority: -1})
		w.usage("q", 0, 100)
		j := w.end(old.ID)
		if u, err := w.db.Usage(t.Context(), "q", "2000-01"); err != nil || u.Used != j.Spent || u.Reserved != 50 {
			t.Errorf("the old month: %+v, %v", u, err) // its pages belong to the month in which they were ordered
		}
		w.usage("q", 0, 100)
	})
}

func Test_NXT_4_80_and_95_per_cent_of_the_quota_are_warned_of_once_each(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		for i, c := range []struct {
			pages int64
			want  []string
		}{
			{79, nil},
			{1, []string{"80 % of the monthly quota is used or reserved: 80 of 100 pages"}},
			{14, nil},
			{1, []string{"95 % of the monthly quota is used or reserved: 95 of 100 pages"}},
			{5, nil},
		} {
			j := w.order("q", Request{URL: fmt.Sprintf("https://s%d.example/", i), Pages: ptr(c.pages)})
			var got []string
			for _, e := range w.events(j.ID, "warning") {
				got = append(got, e.Message)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("order %d: %q", i, got)
			}
		}
		// One order that passes both says both.
		w.set.change(func(s *settings) { s.plans = append(s.plans, limits.Plan{Name: "small", Quota: 10}) })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.tenant("s", "small", 1)
		if j := w.order("s", Request{URL: "https://x.example/"}); len(w.events(j.ID, "warning")) != 2 {
			t.Errorf("%+v", w.events(j.ID, ""))
		}
	})
}

func Test_NXT_4_80_and_95_per_cent_of_a_job_s_pages_and_time_are_warned_of(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 60, nil)}).ID)
		k := w.end(w.order("a", Request{URL: w.net.site("b.example", 60, slow)}).ID)
		for id, want := range map[string]string{j.ID: "page budget", k.ID: "time budget"} {
			if got := w.events(id, "warning"); len(got) != 2 || !strings.HasPrefix(got[0].Message, "80 % of the "+want) || !strings.HasPrefix(got[1].Message, "95 % of the "+want) {
				t.Errorf("%+v", got)
			}
		}
	})
}

func Test_the_same_order_under_the_same_name_is_one_job(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		r := Request{URL: w.net.site("a.example", 3, nil), Pages: ptr(int64(10))}
		first, existed, err := w.try("q", r, "mine")
		if err != nil || existed {
			t.Fatal(existed, err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if j, existed, err := w.try("q", r, "mine"); err != nil || !existed || j.ID != first.ID {
					t.Error(j.ID, existed, err)
				}
			})
		}
		all.Wait()
		w.usage("q", 0, 10)
		r.Pages = ptr(int64(11))
		if _, _, err := w.try("q", r, "mine"); !errors.Is(err, ErrOtherOrder) {
			t.Error(err)
		}
		w.end(first.ID)
		r.Pages = ptr(int64(10))
		if j, existed, err := w.try("q", r, "mine"); err != nil || !existed || j.Status != ledger.Completed {
			t.Error(show(j), existed, err)
		}
		if other, existed, err := w.try("a", r, "mine"); err != nil || existed || other.ID == first.ID {
			t.Error("another tenant's name is its own", existed, err)
		}
		w.usage("q", 3, 0)
	})
}

func Test_urls_that_robots_txt_closes_cost_nothing(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		url := w.net.site("a.example", 40, nil)
		open := w.net.hosts["a.example"]
		w.net.hosts["a.example"] = func(h *hit) reply {
			if h.path == "/robots.txt" {
				return reply{body: "User-agent: *\nDisallow: /p\nAllow: /p1$\n", header: map[string]string{"Content-Type": "text/plain"}}
			}
			return open(h)
		}
		j := w.end(w.order("q", Request{URL: url, Pages: ptr(int64(3))}).ID)
		if j.Status != ledger.Completed || j.Spent != 2 {
			t.Error(show(j))
		}
		w.usage("q", 2, 0)
		if n := len(w.net.pages()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func Test_an_order_that_makes_no_sense_is_refused_with_its_field_and_costs_nothing(t *testing.T) {
	inQuota(t, func(t *testing.T, w *world) {
		for field, r := range map[string]Request{
			"url":      {},
			"urls":     {URLs: make([]string, maxSeeds+1)},
			"type":     {URL: "a.example", Type: "scan"},
			"pages":    {URL: "a.example", Pages: ptr(int64(0))},
			"seconds":  {URL: "a.example", Seconds: ptr(0.0001)},
			"depth":    {URL: "a.example", Depth: ptr(-1)},
			"per_host": {URL: "a.example", PerHost: ptr(0)},
			"delay_ms": {URL: "a.example", DelayMS: ptr(int64(-1))},
			"priority": {URL: "a.example", Priority: 11},
			"label":    {URL: "a.example", Label: strings.Repeat("x", 201)},
			"include":  {URL: "a.example", Include: []string{"re:("}}, // known only to the builder
			"webhook":  {URL: "a.example", Webhook: "file:///etc/passwd"},
		} {
			_, _, err := w.try("q", r, "")
			var bad *BadRequest
			if !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		for _, url := range []string{"https://me:secret@a.example/", "ftp://a.example/", "https://", "javascript:alert(1)"} {
			var bad *BadRequest
			if _, _, err := w.try("q", Request{URL: url}, ""); !errors.As(err, &bad) || bad.Field != "url" {
				t.Errorf("%s: %v", url, err)
			}
		}
		w.usage("q", 0, 0)
		j := w.order("q", Request{URL: " Example.com ", URLs: []string{"https://example.com/", "https://example.com/#top"}})
		if len(j.Seeds) != 1 || j.Seeds[0] != "https://example.com/" {
			t.Errorf("%q", j.Seeds)
		}
	})
}
