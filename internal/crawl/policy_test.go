package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// said counts the lines of the log that have all the words.
func (w *web) said(words ...string) (n int) {
	for line := range strings.Lines(w.logs.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			n++
		}
	}
	return n
}

func (b *books) evidenceOf(typ string) (out []ledger.Evidence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.evidence {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

// chain makes pages /p0 to /pN, each with a link to the next.
func (w *web) chain(host string, n int) {
	for i := range n {
		w.sites[fmt.Sprintf("https://%s/p%d", host, i)] = page(fmt.Sprintf("<a href=/p%d>next</a>", i+1))
	}
}

func Test_BUD_a_page_limit_leaves_evidence_with_the_crawls_end_and_warnings_on_the_way(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.chain("a.example", 50)
		spec := plainSpec("https://a.example/p0")
		spec.MaxURLs = 20
		sum, err := w.crawl(spec)
		if err != nil || sum.Status != ledger.Partial {
			t.Fatalf("%+v, %v", sum, err)
		}
		ev := w.books.evidenceOf("budget")
		if len(ev) != 1 || ev[0].URL != "https://a.example/p0" {
			t.Fatalf("budget evidence: %+v", ev)
		}
		var content struct{ Message string }
		if err := json.Unmarshal([]byte(ev[0].Content), &content); err != nil || content.Message != "Budget exceeded: page limit (20)" {
			t.Errorf("content %s, %v", ev[0].Content, err)
		}
		for _, level := range []string{"80 % of the page budget", "95 % of the page budget"} {
			if n := w.said("level=WARN", level); n != 1 {
				t.Errorf("%q was said %d times", level, n)
			}
		}
	})
}

func Test_BUD_a_crawl_within_its_budget_has_neither_evidence_nor_warnings(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.chain("a.example", 5)
		spec := plainSpec("https://a.example/p0")
		spec.MaxURLs, spec.Duration = 20, time.Hour
		if sum, err := w.crawl(spec); err != nil || sum.Status != ledger.Completed {
			t.Fatalf("%+v, %v", sum, err)
		}
		if ev := w.books.evidenceOf("budget"); len(ev) != 0 || w.said("budget") != 0 {
			t.Errorf("evidence %v, log:\n%s", ev, w.logs.String())
		}
	})
}

func Test_BUD_a_time_limit_warns_at_80_and_95_per_cent_and_leaves_evidence(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		// Nothing happens meanwhile that could remind anybody of the time.
		w.sites[home] = func(*hit) reply { return reply{took: time.Hour} }
		spec := plainSpec(home)
		spec.Duration = 30 * time.Second
		if sum, err := w.crawl(spec); err != nil || sum.Status != ledger.Partial {
			t.Fatalf("%+v, %v", sum, err)
		}
		ev := w.books.evidenceOf("budget")
		if len(ev) != 1 || !strings.Contains(ev[0].Content, "Budget exceeded: time limit (30s)") {
			t.Errorf("%+v", ev)
		}
		if w.said("80 % of the time budget", "used=24s") != 1 || w.said("95 % of the time budget", "used=28.5s") != 1 {
			t.Errorf("warnings not at 24 s and 28.5 s:\n%s", w.logs.String())
		}
	})
}

func Test_NXT_5_the_operators_rules_stand_above_robots_and_name_their_file_and_line(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignore robots %v", ignore), func(t *testing.T) {
			in(t, func(t *testing.T, w *web) {
				w.sites["https://a.example/robots.txt"] = page("User-agent: *\nDisallow: /closed")
				w.sites[home] = page("<a href=/closed>1</a><a href=/open?sid=2>2</a><a href=/open>3</a>")
				w.sites["https://a.example/closed"], w.sites["https://a.example/open"] = page(""), page("")
				spec := plainSpec(home)
				spec.IgnoreRobots = ignore
				spec.RobotsRules = &RulesFile{Name: "mine.txt", Text: "# two rules\ndisallow * [?&]sid=\nallow a.example ^/closed$\n"}
				if _, err := w.crawl(spec); err != nil {
					t.Fatal(err)
				}
				p := w.want("https://a.example/open?sid=2", outcome.Robots)
				if p.Robots.Allowed || p.Robots.Rule != `mine.txt line 2: disallow * [?&]sid=` || p.Robots.Line != 0 {
					t.Errorf("evidence %+v", p.Robots)
				}
				if len(w.requests("https://a.example/open?sid=2")) != 0 {
					t.Error("it was requested")
				}
				p = w.want("https://a.example/closed", outcome.OK)
				if !p.Robots.Allowed || p.Robots.Rule != "mine.txt line 3: allow a.example ^/closed$" || p.Robots.Ignored != ignore {
					t.Errorf("evidence %+v", p.Robots)
				}
				if p := w.want("https://a.example/open", outcome.OK); strings.Contains(p.Robots.Rule, "mine.txt") {
					t.Errorf("no rule of the operator applies, but %+v", p.Robots)
				}
			})
		})
	}
}

func Test_rules_that_cannot_be_read_start_no_crawl(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		e := w.engine()
		defer w.store.Close()
		spec := plainSpec(home)
		spec.RobotsRules = &RulesFile{Name: "mine.txt", Text: "allow * ^/\nperhaps * x\n"}
		if _, err := e.Start(t.Context(), spec, Hooks{}); err == nil || !strings.Contains(err.Error(), "mine.txt") || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%v", err)
		}
	})
}

func Test_a_crawl_delay_above_60_s_is_clamped_and_said_once_a_host(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites["https://a.example/robots.txt"] = page("User-agent: *\nCrawl-delay: 300\nDisallow: /p2")
		w.chain("a.example", 4)
		if _, err := w.crawl(plainSpec("https://a.example/p0")); err != nil {
			t.Fatal(err)
		}
		if n := w.said("level=WARN", "Crawl-delay", "host=a.example", "asked=5m0s", "kept=1m0s"); n != 1 {
			t.Errorf("said %d times:\n%s", n, w.logs.String())
		}
		a, b := w.requests("https://a.example/p0"), w.requests("https://a.example/p1")
		if len(a) != 1 || len(b) != 1 || b[0].at.Sub(a[0].at) < time.Minute || b[0].at.Sub(a[0].at) > 62*time.Second {
			t.Errorf("from p0 to p1 it took %s", b[0].at.Sub(a[0].at))
		}
		if p := w.want("https://a.example/p1", outcome.OK); p.Robots.CrawlDelay != 300*time.Second {
			t.Errorf("the evidence has %s, the site wrote 300 s", p.Robots.CrawlDelay)
		}
	})
}

func Test_a_crawl_that_only_counts_fetches_robots_and_sitemaps(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites["https://a.example/robots.txt"] = page("User-agent: *\nDisallow: /closed\nSitemap: https://a.example/map.xml")
		w.sites["https://a.example/map.xml"] = page(`<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.example/2</loc></url>
			<url><loc>https://a.example/closed</loc></url><url><loc>https://else.example.org/</loc></url></urlset>`)
		spec := plainSpec(home)
		spec.CountOnly, spec.Seeding = true, []string{"sitemap"}
		sum, err := w.crawl(spec)
		if err != nil || sum.Status != ledger.Completed || sum.Counters.Requests != 2 {
			t.Fatalf("%+v, %v", sum, err)
		}
		for _, u := range []string{home, "https://a.example/1", "https://a.example/2"} {
			if p := w.want(u, outcome.Pending); !p.Robots.Allowed {
				t.Errorf("%+v", p)
			}
		}
		w.want("https://a.example/closed", outcome.Robots)
		w.want("https://else.example.org/", outcome.Scope)
		if len(w.hits) != 2 {
			t.Errorf("%d requests", len(w.hits))
		}
	})
}

func Test_OBS_2_the_engine_counts_429s_retries_and_concurrency_overrides(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(h *hit) reply {
			if h.nth <= 3 {
				return reply{status: 429}
			}
			return reply{}
		}
		e := w.engine()
		defer w.store.Close()
		spec := plainSpec(home)
		spec.PerHost = 4
		r, err := e.Start(t.Context(), spec, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		// A host already at 5 s: the first 429 takes one slot.
		st := politeness.State{}
		if err := st.Teach(time.Now(), 5*time.Second, 0); err != nil {
			t.Fatal(err)
		}
		w.books.domains["a.example"] = DomainRow("a.example", st)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if _, err := w.drive(ctx, cancel, e, r); err != nil {
			t.Fatal(err)
		}
		if got := e.Counters().Read(); got != (limits.Counts{HTTP429: 3, Retries: 3, ConcurrencyOverrides: 1}) {
			t.Errorf("%+v", got)
		}
		if w.said("starting from what was learned", "host=a.example", "delay=5s") != 1 {
			t.Errorf("not said what it starts from:\n%s", w.logs.String())
		}
		if w.said("host throttled", "domain=a.example", "delay=6s", "error_streak=1") != 1 {
			t.Errorf("no OBS-1 line:\n%s", w.logs.String())
		}
	})
}

func Test_hosts_are_asked_for_their_group_once_a_page_and_never_under_a_lock(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		var asked atomic.Int64
		w.cfg.GroupOf = func(host string) string {
			asked.Add(1)
			time.Sleep(time.Second) // a slow name server
			return "one"
		}
		body := ""
		for i := range 64 {
			host := fmt.Sprintf("https://h%d.a.example/", i)
			body += fmt.Sprintf("<a href=%s>x</a><a href=%s2>x</a>", host, host)
			w.sites[host] = page("")
		}
		w.sites[home] = page(body)
		began := time.Now()
		sum, err := w.crawl(plainSpec(home))
		if err != nil || sum.Counters.Processed != 129 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if n := asked.Load(); n != 1+64 {
			t.Errorf("asked %d times for 65 hosts", n)
		}
		// 129 pages and 65 robots.txt at 100 ms; one by one the 64 look-ups
		// alone would take 64 s.
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
		hits := slices.Clone(w.hits)
		slices.SortFunc(hits, func(a, b *hit) int { return a.at.Compare(b.at) })
		for i := 1; i < len(hits); i++ {
			if d := hits[i].at.Sub(hits[i-1].at); d < 100*time.Millisecond {
				t.Fatalf("%s came %s after %s", hits[i].url, d, hits[i-1].url)
			}
		}
		robots := 0
		for _, h := range hits {
			if weburl.FromCanonical(h.url).Path() == "/robots.txt" {
				robots++
			}
		}
		if robots != 65 {
			t.Errorf("%d robots.txt for 65 origins", robots)
		}
	})
}
