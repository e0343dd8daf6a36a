// Package ledgertest answers: does this store keep the ledger's promises?
//
// Run is the contract suite; every implementation passes it whole. It asks
// only what all of them promise:
//
//   - a batch is stored whole or not at all, and storing it again changes
//     nothing;
//   - a later attempt at a URL replaces the earlier and keeps its place;
//   - a page and the evidence for it become visible together;
//   - what was stored is read back, times to the millisecond (requests and
//     timings to the microsecond), texts as ledger.Text leaves them;
//   - listings have a stable order, go on behind a cursor, never repeat or
//     skip a row that was there from the start, and leave the store usable
//     inside their loop;
//   - readers see whole batches while others write.
//
// Failing wraps a store and fails commits on demand, before or after they
// took effect, for tests of those who commit.
package ledgertest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Store is the whole ledger as the suite sees it. Consumers declare the few
// methods that they need themselves.
type Store interface {
	CreateCrawl(context.Context, *ledger.Crawl) (int64, error)
	UpdateCrawl(context.Context, *ledger.Crawl) error
	Crawl(ctx context.Context, id int64) (ledger.Crawl, error)
	LatestCrawl(context.Context) (ledger.Crawl, error)
	Crawls(context.Context) ([]ledger.Crawl, error)
	Settings(context.Context) ([]ledger.Settings, error)

	Commit(context.Context, *ledger.Batch) error

	Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error)
	PageByFP(ctx context.Context, crawl int64, fp weburl.Fingerprint) (ledger.Page, bool, error)
	Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error]
	PageCounts(ctx context.Context, crawl int64) (map[outcome.Outcome]int64, error)
	Totals(ctx context.Context, crawl int64) (ledger.Totals, error)
	Evidence(ctx context.Context, crawl int64, url string) ([]ledger.Evidence, error)
	Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error]
	RequestsOf(ctx context.Context, crawl int64, fp weburl.Fingerprint) ([]ledger.Request, error)
	Replay(ctx context.Context, crawl int64) iter.Seq2[ledger.Replayed, error]
	Judgements(context.Context) iter.Seq2[ledger.Judged, error]
	LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error)

	SetDomain(context.Context, ledger.Domain) error
	DeleteDomain(ctx context.Context, host string) (bool, error)
	Domain(ctx context.Context, host string) (ledger.Domain, bool, error)
	Domains(context.Context, ledger.DomainFilter) iter.Seq2[ledger.Domain, error]
}

// Run tests a store. open returns a new, empty one each time and sees to its
// end with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range slices.Concat(crawlCases, commitCases, pageCases, trailCases, replayCases, domainCases, lateCases) {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s Store)
}

// t0 has no fraction below the millisecond, which the ledger would drop.
var t0 = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

func newCrawl(t *testing.T, s Store) int64 {
	t.Helper()
	id, err := s.CreateCrawl(t.Context(), &ledger.Crawl{Seeds: []string{"https://a.example/"}, Status: ledger.Running, Started: t0})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// page is a minimal page; FullPage has every field set.
func page(crawl int64, url string, o outcome.Outcome, status int) ledger.Page {
	u := weburl.FromCanonical(url)
	return ledger.Page{Crawl: crawl, URL: url, FP: u.Fingerprint(), Host: u.HostKey(), Kind: "page", Via: "link", Tries: 1,
		Outcome: o, Status: status, FetchedAt: t0}
}

// FullPage is a page with a value in every field.
func FullPage(crawl int64, url string) ledger.Page {
	p := page(crawl, url, outcome.OK, 200)
	p.FoundOn, p.Depth, p.Tries = "https://a.example/", 2, 3
	p.Error, p.ContentType, p.Charset = "cut short", "text/html", "utf-8"
	p.Size, p.WireSize = 20480, 5120
	p.Timing = ledger.Timing{DNS: 1 * time.Millisecond, Connect: 2 * time.Millisecond, TLS: 3 * time.Millisecond,
		TTFB: 4 * time.Microsecond, Transfer: 5 * time.Millisecond, Total: 6 * time.Second, Reused: true}
	p.RedirectTo, p.Title, p.Description = "https://a.example/to", "Title", "What it is about"
	p.Canonical, p.Lang, p.Hreflang = url, "de", `{"en":"https://a.example/en"}`
	p.NoIndex, p.NoFollow = true, true
	p.LastModified = t0.Add(-time.Hour)
	p.ContentHash = 1<<63 + 5
	p.LinkCount, p.Links = 3, []uint64{1<<64 - 1, 7, 1 << 63}
	p.Robots = ledger.RobotsDecision{Decided: true, Allowed: true, Rule: "Allow: /", Line: 12, CrawlDelay: 1500 * time.Millisecond,
		FetchedAt: t0.Add(-time.Minute), Confidence: 0.5, Ignored: true}
	return p
}

func commit(t *testing.T, s Store, b *ledger.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func collect[V any](t *testing.T, seq iter.Seq2[V, error]) []V {
	t.Helper()
	var all []V
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func urls(pages []ledger.Page) []string {
	list := make([]string, len(pages))
	for i, p := range pages {
		list[i] = p.URL
	}
	return list
}

// equal compares, taking nil and empty slices for the same.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// everything is all that a store says about a crawl, for comparing two
// moments of it.
func everything(t *testing.T, s Store, crawl int64) string {
	t.Helper()
	c, err := s.Crawl(t.Context(), crawl)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v\n", c)
	for _, p := range collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{Links: true})) {
		ev, err := s.Evidence(t.Context(), crawl, p.URL)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%+v\n%+v\n", p, ev)
	}
	for _, r := range collect(t, s.Requests(t.Context(), crawl)) {
		text += fmt.Sprintf("%+v\n", r)
	}
	for _, d := range collect(t, s.Domains(t.Context(), ledger.DomainFilter{})) {
		text += fmt.Sprintf("%+v\n", d)
	}
	return text
}
