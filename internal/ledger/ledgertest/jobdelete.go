package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

var deleteCases = []jobCase{
	{"deleting a job takes its events and messages, and leaves what it cost", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		for _, id := range []string{"j", "k"} {
			j := newJob("a", id)
			j.Reserved = 10
			_, err := s.CreateJob(t.Context(), j, func(ledger.Usage) (ledger.JobChange, error) {
				return ledger.JobChange{Events: []ledger.JobEvent{{Type: "status"}},
					Deliveries: []ledger.Delivery{{Event: id, URL: "https://hook.example/", Next: t0}}}, nil
			})
			must(t, err)
		}
		before := jobWorld(t, s)
		for _, status := range []ledger.Status{ledger.Queued, ledger.Running, ledger.Paused} {
			if _, err := s.UpdateJob(t.Context(), "a", "j", setTo(status)); err != nil {
				t.Fatal(err)
			}
			if err := s.DeleteJob(t.Context(), "a", "j"); !errors.Is(err, ledger.ErrNotEnded) {
				t.Errorf("a %s job was deleted: %v", status, err)
			}
		}
		if _, err := s.UpdateJob(t.Context(), "a", "j", setTo(ledger.Queued)); err != nil {
			t.Fatal(err)
		}
		equal(t, "ledger", jobWorld(t, s), before)

		endJob(t, s, "j", ledger.Completed, 4)
		must(t, s.DeleteJob(t.Context(), "a", "j"))
		if err := s.DeleteJob(t.Context(), "a", "j"); !errors.Is(err, ledger.ErrNoJob) {
			t.Errorf("deleted twice: %v", err)
		}
		wantUsage(t, s, "a", 4, 10)
		if ev, d := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "j", 0, 0)), got[[]ledger.Delivery](t)(s.DeliveriesOf(t.Context(), "j")); len(ev)+len(d) != 0 {
			t.Errorf("left behind: %v, %v", ev, d)
		}
		equal(t, "due", deliveryEvents(got[[]ledger.Delivery](t)(s.DueDeliveries(t.Context(), t0, 0))), []string{"k"})
		if ev := got[[]ledger.JobEvent](t)(s.Events(t.Context(), "k", 0, 0)); len(ev) != 1 {
			t.Errorf("of the other: %v", ev)
		}
	}},
	{"deleting a crawl takes all of it and nothing else", func(t *testing.T, s JobStore) {
		before, doomed, after := newCrawl(t, s), newCrawl(t, s), newCrawl(t, s)
		const n = 1203 // more than two chunks of any sensible size
		for _, crawl := range []int64{before, doomed, after} {
			size := 3
			if crawl == doomed {
				size = n
			}
			b := mixedBatch(crawl)
			for i := range size {
				p := page(crawl, fmt.Sprintf("https://a.example/%d", i), outcome.OK, 200)
				p.Links = []uint64{uint64(i)}
				b.Pages = append(b.Pages, p)
				b.Requests = append(b.Requests, request(crawl, uint64(i+10), p.URL, t0))
				b.Evidence = append(b.Evidence, evidence(crawl, p.URL, "trap", t0))
			}
			commit(t, s, b)
			must(t, s.UpdateCrawl(t.Context(), &ledger.Crawl{ID: crawl, Status: ledger.Running, Updated: t0.Add(time.Second), Spec: []byte(`{"again":1}`)}))
		}
		others := everything(t, s, before) + everything(t, s, after)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.DeleteCrawl(ctx, doomed); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
		if _, err := s.Crawl(t.Context(), doomed); err != nil {
			t.Errorf("cut off, it is gone: %v", err)
		}
		must(t, s.DeleteCrawl(t.Context(), doomed))
		if _, err := s.Crawl(t.Context(), doomed); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("the crawl: %v", err)
		}
		if p := collect(t, s.Pages(t.Context(), doomed, ledger.PageFilter{})); len(p) != 0 {
			t.Errorf("%d pages", len(p))
		}
		if r := collect(t, s.Requests(t.Context(), doomed)); len(r) != 0 {
			t.Errorf("%d requests", len(r))
		}
		for _, i := range []int{0, n - 1} {
			if ev := got[[]ledger.Evidence](t)(s.Evidence(t.Context(), doomed, fmt.Sprintf("https://a.example/%d", i))); len(ev) != 0 {
				t.Errorf("evidence %v", ev)
			}
		}
		if l, err := s.LinksTo(t.Context(), doomed, []uint64{1, 1202}, 0); err != nil || len(l) != 0 {
			t.Errorf("links %v, %v", l, err)
		}
		for _, set := range got[[]ledger.Settings](t)(s.Settings(t.Context())) {
			if set.Crawl == doomed {
				t.Errorf("settings %+v", set)
			}
		}
		equal(t, "the others", everything(t, s, before)+everything(t, s, after), others)
		if l, err := s.LinksTo(t.Context(), after, []uint64{1}, 0); err != nil || l[1].Count != 1 {
			t.Errorf("links of another %v, %v", l, err)
		}
		if err := s.Commit(t.Context(), mixedBatch(doomed)); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("a late page of it: %v", err)
		}
		must(t, s.DeleteCrawl(t.Context(), doomed)) // again is no error
		if id := newCrawl(t, s); id <= after {
			t.Errorf("crawl %d was given a number again", id)
		}
	}},
	{"a crawl that is deleted while somebody still writes to it leaves nothing behind", func(t *testing.T, s JobStore) {
		for round := range 5 {
			crawl := newCrawl(t, s)
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := 0; ; i++ {
						b := &ledger.Batch{}
						for k := range 20 {
							p := page(crawl, fmt.Sprintf("https://a.example/%d/%d/%d", w, i, k), outcome.OK, 200)
							b.Pages = append(b.Pages, p)
							b.Requests = append(b.Requests, request(crawl, uint64(w<<20+i<<8+k+1), p.URL, t0))
							b.Evidence = append(b.Evidence, evidence(crawl, p.URL, "trap", t0))
						}
						if err := s.Commit(context.Background(), b); errors.Is(err, ledger.ErrNoCrawl) {
							return
						} else if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			for { // until they are at it
				if n := got[map[outcome.Outcome]int64](t)(s.PageCounts(t.Context(), crawl)); n[outcome.OK] > int64(40*round) {
					break
				}
			}
			must(t, s.DeleteCrawl(t.Context(), crawl))
			wg.Wait()
			if p := collect(t, s.Pages(t.Context(), crawl, ledger.PageFilter{})); len(p) != 0 {
				t.Errorf("%d pages", len(p))
			}
			if r := collect(t, s.Requests(t.Context(), crawl)); len(r) != 0 {
				t.Errorf("%d requests", len(r))
			}
			for w := range 4 {
				for i := range 200 {
					if ev := got[[]ledger.Evidence](t)(s.Evidence(t.Context(), crawl, fmt.Sprintf("https://a.example/%d/%d/0", w, i))); len(ev) != 0 {
						t.Errorf("evidence %v", ev)
					}
				}
			}
		}
	}},
}
