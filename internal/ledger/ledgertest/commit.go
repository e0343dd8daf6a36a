package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// mixedBatch has a row of every kind.
func mixedBatch(crawl int64) *ledger.Batch {
	a, b := FullPage(crawl, "https://a.example/a"), page(crawl, "https://a.example/b", outcome.Robots, 0)
	b.Robots = ledger.RobotsDecision{Decided: true, Rule: "Disallow: /b", Line: 3, FetchedAt: t0, Confidence: 1}
	return &ledger.Batch{
		Pages:    []ledger.Page{a, b},
		Evidence: []ledger.Evidence{evidence(crawl, a.URL, "throttled", t0)},
		Requests: []ledger.Request{request(crawl, 1, a.URL, t0), request(crawl, 2, a.URL, t0.Add(time.Second))},
		Domains:  []ledger.Domain{{Host: "a.example", AdaptiveDelay: time.Second, Updated: t0}},
		Crawls:   []ledger.Crawl{{ID: crawl, Status: ledger.Running, Updated: t0, Counters: ledger.Counters{Processed: 2}}},
	}
}

var commitCases = []testCase{
	{"the same batch twice leaves the same rows as once", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		b := mixedBatch(crawl)
		commit(t, s, b)
		once := everything(t, s, crawl)
		commit(t, s, b)
		equal(t, "after the second time", everything(t, s, crawl), once)
		if !strings.Contains(once, "throttled") || !strings.Contains(once, "Permit:2") {
			t.Errorf("rows are missing:\n%s", once)
		}
	}},
	{"an empty batch is no error", func(t *testing.T, s Store) {
		commit(t, s, &ledger.Batch{})
	}},
	{"a batch is stored whole or not at all", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		before := everything(t, s, crawl)
		spoil := map[string]func(b *ledger.Batch){
			"page": func(b *ledger.Batch) { b.Pages = append(b.Pages, page(77, "https://a.example/c", outcome.OK, 200)) },
			"evidence": func(b *ledger.Batch) {
				b.Evidence = append(b.Evidence, evidence(77, "https://a.example/c", "trap", t0))
			},
			"request": func(b *ledger.Batch) { b.Requests = append(b.Requests, request(77, 3, "https://a.example/c", t0)) },
			"crawl":   func(b *ledger.Batch) { b.Crawls = append(b.Crawls, ledger.Crawl{ID: 77, Status: ledger.Failed}) },
		}
		for what, spoil := range spoil {
			b := mixedBatch(crawl)
			spoil(b)
			if err := s.Commit(t.Context(), b); !errors.Is(err, ledger.ErrNoCrawl) {
				t.Errorf("a %s of crawl 77: error %v", what, err)
			}
			equal(t, "after a failed batch", everything(t, s, crawl), before)
		}
		commit(t, s, mixedBatch(crawl)) // and the store still works
	}},
	{"a commit whose context has ended stores nothing", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		before := everything(t, s, crawl)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Commit(ctx, mixedBatch(crawl)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		equal(t, "ledger", everything(t, s, crawl), before)
		commit(t, s, mixedBatch(crawl))
	}},
	{"a batch committed again after a failure of either kind is stored once", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		for _, took := range []bool{false, true} {
			f := &Failing{Store: s}
			b := mixedBatch(crawl)
			b.Requests[0].Permit += 10
			f.FailNext(1, took)
			if err := f.Commit(t.Context(), b); !errors.Is(err, ErrInjected) {
				t.Fatalf("error %v", err)
			}
			commit(t, f, b)
			if got := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{})); len(got) != 2 {
				t.Errorf("%d pages, want 2", len(got))
			}
		}
		if got := collect(t, s.Requests(t.Context(), crawl)); len(got) != 2 {
			t.Errorf("%d requests, want 2", len(got))
		}
	}},
	{"text from strangers is stored as valid UTF-8 without NUL, bounded, URLs whole", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		p := page(crawl, "https://a.example/", outcome.OK, 200)
		p.Title = "a\x00b\xff'; DROP TABLE pages; --\U0001F600\u202e"
		p.Error = strings.Repeat("é", ledger.MaxText)
		p.FoundOn = "https://a.example/?" + strings.Repeat("x", 1<<20)
		p.Hreflang = `{"x":"` + strings.Repeat("y", 1<<20) + `"}`
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{p}})
		got, ok, err := s.Page(t.Context(), crawl, p.URL)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		equal(t, "title", got.Title, "a\uFFFDb\uFFFD'; DROP TABLE pages; --\U0001F600\u202e")
		if len(got.Error) != ledger.MaxText || !utf8.ValidString(got.Error) {
			t.Errorf("the error has %d bytes, valid %v", len(got.Error), utf8.ValidString(got.Error))
		}
		if got.FoundOn != p.FoundOn || got.Hreflang != p.Hreflang {
			t.Error("a URL or JSON text was changed")
		}
	}},
	{"readers see whole batches while others write", func(t *testing.T, s Store) {
		const writers, batches, size = 3, 8, 10
		crawl := newCrawl(t, s)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range batches {
					b := &ledger.Batch{}
					for k := range size {
						b.Pages = append(b.Pages, page(crawl, fmt.Sprintf("https://a.example/%d/%d/%d", w, i, k), outcome.OK, 200))
					}
					if err := s.Commit(context.Background(), b); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			counts, err := s.PageCounts(t.Context(), crawl)
			if err != nil {
				t.Fatal(err)
			}
			if counts[outcome.OK]%size != 0 {
				t.Fatalf("saw %d pages: a part of a batch", counts[outcome.OK])
			}
		}
		counts, err := s.PageCounts(t.Context(), crawl)
		if err != nil || counts[outcome.OK] != writers*batches*size {
			t.Errorf("%v pages in the end, %v", counts, err)
		}
	}},
}

func evidence(crawl int64, url, kind string, at time.Time) ledger.Evidence {
	return ledger.Evidence{Crawl: crawl, URL: url, FP: weburl.FromCanonical(url).Fingerprint(), Type: kind,
		Content: `{"retryAfter":5}`, Metadata: `{"n":1}`, Confidence: 0.75, At: at}
}

func request(crawl int64, permit uint64, url string, at time.Time) ledger.Request {
	return ledger.Request{Crawl: crawl, Permit: permit, Group: "a.example", URL: url, FP: weburl.FromCanonical(url).Fingerprint(),
		Kind: "page", Cause: "first", Started: at, Ended: at.Add(1234 * time.Microsecond), Status: 200, Outcome: outcome.OK,
		GapOwed: 250500 * time.Microsecond, InFlight: 1, Cap: 2}
}
