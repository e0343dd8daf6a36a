package crawl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

func Test_SAF_5_a_hard_timeout_cuts_off_at_once(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(*hit) reply { return reply{took: 25 * time.Second} }
		spec := plainSpec(home)
		spec.Duration, spec.TimeStop = 10*time.Second, "Safety limit: Crawl timeout exceeded (10000ms)"
		begin := time.Now()
		sum, err := w.crawl(spec)
		if took := time.Since(begin); err != nil || took < 10*time.Second || took > 10*time.Second+100*time.Millisecond {
			t.Fatalf("ended after %s, %v", took, err)
		}
		if sum.Status != ledger.Partial || sum.Reason != spec.TimeStop || sum.Spent != 1 || sum.Remaining != 1 {
			t.Errorf("%+v", sum)
		}
	})
}

func Test_JOB_1_so_many_failed_tasks_in_a_row_fail_the_crawl(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status func(n int) int
		want   ledger.Status
	}{
		{"all denied", func(int) int { return 418 }, ledger.Failed},
		{"a success in between", func(n int) int { return map[bool]int{true: 200, false: 418}[n%20 == 0] }, ledger.Completed},
		{"404 is no failure", func(int) int { return 404 }, ledger.Completed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *web) {
				var links strings.Builder
				for i := range 60 {
					fmt.Fprintf(&links, `<a href="/p%d">`, i)
				}
				w.sites[home] = page(links.String())
				n := 0
				for i := range 60 {
					w.sites[fmt.Sprintf("https://a.example/p%d", i)] = func(*hit) reply { n++; return reply{status: tc.status(n)} }
				}
				spec := plainSpec(home)
				spec.FailAfter = 20
				sum, err := w.crawl(spec)
				if err != nil || sum.Status != tc.want {
					t.Fatalf("%+v, %v", sum, err)
				}
				if tc.want == ledger.Failed && (!strings.HasPrefix(sum.Reason, "20 tasks in a row failed") || n > 25) {
					t.Errorf("%q after %d pages", sum.Reason, n)
				}
			})
		})
	}
}

func Test_RET_3_a_crawl_that_a_host_will_not_have_is_cancelled_if_asked_for(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		var links strings.Builder
		for i := range 100 {
			fmt.Fprintf(&links, `<a href="/p%d">`, i)
			w.sites[fmt.Sprintf("https://a.example/p%d", i)] = func(*hit) reply { return reply{status: 429} }
		}
		w.sites[home] = page(links.String())
		spec := plainSpec(home)
		spec.CancelAfter429s = 20
		e := w.engine()
		defer w.store.Close()
		sum, err := w.start(e, spec)
		if err != nil || sum.Status != ledger.Cancelled || !strings.Contains(sum.Reason, "20 answers of 429 in a row although the delay is 1m0s") {
			t.Fatalf("%+v, %v", sum, err)
		}
		if e.Counters().Cancellations.Load() != 1 {
			t.Error("not counted")
		}
	})
}

func Test_a_warm_crawl_asks_again_for_what_the_cache_did_not_have(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		cached := func(words ...string) func(*hit) reply {
			return func(h *hit) reply {
				return reply{header: map[string]string{"Cf-Cache-Status": words[min(h.nth, len(words))-1]},
					body: "<title>t</title>", took: time.Second / time.Duration(h.nth)}
			}
		}
		w.sites[home] = func(h *hit) reply {
			r := cached("HIT")(h)
			r.body = `<a href="/miss"><a href="/dynamic"><a href="/stubborn"><a href="/breaks"><a href="/silent">`
			return r
		}
		w.sites["https://a.example/miss"] = cached("MISS", "HIT")
		w.sites["https://a.example/dynamic"] = cached("DYNAMIC")
		w.sites["https://a.example/stubborn"] = cached("MISS")
		w.sites["https://a.example/silent"] = page("")
		w.sites["https://a.example/breaks"] = func(h *hit) reply {
			if h.nth == 1 {
				return cached("MISS")(h)
			}
			return reply{status: 404}
		}
		spec := plainSpec(home)
		spec.Warm, spec.MaxURLs = true, 6 // a page counts once
		sum, err := w.crawl(spec)
		if err != nil || sum.Status != ledger.Completed || sum.Counters.Processed != 6 || sum.Spent != 6 {
			t.Fatalf("%+v, %v", sum, err)
		}
		for path, times := range map[string]int{"": 1, "miss": 2, "dynamic": 1, "stubborn": 2, "breaks": 2, "silent": 1} {
			url := home + path
			hs := w.requests(url)
			if len(hs) != times {
				t.Errorf("%s was asked for %d times", url, len(hs))
			} else if times == 2 && hs[1].at.Sub(hs[0].at) < warmPause {
				t.Errorf("%s was asked for again after %s", url, hs[1].at.Sub(hs[0].at))
			}
		}
		w.want(home+"breaks", outcome.NotFound)
		if p := w.want(home+"miss", outcome.OK); p.Tries != 2 || p.Title != "t" {
			t.Errorf("%+v", p)
		}
		for _, e := range w.books.evidence {
			if e.Type != ledger.CacheWarmed || e.URL != home+"miss" {
				continue
			}
			var c struct{ First, Second *warmth }
			if err := json.Unmarshal([]byte(e.Content), &c); err != nil || c.First.Cache != "miss" || c.Second == nil || c.Second.Cache != "hit" {
				t.Errorf("%s, %v", e.Content, err)
			}
			return
		}
		t.Error("no evidence of what the cache said")
	})
}

func Test_a_seed_that_was_ordered_is_not_trusted_with_a_private_address(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href="/x">`)
		w.sites["https://a.example/x"] = page("")
		spec := plainSpec(home)
		spec.GuardSeeds = true
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		for _, h := range w.hits {
			if h.private {
				t.Errorf("%s might have been fetched from a private address", h.url)
			}
		}
		if len(w.hits) < 3 {
			t.Errorf("%d requests", len(w.hits))
		}
	})
}

func Test_a_crawl_whose_frontier_is_gone_is_not_called_complete(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		endless(w, time.Second)
		if _, err := w.crawl(plainSpec(home), func(r *Run) {
			time.Sleep(3500 * time.Millisecond)
			r.StopAs(ledger.Running, "the server is stopping")
		}); err != nil {
			t.Fatal(err)
		}
		w.fs = vfs.NewMem()
		e := w.engine()
		defer w.store.Close()
		if _, err := e.Resume(t.Context(), w.books.crawls[1], nil, Hooks{}); !errors.Is(err, ErrFrontierGone) {
			t.Errorf("%v", err)
		}
		if len(e.allRuns()) != 0 {
			t.Error("it is still open")
		}
	})
}
