package limits

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var guarded = Safety{MaxPages: 50, MaxCrawls: 1, Timeout: time.Minute}

func Test_SAF_1_the_first_of_safety_plan_usage_and_request_that_binds_is_named(t *testing.T) {
	free := Plan{Name: "free", Pages: 40, PerHost: 1, Quota: 500}
	for _, tc := range []struct {
		name  string
		ask   Ask
		s     Safety
		p     Plan
		u     Spent
		pages int64
		by    By
		stop  string
	}{
		{"safety", Ask{Pages: 1000}, guarded, Plan{}, Spent{}, 50, BySafety, "Safety limit: Maximum 50 pages per crawl (requested: 1000)"},
		{"nothing asked for", Ask{}, guarded, Plan{}, Spent{}, 50, BySafety, "Safety limit: Maximum 50 pages per crawl (requested: unlimited)"},
		{"the cap itself asked for", Ask{Pages: 50}, guarded, Plan{}, Spent{}, 50, BySafety, "Safety limit: Maximum 50 pages per crawl (requested: 50)"},
		{"plan", Ask{Pages: 1000}, guarded, free, Spent{}, 40, ByPlan, "Plan limit: Maximum 40 pages per crawl on plan free (requested: 1000)"},
		{"safety before an equal plan", Ask{Pages: 60}, guarded, Plan{Name: "x", Pages: 50}, Spent{}, 50, BySafety, "Safety limit: Maximum 50 pages per crawl (requested: 60)"},
		{"usage", Ask{Pages: 30}, guarded, free, Spent{Used: 400, Reserved: 90}, 10, ByUsage, "Usage limit: 10 pages were left of this month's 500 (requested: 30)"},
		{"plan before equal usage", Ask{}, guarded, free, Spent{Used: 460}, 40, ByPlan, "Plan limit: Maximum 40 pages per crawl on plan free (requested: unlimited)"},
		{"request", Ask{Pages: 7}, guarded, free, Spent{}, 7, ByRequest, "Budget exceeded: page limit (7)"},
		{"profile", Ask{Pages: 7, PagesByProfile: true}, guarded, free, Spent{}, 7, ByProfile, "Budget exceeded: page limit (7)"},
		{"nobody", Ask{}, Safety{}, Plan{}, Spent{}, 0, ByNobody, ""},
	} {
		e, ok := Limit(tc.ask, tc.s, tc.p, tc.u)
		if !ok || e.Pages != tc.pages || e.PagesBy != tc.by || e.PageStop != tc.stop {
			t.Errorf("%s: %t %+v", tc.name, ok, e)
		}
	}
}

func Test_SAF_5_the_timeout_has_its_own_sentence(t *testing.T) {
	e, _ := Limit(Ask{Time: time.Hour}, guarded, Plan{}, Spent{})
	if e.Time() != time.Minute || e.TimeStop != "Safety limit: Crawl timeout exceeded (60000ms)" || len(e.Reasons) != 2 {
		t.Errorf("%+v", e)
	}
	e, _ = Limit(Ask{Time: 10 * time.Second}, guarded, Plan{}, Spent{})
	if e.Time() != 10*time.Second || e.TimeStop != "Budget exceeded: time limit (10s)" {
		t.Errorf("%+v", e)
	}
}

func Test_an_order_without_a_page_left_is_refused_and_told_when_to_come_back(t *testing.T) {
	_, ok := Limit(Ask{Pages: 1}, guarded, Plan{Quota: 500}, Spent{Used: 300, Reserved: 200})
	if ok {
		t.Error("granted")
	}
	if _, ok = Limit(Ask{Pages: 1}, guarded, Plan{Quota: 500}, Spent{Used: 300, Reserved: 199}); !ok {
		t.Error("one page was left and refused")
	}
	text := QuotaSpent(500, time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC))
	if !strings.HasSuffix(text, "on 2027-01-01 at 00:00 UTC") {
		t.Error(text)
	}
}

// [SAF-8] Whatever is asked for, nothing lifts a cap, and whatever is lower
// than what was asked for has a reason.
func Test_SAF_8_no_order_plan_or_usage_raises_a_cap(t *testing.T) {
	n := rapid.Int64Range(-5, 300)
	rapid.Check(t, func(t *rapid.T) {
		a := Ask{Pages: n.Draw(t, "pages"), Time: time.Duration(n.Draw(t, "time")) * time.Second, PerHost: int(n.Draw(t, "per host"))}
		s := Safety{MaxPages: n.Draw(t, "cap"), Timeout: time.Duration(n.Draw(t, "timeout")) * time.Second}
		p := Plan{Name: "p", Pages: n.Draw(t, "plan pages"), PerHost: int(n.Draw(t, "plan per host")), Quota: n.Draw(t, "quota")}
		u := Spent{Used: n.Draw(t, "used"), Reserved: max(n.Draw(t, "reserved"), 0)}
		u.Used = max(u.Used, 0)
		e, ok := Limit(a, s, p, u)
		for _, limit := range []int64{a.Pages, s.MaxPages, p.Pages} {
			if limit > 0 && (e.Pages == 0 || e.Pages > limit) {
				t.Fatalf("%d pages granted under a limit of %d", e.Pages, limit)
			}
		}
		if left := p.Quota - u.Used - u.Reserved; p.Quota > 0 && (ok != (left > 0) || ok && e.Pages > left) {
			t.Fatalf("%d pages granted of %d left, %t", e.Pages, left, ok)
		}
		if s.Timeout > 0 && (e.Time() == 0 || e.Time() > s.Timeout) || a.Time > 0 && e.Time() > a.Time {
			t.Fatalf("%s granted", e.Time())
		}
		if p.PerHost > 0 && e.PerHost > p.PerHost {
			t.Fatalf("%d per host granted", e.PerHost)
		}
		less := e.Pages > 0 && (a.Pages <= 0 || e.Pages < a.Pages)
		said := false
		for _, r := range e.Reasons {
			said = said || r.Limit == "pages" && r.By == e.PagesBy && r.Message != ""
		}
		if less != said {
			t.Fatalf("less: %t, reasons %+v", less, e.Reasons)
		}
	})
}

func Test_SAF_8_the_caps_of_today_lower_what_was_granted_and_never_raise_it(t *testing.T) {
	n := rapid.Int64Range(0, 300)
	rapid.Check(t, func(t *rapid.T) {
		asked := Ask{Pages: n.Draw(t, "pages"), Time: time.Duration(n.Draw(t, "time")) * time.Second}
		draw := func() Safety {
			return Safety{MaxPages: n.Draw(t, "cap"), Timeout: time.Duration(n.Draw(t, "timeout")) * time.Second}
		}
		then, today := draw(), draw()
		e, _ := Limit(asked, then, Plan{}, Spent{})
		low := e.Lower(asked, today)
		// As if both caps had been there from the start, sentences included.
		want, _ := Limit(asked, Safety{MaxPages: least(then.MaxPages, today.MaxPages), Timeout: time.Duration(least(int64(then.Timeout), int64(today.Timeout)))}, Plan{}, Spent{})
		if low.Pages != want.Pages || low.TimeMS != want.TimeMS {
			t.Fatalf("%+v, want %+v", low, want)
		}
		if low.Pages != e.Pages && low.PageStop != want.PageStop || low.TimeMS != e.TimeMS && low.TimeStop != want.TimeStop {
			t.Fatalf("%q %q, want %q %q", low.PageStop, low.TimeStop, want.PageStop, want.TimeStop)
		}
	})
}

// least of two limits, of which zero is none.
func least(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
