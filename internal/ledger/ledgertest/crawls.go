package ledgertest

import (
	"errors"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

var crawlCases = []testCase{
	{"a crawl is read back as it was created", func(t *testing.T, s Store) {
		want := ledger.Crawl{Seeds: []string{"https://a.example/", "https://ü.example/?q=\"x\""}, Spec: []byte(`{"depth":3}`),
			Status: ledger.Paused, Reason: "somebody asked", Started: t0, Ended: t0.Add(time.Hour), Updated: t0.Add(time.Minute),
			Counters: ledger.Counters{Processed: 1, Successful: 2, Failed: 3, Throttled: 4, Blocked: 5, Skipped: 6, Timeouts: 7,
				Requests: 8, HTTP429: 9, Retries: 10, Bytes: 1 << 40}}
		id, err := s.CreateCrawl(t.Context(), &want)
		if err != nil {
			t.Fatal(err)
		}
		if id <= 0 || want.ID != id {
			t.Errorf("id %d, in the crawl %d", id, want.ID)
		}
		got, err := s.Crawl(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "crawl", got, want)
	}},
	{"an update changes status and counters and keeps seeds, settings and start", func(t *testing.T, s Store) {
		c := ledger.Crawl{Seeds: []string{"https://a.example/"}, Spec: []byte(`{}`), Status: ledger.Running, Started: t0}
		if _, err := s.CreateCrawl(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		other := newCrawl(t, s)
		up := ledger.Crawl{ID: c.ID, Status: ledger.Partial, Reason: "Reached max_urls limit of 10, stopping crawl",
			Ended: t0.Add(time.Minute), Updated: t0.Add(time.Minute), Counters: ledger.Counters{Processed: 10}}
		if err := s.UpdateCrawl(t.Context(), &up); err != nil {
			t.Fatal(err)
		}
		got, err := s.Crawl(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		up.Seeds, up.Spec, up.Started = c.Seeds, c.Spec, c.Started
		equal(t, "crawl", got, up)
		if got, err := s.Crawl(t.Context(), other); err != nil || got.Status != ledger.Running {
			t.Errorf("another crawl became %q, %v", got.Status, err)
		}
	}},
	{"crawls are listed newest first, and the latest is the one created last", func(t *testing.T, s Store) {
		a, b := newCrawl(t, s), newCrawl(t, s)
		all, err := s.Crawls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[0].ID != b || all[1].ID != a {
			t.Errorf("listed %+v, want %d then %d", all, b, a)
		}
		latest, err := s.LatestCrawl(t.Context())
		if err != nil || latest.ID != b {
			t.Errorf("latest is %d, %v; want %d", latest.ID, err, b)
		}
	}},
	{"a crawl that does not exist is ErrNoCrawl", func(t *testing.T, s Store) {
		if _, err := s.LatestCrawl(t.Context()); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("latest of none: %v", err)
		}
		if _, err := s.Crawl(t.Context(), 99); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("crawl 99: %v", err)
		}
		if err := s.UpdateCrawl(t.Context(), &ledger.Crawl{ID: 99, Status: ledger.Failed}); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("update: %v", err)
		}
		err := s.Commit(t.Context(), &ledger.Batch{Crawls: []ledger.Crawl{{ID: 99, Status: ledger.Failed}}})
		if !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("commit: %v", err)
		}
	}},
}
