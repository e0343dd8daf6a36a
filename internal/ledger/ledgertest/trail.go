package ledgertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var trailCases = []testCase{
	{"EVI-1 every robots decision is evidence with its rule, line, delay and time", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		allowed, blocked := FullPage(crawl, "https://a.example/yes"), page(crawl, "https://a.example/no", outcome.Robots, 0)
		blocked.Robots = ledger.RobotsDecision{Decided: true, Rule: "Disallow: /no", Line: 3, FetchedAt: t0.Add(-time.Second), Confidence: 1}
		undecided := page(crawl, "https://a.example/maybe", outcome.Scope, 0)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{allowed, blocked, undecided}})

		for _, c := range []struct {
			page                   ledger.Page
			kind, content, details string
		}{
			{allowed, ledger.RobotsAllowed,
				`{"allowed":true,"matchedRule":"Allow: /","crawlDelay":1.5,"timestamp":"2026-03-04T05:06:07.089Z"}`,
				`{"url":"https://a.example/yes","allowed":true,"matchedRule":"Allow: /","crawlDelay":1.5}`},
			{blocked, ledger.BlockedByRobots,
				`{"allowed":false,"matchedRule":"Disallow: /no","crawlDelay":null,"timestamp":"2026-03-04T05:06:07.089Z"}`,
				`{"url":"https://a.example/no","allowed":false,"matchedRule":"Disallow: /no","crawlDelay":null}`},
		} {
			ev, err := s.Evidence(t.Context(), crawl, c.page.URL)
			if err != nil || len(ev) != 1 {
				t.Fatalf("%d rows, %v", len(ev), err)
			}
			e, r := ev[0], c.page.Robots
			equal(t, "content", parsed(t, e.Content), parsed(t, c.content))
			equal(t, "metadata", parsed(t, e.Metadata), parsed(t, c.details))
			e.Content, e.Metadata = "", ""
			equal(t, "evidence", e, ledger.Evidence{Crawl: crawl, URL: c.page.URL, FP: c.page.FP, Type: c.kind, At: c.page.FetchedAt,
				Confidence: r.Confidence, Line: r.Line, FetchedAt: r.FetchedAt, Ignored: r.Ignored})
		}
		if ev, err := s.Evidence(t.Context(), crawl, undecided.URL); err != nil || len(ev) != 0 {
			t.Errorf("a page without a decision has evidence %v, %v", ev, err)
		}
	}},
	{"other evidence is kept beside it, oldest first, once for each type and time", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		p := FullPage(crawl, "https://a.example/")
		old, young := evidence(crawl, p.URL, "throttled", t0.Add(-time.Minute)), evidence(crawl, p.URL, "throttled", t0.Add(time.Minute))
		elsewhere := evidence(crawl, "https://a.example/else", "trap", t0)
		b := &ledger.Batch{Pages: []ledger.Page{p}, Evidence: []ledger.Evidence{young, old, elsewhere}}
		commit(t, s, b)
		commit(t, s, &ledger.Batch{Evidence: []ledger.Evidence{old}})
		got, err := s.Evidence(t.Context(), crawl, p.URL)
		if err != nil || len(got) != 3 {
			t.Fatalf("%+v, %v", got, err)
		}
		equal(t, "first", got[0], old)
		equal(t, "second", got[1].Type, ledger.RobotsAllowed)
		equal(t, "third", got[2], young)
		got, err = s.Evidence(t.Context(), crawl, elsewhere.URL) // a reason without a page
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "elsewhere", got, []ledger.Evidence{elsewhere})
	}},
	{"requests are listed in the order of their starts and added up", func(t *testing.T, s Store) {
		crawl, other := newCrawl(t, s), newCrawl(t, s)
		var want []ledger.Request
		b := &ledger.Batch{}
		const n = 1203
		for i := range n {
			r := request(crawl, uint64(n-i), fmt.Sprintf("https://a.example/%d", i), t0.Add(time.Duration(i)*time.Microsecond))
			if i%10 == 0 {
				r.Status, r.Outcome, r.Cause, r.Error = 429, outcome.Throttled, "retry", "slow down"
			}
			want = append(want, r)
		}
		b.Requests = append(b.Requests, want[n/2:]...)
		b.Requests = append(b.Requests, want[:n/2]...)
		b.Requests = append(b.Requests, request(other, 5, "https://a.example/robots.txt", t0))
		p := page(crawl, "https://a.example/p", outcome.OK, 200)
		p.WireSize = 1000
		b.Pages = []ledger.Page{p}
		commit(t, s, b)
		commit(t, s, b)
		equal(t, "requests", collect(t, s.Requests(t.Context(), crawl)), want)
		totals, err := s.Totals(t.Context(), crawl)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "totals", totals, ledger.Totals{Requests: n, HTTP429: 121, Retries: 121, Bytes: 1000})
	}},
	{"a request whose page is known may leave its URL to the page", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		p := page(crawl, "https://a.example/p", outcome.OK, 200)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{p}, Requests: []ledger.Request{request(crawl, 1, p.URL, t0)}})
		for r, err := range s.Requests(t.Context(), crawl) {
			if err != nil {
				t.Fatal(err)
			}
			if r.URL != "" && r.URL != p.URL {
				t.Errorf("URL %q", r.URL)
			}
			if got, ok, err := s.PageByFP(t.Context(), crawl, r.FP); err != nil || !ok || got.URL != p.URL {
				t.Errorf("its page: %q, %v, %v", got.URL, ok, err)
			}
		}
	}},
	{"the pages that link to a URL are found, each counted once", func(t *testing.T, s Store) {
		crawl, other := newCrawl(t, s), newCrawl(t, s)
		broken := weburl.FromCanonical("https://a.example/broken").Fingerprint().Lo
		lonely := weburl.FromCanonical("https://a.example/lonely").Fingerprint().Lo
		b := &ledger.Batch{}
		var want []string
		for i := range 1203 {
			p := page(crawl, fmt.Sprintf("https://a.example/%d", i), outcome.OK, 200)
			p.Links = []uint64{uint64(i), 17, broken, 18, broken}
			if i%3 == 0 {
				p.Links = p.Links[:2]
			} else {
				want = append(want, p.URL)
			}
			b.Pages = append(b.Pages, p)
		}
		p := page(other, "https://a.example/other", outcome.OK, 200)
		p.Links = []uint64{broken}
		b.Pages = append(b.Pages, p)
		commit(t, s, b)
		commit(t, s, b)
		got, err := s.LinksTo(t.Context(), crawl, []uint64{broken, lonely}, 0)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "all", got, map[uint64]ledger.LinkSources{broken: {Count: 802, URLs: want}})
		got, err = s.LinksTo(t.Context(), crawl, []uint64{broken}, 2)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "first two", got, map[uint64]ledger.LinkSources{broken: {Count: 802, URLs: want[:2]}})
	}},
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	return v
}
