package frontiertest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"tiptoe/internal/frontier"
)

const (
	manyWorkers = 8
	manyPages   = 400
)

var concurrencyChecks = []check{
	{name: "of many commits that offer the same URLs each URL is queued by one", run: func(h *harness) {
		h.openCrawl(1)
		all := pages("a.example", manyPages)
		wins := make([][]frontier.Entry, manyWorkers)
		h.parallel(func(w int) error {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			order := rnd.Perm(len(all))
			for len(order) > 0 {
				n := min(1+rnd.IntN(40), len(order))
				var b frontier.Batch
				for _, i := range order[:n] {
					b.Add = append(b.Add, all[i])
				}
				order = order[n:]
				added, err := h.s.Commit(ctx, &b)
				if err != nil {
					return err
				}
				wins[w] = append(wins[w], added...)
			}
			return nil
		})
		queued, ids := map[string]int{}, map[uint64]int{}
		for _, won := range wins {
			for _, e := range won {
				queued[e.URL]++
				ids[e.ID]++
			}
		}
		for _, e := range all {
			if queued[e.URL] != 1 {
				h.Fatalf("%s was queued %d times", e.URL, queued[e.URL])
			}
		}
		h.same("IDs given out", len(ids), len(all))
		h.same("entries in the window", len(h.window(1, "a.example")), len(all))
	}},
	{name: "a loser of the race finds the URL in the queue", run: func(h *harness) {
		// Whoever is told that a URL is not new may acknowledge the page that
		// named it, so by then it must be there.
		h.openCrawl(1)
		var mu sync.Mutex
		acked := map[string]bool{}
		h.parallel(func(w int) error {
			for i := range 60 {
				e := page(fmt.Sprintf("h%d.example", i), "x")
				added, err := h.s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{e}})
				if err != nil {
					return err
				}
				if len(added) == 1 && i%2 == 0 {
					// The winner finishes it; a loser must not see it again.
					if _, err := h.s.Commit(ctx, &frontier.Batch{Ack: refs(added)}); err != nil {
						return err
					}
					mu.Lock()
					acked[e.Group] = true
					mu.Unlock()
					continue
				}
				got, err := h.s.Window(ctx, e.Group, 1, frontier.Pos{}, 10, nil)
				if err != nil {
					return err
				}
				if i%2 == 1 && len(got) != 1 {
					return fmt.Errorf("%s is not queued, but not new either", e.URL)
				}
			}
			return nil
		})
		want := map[string]int{}
		for i := 1; i < 60; i += 2 {
			want[fmt.Sprintf("h%d.example", i)] = 1
		}
		h.same("the queues", h.queues(1), want)
		h.same("finished", len(acked), 30)
	}},
	{name: "readers never see an entry twice, out of order or after its end", run: func(h *harness) {
		h.openCrawl(1)
		var mu sync.Mutex
		done := map[uint64]bool{}
		finished := func(id uint64) bool { mu.Lock(); defer mu.Unlock(); return done[id] }
		h.parallel(func(w int) error {
			if w%2 == 0 {
				for i := range 80 {
					e := withPrio(uint8(i%3), page("a.example", fmt.Sprintf("%d-%d", w, i)))
					added, err := h.s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{e}})
					if err != nil {
						return err
					}
					if i%2 == 0 {
						if _, err := h.s.Commit(ctx, &frontier.Batch{Ack: refs(added)}); err != nil {
							return err
						}
						mu.Lock()
						done[added[0].ID] = true
						mu.Unlock()
					}
				}
				return nil
			}
			for range 80 {
				mu.Lock()
				before := make(map[uint64]bool, len(done))
				for id := range done {
					before[id] = true
				}
				mu.Unlock()
				got, err := h.s.Window(ctx, "a.example", 1, frontier.Pos{}, 1000, nil)
				if err != nil {
					return err
				}
				for i, e := range got {
					if i > 0 && !got[i-1].Pos().Less(e.Pos()) {
						return fmt.Errorf("%v is shown after %v", e.Pos(), got[i-1].Pos())
					}
					if before[e.ID] {
						return fmt.Errorf("%s is shown after its end", e.URL)
					}
				}
			}
			return nil
		})
		for _, e := range h.window(1, "a.example") {
			if finished(e.ID) {
				h.Fatalf("%s came back", e.URL)
			}
		}
		h.same("entries left", len(h.window(1, "a.example")), manyWorkers/2*40)
	}},
	{name: "crawls open, commit and close beside each other", run: func(h *harness) {
		h.parallel(func(w int) error {
			crawl := frontier.CrawlID(w + 1)
			for round := range 5 {
				if err := h.s.OpenCrawl(ctx, crawl); err != nil {
					return err
				}
				for i := range 10 {
					e := inCrawl(crawl, page("a.example", fmt.Sprint(i)))
					added, err := h.s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{e}})
					if err != nil {
						return err
					}
					if (len(added) == 1) != (round == 0) {
						return fmt.Errorf("round %d of crawl %d queued %d", round, crawl, len(added))
					}
					h.s.Seen(crawl, e.Fingerprint())
				}
				h.s.CloseCrawl(crawl)
			}
			return nil
		})
	}},
}

var failureChecks = []check{
	{name: "a batch retried through failures is applied once", run: func(h *harness) {
		h.openCrawl(1)
		f := Failing(h.s, rand.New(rand.NewPCG(7, 7)))
		commit := func(b *frontier.Batch) {
			h.Helper()
			if err := retry(func() error { _, err := f.Commit(ctx, b); return err }); err != nil {
				h.Fatal(err)
			}
		}
		want := map[string]int{}
		for i := range 30 {
			g := fmt.Sprintf("h%d.example", i)
			commit(&frontier.Batch{Add: pages(g, 4)})
			all := h.window(1, g)
			h.same("queued", urls(all), urls(pages(g, 4)))
			all[2].Tries = 1
			commit(&frontier.Batch{
				Ack:    refs(all[:2]),
				Update: all[2:3],
				Add:    append(pages(g, 4), page(g, "more")),
				Notes:  []frontier.Note{{Group: g, Name: "n", Value: []byte(g)}},
			})
			left := h.window(1, g)
			h.same("left", urls(left), []string{all[2].URL, all[3].URL, "https://" + g + "/more"})
			h.same("the update", left[0], all[2])
			h.same("the note", h.note(g, "n"), []byte(g))
			want[g] = 3
		}
		h.same("the queues", h.queues(1), want)
	}},
	{name: "many committers that retry through failures queue each URL once", run: func(h *harness) {
		h.openCrawl(1)
		f := Failing(h.s, rand.New(rand.NewPCG(8, 8)))
		all := pages("a.example", manyPages)
		h.parallel(func(w int) error {
			for i := 0; i < len(all); i += 20 {
				at := (i + w*60) % len(all)
				b := &frontier.Batch{Add: all[at : at+20]}
				if err := retry(func() error { _, err := f.Commit(ctx, b); return err }); err != nil {
					return err
				}
			}
			return nil
		})
		seen := map[string]int{}
		for _, e := range h.window(1, "a.example") {
			seen[e.URL]++
		}
		for _, e := range all {
			if seen[e.URL] != 1 {
				h.Fatalf("%s is queued %d times", e.URL, seen[e.URL])
			}
		}
	}},
	{name: "an acknowledgement that is repeated later brings nothing back", run: func(h *harness) {
		h.openCrawl(1)
		e := h.add(page("a.example", "x"))
		first := &frontier.Batch{Ack: refs(e), Add: []frontier.Entry{page("a.example", "y")}}
		h.commit(first)
		h.commit(&frontier.Batch{Ack: refs(h.window(1, "a.example"))})
		h.commit(first)
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{})
	}},
}

// parallel runs fn on several goroutines at once and fails the test with the
// first error.
func (h *harness) parallel(fn func(worker int) error) {
	h.Helper()
	errs := make([]error, manyWorkers)
	var start, end sync.WaitGroup
	start.Add(1)
	for w := range manyWorkers {
		end.Go(func() {
			start.Wait()
			errs[w] = fn(w)
		})
	}
	start.Done()
	end.Wait()
	for _, err := range errs {
		if err != nil {
			h.Fatal(err)
		}
	}
}
