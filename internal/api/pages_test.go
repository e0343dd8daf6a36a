package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// crowd commits n pages with a bit of everything.
func (w *world) crowd(crawlID int64, from, n int) {
	w.t.Helper()
	const batch = 1000
	for ; n > 0; n -= batch {
		var pages []ledger.Page
		for i := range min(n, batch) {
			p := page(crawlID, fmt.Sprintf("https://h%d.example/p%d", (from+i)%5, from+i))
			switch i % 10 {
			case 3:
				p.Outcome, p.Status = outcome.NotFound, 404
			case 6:
				p.Outcome, p.Status, p.Size, p.Timing = outcome.Timeout, 0, 0, ledger.Timing{}
			}
			p.Depth = i % 4
			pages = append(pages, p)
		}
		w.commit(pages...)
		from += batch
	}
}

func Test_a_list_of_pages_is_whole_page_by_page_also_while_more_are_written(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://h0.example/")
		w.crowd(crawlID, 0, 130)
		seen := map[string]bool{}
		cursor := ""
		for calls := 0; ; calls++ {
			l := get[List[Page]](w, w.ann, "/v1/jobs/"+id+"/pages?limit=50"+cursor)
			for _, p := range l.Items {
				if seen[p.URL] {
					t.Fatalf("%s twice", p.URL)
				}
				seen[p.URL] = true
			}
			if calls == 1 {
				w.crowd(crawlID, 130, 20)
			}
			if l.Next == nil {
				break
			}
			cursor = "&cursor=" + *l.Next
		}
		if len(seen) != 150 {
			t.Errorf("%d pages", len(seen))
		}
	})
}

func Test_pages_are_filtered_and_what_is_unknown_is_null(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://h0.example/")
		w.crowd(crawlID, 0, 100)
		for query, n := range map[string]int{
			"outcome=not_found": 10, "outcome=not_found,timeout": 20, "status=404": 10, "status=400-499": 10, "status=0": 10, "status=200": 80,
			"host=h1.example": 20, "host=H1.Example": 20, "host=*.example": 100, "q=p99": 1, "q=p9": 11, "kind=page": 100, "kind=sitemap": 0,
			"depth=0": 25, "depth=0-1": 50, "outcome=ok&host=h0.example&depth=0": 5,
		} {
			if l := get[List[Page]](w, w.ann, "/v1/jobs/"+id+"/pages?limit=500&"+query); len(l.Items) != n || l.Next != nil {
				t.Errorf("%s: %d", query, len(l.Items))
			}
		}
		a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/pages?outcome=timeout&limit=1", "")
		for _, want := range []string{`"status":null`, `"bytes":null`, `"ms":null`, `"noindex":null`, `"redirect_to":null`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s is not in %s", want, a.body)
			}
		}
		a = w.do(w.ann, "GET", "/v1/jobs/"+id+"/pages?outcome=ok&limit=1", "")
		for _, want := range []string{`"status":200`, `"bytes":1000`, `"ms":12.345`, `"line":3`, `a \u003cb\u003etitle\u003c/b\u003e \u0026 more`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s is not in %s", want, a.body)
			}
		}
		queued := w.order(w.ann, "https://a.example/").ID
		for _, what := range []string{"pages", "errors", "evidence?url=https://a.example/", "hosts", "deliveries"} {
			if l := get[List[any]](w, w.ann, "/v1/jobs/"+queued+"/"+what); l.Items == nil || len(l.Items) != 0 {
				t.Errorf("%s of a job that has not begun: %+v", what, l)
			}
		}
		w.refused(w.do(w.ann, "GET", "/v1/jobs/"+queued+"/explain?url=https://a.example/", ""), 409)
		w.refused(w.do(w.ann, "GET", "/v1/jobs/"+queued+"/export", ""), 409)
	})
}

func Test_broken_pages_come_with_those_who_link_to_them_and_throttled_ones_are_not_broken(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://a.example/")
		gone, slow := page(crawlID, "https://a.example/gone"), page(crawlID, "https://a.example/slow")
		gone.Outcome, gone.Status = outcome.NotFound, 404
		slow.Outcome, slow.Status = outcome.Throttled, 429
		guess := page(crawlID, "https://a.example/sitemap.xml") // nobody links to it: it is not broken
		guess.Kind, guess.Outcome, guess.Status = "sitemap", outcome.NotFound, 404
		pages := []ledger.Page{gone, slow, guess}
		for i := range 15 {
			p := page(crawlID, fmt.Sprintf("https://a.example/%d", i))
			p.Links = []uint64{gone.FP.Lo, slow.FP.Lo}
			p.LinkCount = 2
			pages = append(pages, p)
		}
		w.commit(pages...)
		l := get[List[BrokenPage]](w, w.ann, "/v1/jobs/"+id+"/errors").Items
		if len(l) != 1 || l[0].URL != gone.URL || l[0].LinkedFromCount != 15 || len(l[0].LinkedFrom) != maxLinkers || l[0].LinkedFrom[0] != "https://a.example/0" {
			t.Errorf("%+v", l)
		}
	})
}

func Test_evidence_and_explanation_of_a_url_are_found_by_any_spelling_of_it(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://a.example/")
		p := page(crawlID, "https://a.example/x")
		w.must(w.db.Commit(w.ctx(), &ledger.Batch{Pages: []ledger.Page{p}, Evidence: []ledger.Evidence{
			{Crawl: crawlID, URL: p.URL, FP: p.FP, Type: "throttled", Content: `{"retry_after":"5"}`, Metadata: `{"url":"x"}`, Confidence: 1, At: time.Now()}}}))
		l := get[List[Evidence]](w, w.ann, "/v1/jobs/"+id+"/evidence?url=HTTPS://A.EXAMPLE:443/x%23here").Items
		if len(l) != 2 {
			t.Fatalf("%+v", l)
		}
		for _, e := range l {
			switch e.Type {
			case "throttled":
				if string(e.Content) != `{"retry_after":"5"}` {
					t.Errorf("%s", e.Content)
				}
			case ledger.RobotsAllowed:
				if *e.Line != 3 {
					t.Errorf("%+v", e)
				}
			}
		}
		if e := get[map[string]any](w, w.ann, "/v1/jobs/"+id+"/explain?url=https://a.example/x"); e["input"] != "https://a.example/x" {
			t.Errorf("%v", e)
		}
		w.refused(w.do(w.ann, "GET", "/v1/jobs/"+id+"/explain?url=nonsense", ""), 422)
	})
}

func Test_an_export_is_a_download_and_one_that_breaks_off_does_not_look_whole(t *testing.T) {
	var fail atomic.Value // early or late; a client may quietly ask again
	fail.Store("")
	w := newWorld(t, openSQLite(t), func(c *Config) {
		good := c.Export
		c.Export = func(ctx context.Context, out io.Writer, format string, crawl int64) error {
			switch fail.Load() {
			case "":
				return good(ctx, out, format, crawl)
			case "late":
				fmt.Fprintln(out, "one line")
			}
			return errors.New("the disk is gone")
		}
	})
	id, _ := w.begin(w.ann, "https://a.example/")
	for format, kind := range map[string]string{"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8", "sitemap": "application/xml"} {
		a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/export?format="+format, "")
		if a.status != 200 || a.body != "an export as "+format+"\n" || a.header.Get("Content-Type") != kind || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment; filename=\"tiptoe-"+id) {
			t.Errorf("%+v", a)
		}
	}
	fail.Store("early")
	w.refused(w.do(w.ann, "GET", "/v1/jobs/"+id+"/export", ""), 500)
	fail.Store("late")
	r := w.request(w.ann, "/v1/jobs/"+id+"/export")
	resp, err := w.srv.Client().Do(r)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("half an export looks whole")
	}
}

func Test_the_numbers_of_an_ended_job_are_counted_from_its_requests(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://a.example/")
		from := time.Now().Add(-time.Hour).Truncate(time.Second)
		u, _ := weburl.Parse("https://a.example/")
		var list []ledger.Request
		for i := range 2000 { // one a second, half a second long
			r := ledger.Request{Crawl: crawlID, Permit: uint64(i + 1), Group: "a.example", URL: u.String(), FP: u.Fingerprint(), Kind: "page", Cause: "first",
				Started: from.Add(time.Duration(i) * time.Second), Status: 200, Outcome: outcome.OK}
			r.Ended = r.Started.Add(500 * time.Millisecond)
			if i%4 == 0 {
				r.Status, r.Outcome = 429, outcome.Throttled
			}
			list = append(list, r)
		}
		w.must(w.db.Commit(w.ctx(), &ledger.Batch{Requests: list}))
		w.step(id, ledger.Completed, nil)
		for range 2 { // counted, and remembered
			s := get[Series](w, w.ann, "/v1/jobs/"+id+"/series")
			if s.Step != 4 || len(s.Points) != 500 {
				t.Fatalf("%d points of %g s", len(s.Points), s.Step)
			}
			for i, p := range s.Points {
				if p.Classes != [6]int64{0, 0, 3, 0, 1, 0} || p.HTTP429 != 1 || p.PagesPerSec != 1 || *p.InFlight != 0 || p.Queued != nil {
					t.Fatalf("point %d: %+v", i, p)
				}
			}
		}
	})
}

func Test_the_numbers_of_a_job_that_another_server_drove_are_whole_as_soon_as_it_has_ended(t *testing.T) {
	now := newClock()
	w := newWorld(t, openSQLite(t), func(c *Config) { c.Now = now.now })
	id, crawlID := w.begin(w.ann, "https://a.example/")
	points := func(permit uint64, after time.Duration) int {
		t.Helper()
		if at := now.now().Add(after); permit > 0 {
			w.must(w.db.Commit(w.ctx(), &ledger.Batch{Requests: []ledger.Request{{Crawl: crawlID, Permit: permit, Group: "a.example", Kind: "page", Started: at, Ended: at, Status: 200}}}))
		}
		return len(get[Series](w, w.ann, "/v1/jobs/"+id+"/series").Points)
	}
	if n := points(1, 0); n != 1 {
		t.Fatalf("%d points", n)
	}
	if n := points(2, 20*time.Second); n != 1 {
		t.Errorf("%d points: a job that runs is counted at every request", n)
	}
	w.step(id, ledger.Completed, nil)
	if n := points(0, 0); n != 21 {
		t.Errorf("%d points after the end, want 21", n)
	}
}

func Test_hosts_are_told_of_only_to_those_who_crawled_them(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://h0.example/")
		w.crowd(crawlID, 0, 20)
		for i := range 8 {
			d := ledger.Domain{Host: fmt.Sprintf("h%d.example", i), CrawlDelay: time.Second, Updated: time.Now()}
			if i%2 == 0 {
				d.AdaptiveDelay, d.AdaptiveFloor = 3*time.Second, 2*time.Second
			}
			w.must(w.db.SetDomain(w.ctx(), d))
		}
		names := func(l List[Domain]) (s string) {
			for _, d := range l.Items {
				s += strings.TrimSuffix(d.Host, ".example") + " "
			}
			return s
		}
		for query, want := range map[string]string{"job=" + id: "h0 h1 h2 h3 h4 ", "job=" + id + "&learned=true": "h0 h2 h4 ", "job=" + id + "&q=h3": "h3 ",
			"job=" + id + "&limit=2": "h0 h1 ", "job=" + id + "&limit=2&cursor=h1.example": "h2 h3 "} {
			if l := get[List[Domain]](w, w.ann, "/v1/domains?"+query); names(l) != want || (l.Next != nil) != strings.Contains(query, "limit") {
				t.Errorf("%s: %s", query, names(l))
			}
		}
		for query, want := range map[string]string{"": "h0 h1 h2 h3 h4 h5 h6 h7 ", "learned=true": "h0 h2 h4 h6 ", "limit=3&cursor=h2.example": "h3 h4 h5 "} {
			if l := get[List[Domain]](w, w.op, "/v1/domains?"+query); names(l) != want {
				t.Errorf("%s: %s", query, names(l))
			}
		}
		if d := get[Domain](w, w.ann, "/v1/domains/h2.example?job="+id); d.Delay != 3000 || d.Floor != 2000 || *d.CrawlDelay != 1000 || d.BlockedUntil != nil {
			t.Errorf("%+v", d)
		}
		theirs, none := w.do(w.ann, "GET", "/v1/domains/h6.example?job="+id, ""), w.do(w.ann, "GET", "/v1/domains/nobody.example?job="+id, "")
		w.refused(none, 404)
		if same(theirs) != same(none) {
			t.Errorf("a host of others is told from one nobody knows")
		}
		// A page written later brings its host.
		w.commit(page(crawlID, "https://h6.example/"))
		get[Domain](w, w.ann, "/v1/domains/h6.example?job="+id)
		w.refused(w.do(w.ann, "DELETE", "/v1/domains/h6.example", ""), 403)
		if a := w.do(w.op, "DELETE", "/v1/domains/h6.example", ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
		w.refused(w.do(w.op, "GET", "/v1/domains/h6.example", ""), 404)
		w.refused(w.do(w.op, "DELETE", "/v1/domains/h6.example", ""), 404)
		if x := get[List[Action]](w, w.op, "/v1/operator-log").Items; len(x) != 1 || x[0].Action != "domain.delete" || x[0].Target != "h6.example" || x[0].Remote != "127.0.0.1" {
			t.Errorf("%+v", x)
		}
	})
}

func Test_one_page_is_fetched_now_or_its_host_had_no_place(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	if p := decode[Page](w, w.do(w.ann, "POST", "/v1/fetch", `{"url":"https://a.example/"}`), 200); p.Outcome != "ok" || *p.Status != 200 {
		t.Errorf("%+v", p)
	}
	a := w.do(w.ann, "POST", "/v1/fetch", `{"url":"https://busy.example/"}`)
	if d := w.refused(a, 503); d != "Timeout waiting for host concurrency slot" || a.header.Get("Retry-After") == "" {
		t.Errorf("%q %v", d, a.header)
	}
}
