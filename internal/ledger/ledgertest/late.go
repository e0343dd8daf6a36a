package ledgertest

import (
	"errors"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// part is what a worker of a fleet commits of a crawl.
func part(crawl int64, worker string, pages ...ledger.Page) *ledger.Batch {
	b := &ledger.Batch{Pages: pages, Crawls: []ledger.Crawl{{ID: crawl, Worker: worker, Status: ledger.Running, Updated: t0}}}
	for i, p := range pages {
		b.Requests = append(b.Requests, request(crawl, uint64(100+i), p.URL, p.FetchedAt))
		b.Evidence = append(b.Evidence, evidence(crawl, p.URL, "throttled", p.FetchedAt))
	}
	return b
}

var lateCases = []testCase{
	{"an answer is not replaced by an older attempt, nor its links", func(t *testing.T, s Store) {
		crawl := newCrawl(t, s)
		at := func(d time.Duration, o outcome.Outcome, status int, links ...uint64) ledger.Page {
			p := page(crawl, "https://a.example/", o, status)
			p.FetchedAt, p.Links = t0.Add(d), links
			return p
		}
		for _, step := range []struct {
			page ledger.Page
			want int // HTTP status of what is stored then
		}{
			{at(time.Minute, outcome.Timeout, 0), 0},
			{at(0, outcome.OK, 200, 1, 2), 200}, // an answer is better than none, however old
			{at(time.Minute, outcome.NotFound, 404, 3), 404},
			{at(30*time.Second, outcome.OK, 200, 1, 2), 404}, // who was frozen wakes
			{at(30*time.Second, outcome.Timeout, 0), 404},
			{at(2*time.Minute, outcome.Timeout, 0), 0},
		} {
			other := page(crawl, "https://a.example/other", outcome.OK, 200) // which is not held back
			other.FetchedAt = step.page.FetchedAt
			commit(t, s, &ledger.Batch{Pages: []ledger.Page{step.page, other}})
			got, ok, err := s.Page(t.Context(), crawl, step.page.URL)
			if err != nil || !ok || got.Status != step.want {
				t.Fatalf("after %s at %s: %d, %v %v; want %d", step.page.Outcome, step.page.FetchedAt, got.Status, ok, err, step.want)
			}
			if step.want == 404 {
				equal(t, "links", got.Links, []uint64{3})
			}
		}
		if got := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{})); len(got) != 2 {
			t.Errorf("%d pages, want 2", len(got))
		}
	}},
	{"what a worker still had in hand of a crawl that has ended is left out, what it learned of hosts is not", func(t *testing.T, s Store) {
		over, on := newCrawl(t, s), newCrawl(t, s)
		commit(t, s, &ledger.Batch{Pages: []ledger.Page{page(over, "https://a.example/", outcome.OK, 200)}})
		end := ledger.Crawl{ID: over, Status: ledger.Completed, Reason: "Nothing left to crawl", Ended: t0, Counters: ledger.Counters{Processed: 1}}
		commit(t, s, &ledger.Batch{Crawls: []ledger.Crawl{end}})
		before := everything(t, s, over)

		later := page(over, "https://a.example/", outcome.NotFound, 404)
		later.FetchedAt = t0.Add(time.Minute)
		b := part(over, "w", later, page(over, "https://a.example/new", outcome.OK, 200))
		commit(t, s, b)
		equal(t, "the crawl that has ended", everything(t, s, over), before)
		equal(t, "late crawls", b.Late, []int64{over})

		mixed := part(on, "w", page(on, "https://a.example/", outcome.OK, 200))
		mixed.Pages, mixed.Crawls = append(mixed.Pages, b.Pages...), append(mixed.Crawls, b.Crawls...)
		mixed.Pages = append(mixed.Pages, page(on, "https://a.example/", outcome.OK, 200), b.Pages[0]) // not one crawl after the other
		mixed.Domains = []ledger.Domain{{Host: "a.example", AdaptiveDelay: time.Second, Updated: t0}}
		commit(t, s, mixed)
		equal(t, "late crawls", mixed.Late, []int64{over})
		if got := collect(t, s.Pages(t.Context(), over, ledger.PageFilter{})); len(got) != 1 || got[0].Status != 200 {
			t.Errorf("pages of the crawl that has ended: %+v", got)
		}
		if got := collect(t, s.Pages(t.Context(), on, ledger.PageFilter{})); len(got) != 1 {
			t.Errorf("%d pages of the crawl that goes on", len(got))
		}
		if _, ok, err := s.Domain(t.Context(), "a.example"); err != nil || !ok {
			t.Errorf("what was learned: %v, %v", ok, err)
		}

		deleted := part(77, "w", page(77, "https://a.example/", outcome.OK, 200))
		deleted.Pages = append(deleted.Pages, page(on, "https://a.example/after", outcome.OK, 200))
		deleted.Crawls = append(deleted.Crawls, mixed.Crawls[0])
		commit(t, s, deleted) // or nothing more of any crawl would be stored
		if got := collect(t, s.Pages(t.Context(), on, ledger.PageFilter{})); len(got) != 2 {
			t.Errorf("%d pages of the crawl that goes on, beside one that was deleted", len(got))
		}

		if err := s.UpdateCrawl(t.Context(), &ledger.Crawl{ID: over, Status: ledger.Running, Updated: t0}); err != nil {
			t.Fatal(err)
		}
		commit(t, s, b) // it was opened again
		equal(t, "late crawls", b.Late, []int64(nil))
		if got := collect(t, s.Pages(t.Context(), over, ledger.PageFilter{})); len(got) != 2 || got[0].Status != 404 {
			t.Errorf("pages of the crawl that was opened again: %+v", got)
		}
	}},
	{"whoever opened a crawl before another one does not end it", func(t *testing.T, s Store) {
		first := ledger.Crawl{Seeds: []string{"https://a.example/"}, Status: ledger.Running, Started: t0}
		if _, err := s.CreateCrawl(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		second := first
		if err := s.UpdateCrawl(t.Context(), &second); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Crawl(t.Context(), first.ID); err != nil || second.Epoch <= first.Epoch || got.Epoch != second.Epoch {
			t.Fatalf("epochs %d, then %d, stored %d, %v", first.Epoch, second.Epoch, got.Epoch, err)
		}
		before := everything(t, s, first.ID)
		end := func(c ledger.Crawl, status ledger.Status) error {
			c.Status = status
			return s.Commit(t.Context(), &ledger.Batch{Crawls: []ledger.Crawl{c}, Evidence: []ledger.Evidence{evidence(c.ID, "https://a.example/", "budget", t0)}})
		}
		for _, status := range []ledger.Status{ledger.Partial, ledger.Paused} {
			if err := end(first, status); !errors.Is(err, ledger.ErrTakenOver) {
				t.Errorf("the first one ends it as %s: %v", status, err)
			}
		}
		equal(t, "after the end of the first", everything(t, s, first.ID), before)
		for range 2 { // an answer may have been lost
			if err := end(second, ledger.Completed); err != nil {
				t.Error(err)
			}
		}
		if err := end(first, ledger.Partial); !errors.Is(err, ledger.ErrTakenOver) {
			t.Errorf("the first one ends it after the second: %v", err)
		}
		if err := end(first, ledger.Running); err != nil {
			t.Errorf("the first one says that it runs after the second has ended it: %v", err)
		}
		if got, err := s.Crawl(t.Context(), first.ID); err != nil || got.Status != ledger.Completed {
			t.Errorf("%s, %v", got.Status, err)
		}
	}},
	{"nor one that ended it", func(t *testing.T, s Store) {
		driver := ledger.Crawl{Seeds: []string{"https://a.example/"}, Status: ledger.Running, Started: t0}
		if _, err := s.CreateCrawl(t.Context(), &driver); err != nil {
			t.Fatal(err)
		}
		if err := s.UpdateCrawl(t.Context(), &driver); err != nil {
			t.Fatal(err)
		}
		other, err := s.Crawl(t.Context(), driver.ID)
		if err != nil {
			t.Fatal(err)
		}
		other.Status, other.Reason, other.Updated, other.Ended = ledger.Partial, "its time was up", t0, t0
		if err := s.UpdateCrawl(t.Context(), &other); err != nil {
			t.Fatal(err)
		}
		driver.Status = ledger.Completed
		if err := s.Commit(t.Context(), &ledger.Batch{Crawls: []ledger.Crawl{driver}}); !errors.Is(err, ledger.ErrTakenOver) {
			t.Errorf("the driver ends it, too: %v", err)
		}
		if got, err := s.Crawl(t.Context(), driver.ID); err != nil || got.Status != ledger.Partial {
			t.Errorf("%s, %v", got.Status, err)
		}
	}},
}
