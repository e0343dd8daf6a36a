package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// endless links every page to two more.
func endless(w *web, took time.Duration) {
	var serve func(h *hit) reply
	serve = func(h *hit) reply {
		a, b := h.url+"x", h.url+"y"
		w.mu.Lock()
		w.sites[a], w.sites[b] = serve, serve
		w.mu.Unlock()
		return reply{took: took, body: fmt.Sprintf(`<a href="%s"><a href="%s">`, a, b)}
	}
	w.sites[home] = serve
}

func Test_max_urls_is_exact_at_any_concurrency_and_says_so(t *testing.T) {
	for _, perHost := range []int{1, 8} {
		in(t, func(t *testing.T, w *web) {
			endless(w, 300*time.Millisecond)
			spec := plainSpec(home)
			spec.MaxURLs, spec.PerHost, spec.DelayMin, spec.DelayMax = 10, perHost, 0, 0
			sum, err := w.crawl(spec)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Reason != "Reached max_urls limit of 10, stopping crawl" || sum.Status != ledger.Partial || sum.Counters.Processed != 10 {
				t.Errorf("%+v", sum)
			}
			if n := len(w.hits) - 1; n != 10 { // robots.txt aside
				t.Errorf("%d pages requested", n)
			}
		})
	}
}

func Test_the_duration_limit_holds_while_nothing_else_happens(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(*hit) reply { return reply{status: 503, header: map[string]string{"Retry-After": "3000"}} }
		spec := plainSpec(home)
		spec.Duration = 20 * time.Second
		begin := time.Now()
		sum, err := w.crawl(spec)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("ended after %s", took)
		}
		if !strings.HasPrefix(sum.Reason, "Reached duration limit of 20s (elapsed: 20.") || sum.Status != ledger.Partial || sum.Remaining != 1 {
			t.Errorf("%+v", sum)
		}
	})
}

func Test_a_stop_gives_requests_in_flight_their_grace_and_makes_no_new_ones(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		endless(w, time.Second)
		var at time.Time
		sum, err := w.crawl(plainSpec(home), func(r *Run) {
			time.Sleep(3500 * time.Millisecond)
			at = time.Now()
			r.Stop("Interrupted, stopping crawl")
		})
		if err != nil || sum.Status != ledger.Partial || sum.Reason != "Interrupted, stopping crawl" {
			t.Fatalf("%+v, %v", sum, err)
		}
		for _, h := range w.hits {
			if h.at.After(at) {
				t.Errorf("%s was requested after the stop", h.url)
			}
			if !strings.HasSuffix(h.url, "robots.txt") {
				w.want(h.url, outcome.OK) // each had its second
			}
		}
	})
}

func Test_a_stop_cuts_off_what_takes_longer_than_the_grace_and_keeps_its_url(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(*hit) reply { return reply{took: 25 * time.Second} }
		begin := time.Now()
		sum, err := w.crawl(plainSpec(home), func(r *Run) {
			time.Sleep(time.Second)
			r.Stop("Interrupted, stopping crawl")
		})
		if err != nil || sum.Remaining != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if took := time.Since(begin); took < 3*time.Second || took > 3500*time.Millisecond {
			t.Errorf("ended after %s", took)
		}
		if len(w.books.pages) != 0 {
			t.Errorf("a cut-off page has a row: %s", w.books.list())
		}
	})
}

func Test_a_stop_while_robots_txt_is_being_fetched_ends_cleanly(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites["https://a.example/robots.txt"] = func(*hit) reply { return reply{took: 2500 * time.Millisecond} }
		w.sites[home] = page("")
		sum, err := w.crawl(plainSpec(home), func(r *Run) {
			time.Sleep(100 * time.Millisecond)
			r.Stop("Interrupted, stopping crawl")
		})
		if err != nil || sum.Status != ledger.Partial || sum.Remaining != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if sum.Counters.Requests != 1 {
			t.Errorf("%d requests counted; the end did not wait for the one in flight", sum.Counters.Requests)
		}
	})
}

func Test_a_resumed_crawl_fetches_what_is_left_and_nothing_twice(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href=/1><a href=/2><a href=/3><a href=/4><a href=/5>`)
		for i := 1; i <= 5; i++ {
			w.sites[fmt.Sprintf("%s%d", home, i)] = page("")
		}
		spec := plainSpec(home)
		spec.MaxURLs = 3
		if sum, err := w.crawl(spec); err != nil || sum.Remaining != 3 {
			t.Fatalf("%+v, %v", sum, err)
		}
		w.cfg.RestartedAt = time.Now()
		e := w.engine()
		defer w.store.Close()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		r, err := e.Resume(ctx, w.books.crawls[1], func(s *Spec) { s.MaxURLs = 0 }, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := w.drive(ctx, cancel, e, r)
		if err != nil || sum.Status != ledger.Completed || sum.Counters.Processed != 6 || sum.Counters.Successful != 6 {
			t.Fatalf("%+v, %v", sum, err)
		}
		for _, h := range w.hits {
			if h.nth > 1 {
				t.Errorf("%s was requested %d times", h.url, h.nth)
			}
		}
	})
}

func Test_when_the_ledger_fails_the_engine_says_so_and_the_frontier_keeps_the_urls(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href=/1><a href=/2>`)
		full := errors.New("disk full")
		w.books.fail = func(b *ledger.Batch) error {
			for _, p := range b.Pages {
				if p.URL != home {
					return full
				}
			}
			return nil
		}
		e := w.engine()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		r, err := e.Start(ctx, plainSpec(home), Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.drive(ctx, cancel, e, r); !errors.Is(err, full) {
			t.Fatalf("got %v", err)
		}
		left, err := w.store.Window(context.Background(), "a.example", frontier.CrawlID(r.ID), frontier.Pos{}, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 2 {
			t.Errorf("%d URLs in the frontier, want the two whose rows could not be written", len(left))
		}
		for _, en := range left {
			if _, ok := w.books.pages[weburl.FromCanonical(en.URL).Fingerprint()]; ok {
				t.Errorf("%s is in both", en.URL)
			}
		}
		w.want(home, outcome.OK)
		w.store.Close()
	})
}

// jammed is a store that takes no acknowledgement.
type jammed struct {
	frontier.Store
	err error
}

func (j jammed) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if len(b.Ack) > 0 {
		return nil, j.err
	}
	return j.Store.Commit(ctx, b)
}

func Test_when_the_frontier_fails_the_engine_says_so_also_if_nothing_more_comes(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page("the only one")
		full := errors.New("disk full")
		w.wrap = func(s frontier.Store) frontier.Store { return jammed{s, full} }
		e := w.engine()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		r, err := e.Start(ctx, plainSpec(home), Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(time.Minute, func() { cancel(errors.New("nothing was said for a minute")) })
		defer stop.Stop()
		if _, err := w.drive(ctx, cancel, e, r); !errors.Is(err, full) {
			t.Fatalf("got %v", err)
		}
		w.store.Close()
	})
}

func Test_pages_that_the_ledger_leaves_out_as_late_stay_queued_for_a_resume(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href=/1><a href=/2><a href=/3>`)
		w.books.fail = func(b *ledger.Batch) error { // of all but the seed
			if slices.ContainsFunc(b.Pages, func(p ledger.Page) bool { return p.URL != home }) {
				*b = *b.Without([]int64{1})
			}
			return nil
		}
		spec := plainSpec(home)
		spec.MaxURLs = 3
		sum, err := w.crawl(spec)
		if err != nil || sum.Status != ledger.Partial || sum.Counters.Processed != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		w.books.fail = nil
		e := w.engine()
		defer w.store.Close()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		r, err := e.Resume(ctx, w.books.crawls[1], func(s *Spec) { s.MaxURLs = 0 }, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		if sum, err = w.drive(ctx, cancel, e, r); err != nil || sum.Status != ledger.Completed || sum.Counters.Processed != 4 {
			t.Errorf("%+v, %v", sum, err)
		}
		for _, url := range []string{"1", "2", "3"} {
			w.want(home+url, outcome.NotFound)
		}
	})
}

func Test_a_ledger_that_fails_once_is_tried_again_and_nothing_is_counted_twice(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		// One host is done long before the other; the commit that tells the
		// ledger of its clocks fails.
		w.sites[home] = page(`<a href=/1><a href=/2><a href=/3>`)
		failed := 0
		w.books.fail = func(b *ledger.Batch) error {
			for _, d := range b.Domains {
				if d.Host == "early.example" && !d.LastSuccess.IsZero() && d.SuccessStreak == 2 && failed == 0 {
					failed++
					return errors.New("busy")
				}
			}
			return nil
		}
		spec := plainSpec(home, "https://early.example/")
		spec.DelayMin, spec.DelayMax = 10*time.Second, 10*time.Second
		sum, err := w.crawl(spec)
		if err != nil || sum.Counters.Processed != 5 || sum.Counters.Requests != 7 {
			t.Fatalf("%+v, %v", sum.Counters, err)
		}
		if failed == 0 {
			t.Fatal("nothing failed; that proves nothing")
		}
		if w.books.domains["early.example"].SuccessStreak != 2 {
			t.Error("the clocks of the failed commit never reached the ledger")
		}
	})
}

func Test_tokens_bound_what_is_in_hand(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		endless(w, time.Second)
		w.cfg.Workers = 5
		spec := plainSpec(home)
		spec.PerHost, spec.DelayMin, spec.DelayMax, spec.MaxURLs = 50, 0, 0, 60
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		// Every answer takes a second, so what started within one was in flight together.
		most := 0
		for i := range w.hits {
			n := 1
			for j := i + 1; j < len(w.hits) && w.hits[j].at.Sub(w.hits[i].at) < time.Second; j++ {
				n++
			}
			most = max(most, n)
		}
		if most != 5 {
			t.Errorf("at most %d in flight with 5 workers", most)
		}
	})
}
