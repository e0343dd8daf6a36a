package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var pageCases = []testCase{
	{"a page is read back whole", func(t *testing.T, s Store) {
		want := FullPage(newCrawl(t, s), "https://a.example/full")
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{want}})
		got, ok, err := s.Page(t.Context(), want.Crawl, want.URL)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		want.ID = got.ID
		equal(t, "by URL", got, want)
		got, ok, err = s.PageByFP(t.Context(), want.Crawl, want.FP)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		equal(t, "by fingerprint", got, want)
		for p := range s.Pages(t.Context(), want.Crawl, ledger.PageFilter{Links: true}) {
			equal(t, "in the list", p, want)
		}
	}},
	{"what is not known about a page stays unknown", func(t *testing.T, s Store) {
		u := weburl.FromCanonical("https://a.example/")
		want := ledger.Page{Crawl: newCrawl(t, s), URL: u.String(), FP: u.Fingerprint(), Host: "a.example", Outcome: outcome.DNS}
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{want}})
		got, ok, err := s.Page(t.Context(), want.Crawl, want.URL)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		want.ID = got.ID
		equal(t, "page", got, want)
	}},
	{"a page that is not there is not found", func(t *testing.T, s Store) {
		if _, ok, err := s.Page(t.Context(), newCrawl(t, s), "https://a.example/"); ok || err != nil {
			t.Error(ok, err)
		}
	}},
	{"a later attempt replaces the earlier and keeps its place", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		first, other := FullPage(crawl, "https://a.example/a"), page(crawl, "https://a.example/b", outcome.OK, 200)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{first, other}})
		before := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{}))
		later := page(crawl, first.URL, outcome.NotFound, 404)
		later.Tries = 4
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{later}})
		after := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{Links: true}))
		later.ID = before[0].ID
		equal(t, "pages", after, []ledger.Page{later, before[1]})
	}},
	{"the last of two attempts in one batch wins", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		a, b := page(crawl, "https://a.example/", outcome.ServerError, 500), FullPage(crawl, "https://a.example/")
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{a, b}})
		got := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{Links: true}))
		b.ID = got[0].ID
		equal(t, "pages", got, []ledger.Page{b})
	}},
	{"the same URL in two crawls is two pages", func(t *testing.T, s Store) {
		a, b := newCrawl(t, s), newCrawl(t, s)
		pa, pb := page(a, "https://a.example/", outcome.OK, 200), page(b, "https://a.example/", outcome.Gone, 410)
		again := page(a, "https://a.example/2", outcome.OK, 200)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{pa, pb, again}})
		equal(t, "first crawl", urls(collect(t, s.Pages(t.Context(), a, ledger.PageFilter{}))), []string{pa.URL, again.URL})
		equal(t, "second crawl", urls(collect(t, s.Pages(t.Context(), b, ledger.PageFilter{}))), []string{pb.URL})
		counts, err := s.PageCounts(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "counts", counts, map[outcome.Outcome]int64{outcome.Gone: 1})
	}},
	{"pages are counted by outcome, each once", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		want := map[outcome.Outcome]int64{}
		b := &ledger.Batch{}
		for _, o := range outcome.All() {
			for i := range int(o) + 1 {
				b.Pages = append(b.Pages, page(crawl, fmt.Sprintf("https://a.example/%v/%d", o, i), o, 0))
			}
			want[o] = int64(o) + 1
		}
		commit(t, s, b)
		commit(t, s, b)
		got, err := s.PageCounts(t.Context(), crawl)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "counts", got, want)
	}},
	{"filters choose and orders order", filters},
	{"a listing goes on behind a cursor and neither repeats nor skips while others write", func(t *testing.T, s Store) {
		const n = 1203 // more than two chunks of any sensible size
		crawl := newCrawl(t, s)
		b := &ledger.Batch{}
		var want []string
		for i := range n {
			b.Pages = append(b.Pages, page(crawl, fmt.Sprintf("https://a.example/%d", i), outcome.OK, 200))
			want = append(want, b.Pages[i].URL)
		}
		commit(t, s, b)
		var got []string
		var cursor int64
		for p, err := range s.Pages(t.Context(), crawl, ledger.PageFilter{Limit: 700}) {
			if err != nil {
				t.Fatal(err)
			}
			got, cursor = append(got, p.URL), p.ID
			if len(got)%100 == 0 { // a replaced page must not move
				again := page(crawl, want[len(got)/2], outcome.OK, 200)
				commit(t, s, &ledger.Batch{Pages: []ledger.Page{again}})
			}
		}
		if len(got) != 700 {
			t.Fatalf("a limit of 700 gave %d pages", len(got))
		}
		got = append(got, urls(collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{After: cursor})))...)
		equal(t, "pages", got, want)
		for _, err := range s.Pages(t.Context(), crawl, ledger.PageFilter{After: cursor, Sort: ledger.ByURL}) {
			if err == nil {
				t.Error("a cursor in another order was taken")
			}
			break
		}
	}},
	{"a listing can be left early and ends with its context", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		commit(t, s, mixedBatch(crawl))
		for range 40 { // more often than there are connections
			for _, sort := range []ledger.Sort{ledger.ByFound, ledger.ByURL} {
				for range s.Pages(t.Context(), crawl, ledger.PageFilter{Sort: sort}) {
					break
				}
			}
			for range s.Requests(t.Context(), crawl) {
				break
			}
			for range s.Domains(t.Context(), ledger.DomainFilter{}) {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range s.Pages(ctx, crawl, ledger.PageFilter{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want context.Canceled", err)
			}
		}
	}},
}

// filters compares the store with a plain loop over the same pages.
func filters(t *testing.T, s Store) {
	crawl := newCrawl(t, s)
	r := rand.New(rand.NewPCG(3, 4))
	b := &ledger.Batch{}
	statuses := []int{0, 200, 204, 301, 404, 410, 429, 500}
	for i := range 200 {
		status := statuses[r.IntN(len(statuses))]
		o := outcome.FromStatus(status, false)
		if status == 0 {
			o = outcome.Timeout
		}
		p := page(crawl, fmt.Sprintf("https://h%d.example/%c/?p[%d]=%d", r.IntN(4), 'a'+rune(r.IntN(3)), i, r.IntN(9)), o, status)
		p.Kind = []string{"page", "sitemap"}[r.IntN(2)]
		p.ContentType = []string{"", "text/html", "text/plain", "Application/PDF"}[r.IntN(4)]
		p.Depth, p.Size, p.LinkCount = r.IntN(6), int64(r.IntN(50)), r.IntN(9)
		p.Timing.Total = time.Duration(r.IntN(5)) * time.Second
		b.Pages = append(b.Pages, p)
	}
	commit(t, s, b)
	stored := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{}))
	equal(t, "unfiltered", urls(stored), urls(b.Pages))

	for name, f := range map[string]ledger.PageFilter{
		"outcomes":        {Outcomes: []outcome.Outcome{outcome.NotFound, outcome.Gone}},
		"status range":    {Status: &ledger.Range{Min: 400, Max: 499}},
		"no answer":       {Status: &ledger.Range{}},
		"depth":           {Depth: &ledger.Range{Min: 2, Max: 3}},
		"host":            {Host: "h1.example"},
		"host pattern":    {Host: "h*.example"},
		"no host":         {Host: "example"},
		"kind":            {Kind: "sitemap"},
		"type":            {ContentType: "text/"},
		"type, any case":  {ContentType: "application/pdf"},
		"slow":            {MinTotal: 3 * time.Second},
		"part of the URL": {Match: "/b/?p["},
		"pattern":         {Match: "https://*/c/?p[*]=4"},
		"no such pattern": {Match: "h1*"},
		"all at once":     {Status: &ledger.Range{Min: 200, Max: 599}, Depth: &ledger.Range{Max: 4}, Kind: "page", Match: "h2"},
		"limit":           {Limit: 7, Kind: "page"},
		"backwards":       {Desc: true},
		"slowest":         {Sort: ledger.ByTime, Desc: true, Limit: 11},
		"by size":         {Sort: ledger.BySize},
		"by URL":          {Sort: ledger.ByURL},
		"by host":         {Sort: ledger.ByHost, Desc: true},
		"by status":       {Sort: ledger.ByStatus},
		"by depth":        {Sort: ledger.ByDepth, Desc: true},
		"by links":        {Sort: ledger.ByLinks},
	} {
		equal(t, name, urls(collect(t, s.Pages(t.Context(), crawl, f))), urls(sieve(stored, f)))
	}
	for _, err := range s.Pages(t.Context(), crawl, ledger.PageFilter{Sort: "nonsense"}) {
		if err == nil {
			t.Error("an unknown order was taken")
		}
		break
	}
}

// sieve is what a filter means, in a plain loop.
func sieve(pages []ledger.Page, f ledger.PageFilter) []ledger.Page {
	var out []ledger.Page
	for _, p := range pages {
		in := func(r *ledger.Range, v int) bool { return r == nil || r.Min <= v && v <= r.Max }
		if (len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, p.Outcome)) && in(f.Status, p.Status) && in(f.Depth, p.Depth) &&
			(f.Host == "" || p.Host == f.Host || strings.Contains(f.Host, "*") && glob(f.Host, p.Host)) &&
			(f.Kind == "" || p.Kind == f.Kind) && strings.HasPrefix(strings.ToLower(p.ContentType), f.ContentType) &&
			p.Timing.Total >= f.MinTotal &&
			(strings.Contains(f.Match, "*") && glob(f.Match, p.URL) || !strings.Contains(f.Match, "*") && strings.Contains(p.URL, f.Match)) {
			out = append(out, p)
		}
	}
	key := map[ledger.Sort]func(a, b ledger.Page) int{
		ledger.ByFound:  func(a, b ledger.Page) int { return int(a.ID - b.ID) },
		ledger.ByURL:    func(a, b ledger.Page) int { return strings.Compare(a.URL, b.URL) },
		ledger.ByHost:   func(a, b ledger.Page) int { return strings.Compare(a.Host, b.Host) },
		ledger.ByStatus: func(a, b ledger.Page) int { return a.Status - b.Status },
		ledger.BySize:   func(a, b ledger.Page) int { return int(a.Size - b.Size) },
		ledger.ByTime:   func(a, b ledger.Page) int { return int(a.Timing.Total - b.Timing.Total) },
		ledger.ByDepth:  func(a, b ledger.Page) int { return a.Depth - b.Depth },
		ledger.ByLinks:  func(a, b ledger.Page) int { return a.LinkCount - b.LinkCount },
	}[f.Sort]
	slices.SortStableFunc(out, func(a, b ledger.Page) int {
		if f.Desc {
			return key(b, a)
		}
		return key(a, b)
	})
	if f.Limit > 0 {
		out = out[:min(f.Limit, len(out))]
	}
	return out
}

// glob knows only the *.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(s, part)
		}
		k := strings.Index(s, part)
		if k < 0 {
			return false
		}
		s = s[k+len(part):]
	}
	return s == ""
}
