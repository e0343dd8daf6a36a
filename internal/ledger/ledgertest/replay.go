package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var replayCases = []testCase{
	{"a replay goes group by group, by start, with what was waited and asked for", replayOrder},
	{"a replay for one crawl has its groups whole and no others", func(t *testing.T, s Store) {
		a, b := newCrawl(t, s), newCrawl(t, s)
		mine, theirs, far := request(a, 1, "https://a.example/1", t0), request(b, 1, "https://a.example/2", t0.Add(time.Second)),
			request(b, 2, "https://z.example/", t0)
		far.Group = "z.example"
		commit(t, s, &ledger.Batch{Requests: []ledger.Request{far, theirs, mine}})
		for only, want := range map[int64][]ledger.Request{0: {mine, theirs, far}, a: {mine, theirs}, b: {mine, theirs, far}, 9999: nil} {
			var got []ledger.Request
			for _, r := range collect(t, s.Replay(t.Context(), only)) {
				got = append(got, r.Request)
			}
			equal(t, fmt.Sprintf("for crawl %d of %d and %d", only, a, b), got, want)
		}
	}},
	{"a request that was never sent is in no replay, and a replay can be left early", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		unsent := request(crawl, 1, "https://a.example/", time.Time{})
		unsent.Ended = time.Time{}
		b := &ledger.Batch{Requests: []ledger.Request{unsent, request(crawl, 2, "https://a.example/", t0)}}
		commit(t, s, b)
		if got := collect(t, s.Replay(t.Context(), 0)); len(got) != 1 || got[0].Permit != 2 {
			t.Errorf("replayed %+v", got)
		}
		for range 40 { // more often than there are connections
			for range s.Replay(t.Context(), crawl) {
				break
			}
			for range s.Judgements(t.Context()) {
				break
			}
		}
		got, err := s.RequestsOf(t.Context(), crawl, unsent.FP)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "of the URL, what never started first", got, b.Requests)
	}},
	{"what was decided about every page of every crawl is listed", func(t *testing.T, s Store) {
		a, b := newCrawl(t, s), newCrawl(t, s)
		var all []ledger.Page
		for i := range 1203 {
			p := page([]int64{a, b}[i%2], fmt.Sprintf("https://a.example/%d", i), outcome.OK, 200)
			if i%3 > 0 {
				p.Outcome = outcome.Robots
				p.Robots = ledger.RobotsDecision{Decided: true, Allowed: i%3 == 1, FetchedAt: t0, CrawlDelay: 2 * time.Second, Ignored: i%5 == 0}
			}
			all = append(all, p)
		}
		commit(t, s, &ledger.Batch{Pages: all})
		var want []ledger.Judged
		for _, crawl := range []int64{a, b} {
			for _, p := range all {
				if p.Crawl == crawl {
					want = append(want, ledger.Judged{Crawl: crawl, FP: p.FP, Host: p.Host, Outcome: p.Outcome, Robots: p.Robots})
				}
			}
		}
		equal(t, "judgements", collect(t, s.Judgements(t.Context())), want)
	}},
	{"a request keeps its URL unless a page of its own crawl has it", func(t *testing.T, s Store) {
		a, b := newCrawl(t, s), newCrawl(t, s)
		p := page(a, "https://a.example/p", outcome.OK, 200)
		other := request(b, 1, p.URL, t0)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{p}, Requests: []ledger.Request{request(a, 1, p.URL, t0), other}})
		equal(t, "the other crawl's", collect(t, s.Requests(t.Context(), b)), []ledger.Request{other})
	}},
	{"settings are remembered when they change and only then", func(t *testing.T, s Store) {
		c := ledger.Crawl{Status: ledger.Running, Spec: []byte(`{"delay_min":1}`), Started: t0}
		if _, err := s.CreateCrawl(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		for i, spec := range []string{`{"delay_min":1}`, `{"delay_min":2}`, `{"delay_min":2}`, `{"delay_min":1}`} {
			c.Spec, c.Updated = []byte(spec), t0.Add(time.Duration(i+1)*time.Second)
			if err := s.UpdateCrawl(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Settings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "settings", got, []ledger.Settings{{Crawl: c.ID, Since: t0, Spec: []byte(`{"delay_min":1}`)},
			{Crawl: c.ID, Since: t0.Add(2 * time.Second), Spec: []byte(`{"delay_min":2}`)},
			{Crawl: c.ID, Since: t0.Add(4 * time.Second), Spec: []byte(`{"delay_min":1}`)}})
		if row, err := s.Crawl(t.Context(), c.ID); err != nil || string(row.Spec) != `{"delay_min":1}` {
			t.Errorf("what the crawl was started with is now %s, %v", row.Spec, err)
		}
	}},
}

func replayOrder(t *testing.T, s Store) {
	crawl := newCrawl(t, s)
	at := t0.Add(456 * time.Microsecond)
	u := weburl.FromCanonical("https://b.example/x")
	asked := ledger.Request{Crawl: crawl, Permit: 2, Group: "b.example", URL: u.String(), FP: u.Fingerprint(), Kind: "page", Cause: "retry",
		Started: at, Ended: at.Add(time.Second), Status: 429, Outcome: outcome.Throttled, GapOwed: time.Second, InFlight: 1, Cap: 2,
		Granted: at.Add(-time.Millisecond), GapWhy: "base delay", AskedUntil: at.Add(time.Minute), AskedAfter: 7,
		RetryAt: at.Add(time.Hour), RetryWhy: "Retry-After"}
	silent := asked // throttled without a header, and so without the evidence
	silent.Permit, silent.Started, silent.Ended = 1, at.Add(time.Minute), at.Add(2*time.Minute)
	first := ledger.Request{Crawl: crawl, Permit: 3, Group: "a.example", URL: "https://a.example/robots.txt", FP: weburl.Fingerprint{Lo: 1},
		Kind: "robots", Cause: "robots", Started: at.Add(time.Hour), Ended: at.Add(time.Hour), Outcome: outcome.OK, Cap: 2}
	last := first // groups are compared byte by byte
	last.Permit, last.Group = 4, "Z.example"
	commit(t, s, &ledger.Batch{Requests: []ledger.Request{silent, asked, last, first},
		Evidence: []ledger.Evidence{{Crawl: crawl, URL: u.String(), FP: u.Fingerprint(), Type: "throttled", At: asked.Ended, Content: `{"retryAfter":"60"}`}}})
	equal(t, "replay", collect(t, s.Replay(t.Context(), 0)),
		[]ledger.Replayed{{Request: last}, {Request: first}, {Request: asked, RetryAfter: "60"}, {Request: silent}})
	got, err := s.RequestsOf(t.Context(), crawl, u.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "of one URL", got, []ledger.Request{asked, silent})
}
