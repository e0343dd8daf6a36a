package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/audit"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var t0 = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Time { return t0.Add(time.Duration(n) * time.Millisecond) }

// log is a log in memory.
type log struct {
	settings []ledger.Settings
	rows     []ledger.Replayed
	pages    []ledger.Page
}

func (l *log) Settings(context.Context) ([]ledger.Settings, error) { return l.settings, nil }

func (l *log) Replay(context.Context, int64) iter.Seq2[ledger.Replayed, error] {
	return func(yield func(ledger.Replayed, error) bool) {
		for _, r := range l.rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l *log) Judgements(context.Context) iter.Seq2[ledger.Judged, error] {
	return func(yield func(ledger.Judged, error) bool) {
		for _, p := range l.pages {
			if !yield(ledger.Judged{Crawl: p.Crawl, FP: p.FP, Host: p.Host, Outcome: p.Outcome, Robots: p.Robots}, nil) {
				return
			}
		}
	}
}

func (l *log) PageByFP(_ context.Context, crawl int64, fp weburl.Fingerprint) (ledger.Page, bool, error) {
	for _, p := range l.pages {
		if p.Crawl == crawl && p.FP == fp {
			return p, true, nil
		}
	}
	return ledger.Page{}, false, nil
}

func (l *log) promise(crawlID int64, since time.Time, base time.Duration, perHost int) {
	spec, err := json.Marshal(crawl.Spec{DelayMin: base, DelayMax: 2 * base, PerHost: perHost})
	if err != nil {
		panic(err)
	}
	l.settings = append(l.settings, ledger.Settings{Crawl: crawlID, Since: since, Spec: spec})
}

// request adds a request of crawl 1 to a.example from one time to another.
func (l *log) request(from, to int, change func(*ledger.Replayed)) {
	u := weburl.FromCanonical(fmt.Sprintf("https://a.example/%d", len(l.rows)))
	r := ledger.Replayed{Request: ledger.Request{Crawl: 1, Permit: uint64(len(l.rows) + 1), Group: "a.example", URL: u.String(), FP: u.Fingerprint(),
		Kind: "page", Cause: "first", Started: ms(from), Granted: ms(from), Ended: ms(to), Outcome: outcome.OK, Cap: 2, InFlight: 1}}
	if change != nil {
		change(&r)
	}
	l.rows = append(l.rows, r)
}

func (l *log) page(url string, o outcome.Outcome, d ledger.RobotsDecision) {
	u := weburl.FromCanonical(url)
	l.pages = append(l.pages, ledger.Page{Crawl: 1, URL: url, FP: u.Fingerprint(), Host: u.HostKey(), Outcome: o, Robots: d})
}

func (l *log) verdict(t *testing.T, only int64, want ...audit.Kind) *audit.Report {
	t.Helper()
	r, err := audit.Run(context.Background(), l, only)
	if err != nil {
		t.Fatal(err)
	}
	var got []audit.Kind
	for _, v := range r.Violations {
		got = append(got, v.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("violations %v, want %v\n%s", got, want, text(t, r))
	}
	return r
}

func Test_a_gap_is_measured_to_the_microsecond(t *testing.T) {
	for _, c := range []struct {
		short time.Duration
		want  []audit.Kind
	}{{0, nil}, {time.Microsecond, nil}, {2 * time.Microsecond, []audit.Kind{audit.GapTooShort}}} {
		l := &log{}
		l.promise(1, t0, 100*time.Millisecond, 2)
		l.request(0, 10, nil)
		l.request(100, 110, func(r *ledger.Replayed) { r.Started = r.Started.Add(-c.short) })
		l.verdict(t, 0, c.want...)
	}
}

func Test_a_request_that_never_left_neither_owes_nor_counts(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 100*time.Millisecond, 2)
	l.request(0, 10, nil)
	l.request(50, 5000, func(r *ledger.Replayed) { r.Cause += ledger.NotSent })
	l.request(100, 110, nil)
	r := l.verdict(t, 0)
	if r.Requests != 2 || r.NotSent != 1 || r.Hosts[0].MostInFlight != 1 {
		t.Errorf("%d requests, %d not sent, %d in flight", r.Requests, r.NotSent, r.Hosts[0].MostInFlight)
	}
}

func Test_what_was_granted_before_the_server_asked_may_still_arrive(t *testing.T) {
	for name, c := range map[string]struct {
		permit uint64
		want   []audit.Kind
	}{"granted before": {2, nil}, "granted after": {3, []audit.Kind{audit.BlockBroken}}} {
		l := &log{}
		l.promise(1, t0, 0, 5)
		l.request(0, 10, func(r *ledger.Replayed) { r.AskedUntil, r.AskedAfter = ms(3000), 2 })
		l.request(20, 30, func(r *ledger.Replayed) { r.Permit = c.permit })
		l.request(3000, 3010, func(r *ledger.Replayed) { r.Permit = 9 })
		r := l.verdict(t, 0, c.want...)
		if h := r.Hosts[0]; h.Blocks != 1 || (h.BlocksKept == 1) != (c.want == nil) {
			t.Errorf("%s: %d of %d blocks kept", name, h.BlocksKept, h.Blocks)
		}
	}
}

func Test_a_wider_cap_of_a_request_in_flight_still_holds(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 0, 3)
	l.request(0, 100, func(r *ledger.Replayed) { r.Cap = 3 })
	l.request(1, 100, func(r *ledger.Replayed) { r.Cap = 3 })
	l.request(2, 100, func(r *ledger.Replayed) { r.Cap = 2 }) // granted early, on the wire late
	l.verdict(t, 0)
	l.request(3, 100, func(r *ledger.Replayed) { r.Cap = 3 })
	r := l.verdict(t, 0, audit.TooManyInFlight)
	if h := r.Hosts[0]; h.MostInFlight != 4 || h.CapThere != 3 {
		t.Errorf("%d in flight under a cap of %d", h.MostInFlight, h.CapThere)
	}
}

func Test_a_request_that_ends_when_the_next_begins_is_not_in_flight(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 0, 1)
	l.request(0, 10, func(r *ledger.Replayed) { r.Cap = 1 })
	l.request(10, 20, func(r *ledger.Replayed) { r.Cap = 1 })
	l.verdict(t, 0)
}

func Test_each_part_of_a_resumed_crawl_is_judged_by_its_own_settings(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 100*time.Millisecond, 2)
	l.promise(1, ms(1000), 10*time.Millisecond, 2)
	l.request(0, 5, nil)
	l.request(100, 105, nil)
	l.request(1000, 1005, nil)
	l.request(1010, 1015, nil)
	l.verdict(t, 0)
	l.rows[1].Started = ms(50)
	l.verdict(t, 0, audit.GapTooShort)
}

func Test_a_robots_txt_that_changed_its_mind_is_no_breach(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 0, 2)
	l.request(0, 5, func(r *ledger.Replayed) { r.Kind = "robots" })
	l.request(10, 15, func(r *ledger.Replayed) { r.Outcome, r.RetryAt = outcome.Throttled, ms(5000) })
	l.page(l.rows[1].URL, outcome.Robots, ledger.RobotsDecision{Decided: true, Allowed: false, FetchedAt: ms(4000)})
	l.verdict(t, 0)
	l.pages[0].Robots.FetchedAt = ms(5)
	l.verdict(t, 0, audit.Disallowed)
}

func Test_a_refusal_that_was_lifted_is_no_breach_while_the_url_is_on_its_way(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 0, 2)
	l.request(10, 15, func(r *ledger.Replayed) { r.Outcome, r.RetryAt = outcome.ServerError, ms(5000) })
	l.page(l.rows[0].URL, outcome.Trap, ledger.RobotsDecision{})
	l.verdict(t, 0)
	l.rows[0].RetryAt = time.Time{}
	l.verdict(t, 0, audit.Refused)
}

func Test_two_origins_of_one_host_with_different_delays_are_told_apart(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 0, 2)
	l.request(100, 105, nil)
	l.request(200, 205, nil)
	l.request(300, 305, nil)
	slow := ledger.RobotsDecision{Decided: true, Allowed: true, FetchedAt: ms(50), CrawlDelay: 5 * time.Second}
	fast := ledger.RobotsDecision{Decided: true, Allowed: true, FetchedAt: ms(20)}
	l.page(l.rows[0].URL, outcome.OK, fast)
	l.page(l.rows[1].URL, outcome.OK, fast)
	l.page(l.rows[2].URL, outcome.OK, slow)
	l.verdict(t, 0)
	l.pages[1].Robots = slow
	l.verdict(t, 0, audit.GapTooShort)
}

func Test_one_crawl_is_judged_beside_the_others(t *testing.T) {
	l := &log{}
	l.promise(1, t0, 100*time.Millisecond, 2)
	l.promise(2, t0, 100*time.Millisecond, 2)
	l.promise(3, t0, 100*time.Millisecond, 2)
	l.request(0, 5, nil)
	l.request(100, 105, func(r *ledger.Replayed) { r.Crawl = 2 })
	l.request(150, 155, func(r *ledger.Replayed) { r.Crawl = 3 })
	l.verdict(t, 0, audit.GapTooShort)
	l.verdict(t, 1)
	r := l.verdict(t, 2, audit.GapTooShort)
	if r.Requests != 1 {
		t.Errorf("crawl 2 made 1 request, not %d", r.Requests)
	}
	l.verdict(t, 3, audit.GapTooShort)
}

func Test_a_log_full_of_breaches_is_counted_whole_and_told_in_part(t *testing.T) {
	l := &log{}
	l.promise(1, t0, time.Second, 2)
	for i := range 3001 {
		l.request(i, i, nil)
	}
	r, err := audit.Run(context.Background(), l, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.ViolationCount != 3000 || len(r.Violations) != 1000 {
		t.Errorf("%d counted, %d told", r.ViolationCount, len(r.Violations))
	}
	if out := text(t, r); !strings.Contains(out, "BROKEN: 3000 promises.") || strings.Count(out, "BROKEN a.example") != 20 || !strings.Contains(out, "and 2980 more") {
		t.Error(out)
	}
}

func Test_a_host_name_cannot_drive_the_terminal(t *testing.T) {
	l := &log{}
	l.promise(1, t0, time.Second, 2)
	l.request(0, 1, func(r *ledger.Replayed) { r.Group = "a\x1b[2J.example" })
	l.request(1, 2, func(r *ledger.Replayed) { r.Group, r.URL = "a\x1b[2J.example", "http://x/\x1b]0;t\x07" })
	if out := text(t, l.verdict(t, 0, audit.GapTooShort)); strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
}
