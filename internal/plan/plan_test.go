package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func base(d time.Duration) Limits {
	return Limits{Now: noon, Rules: politeness.Rules{DelayMin: d, DelayMax: d, PerHost: 2}}
}

func site(name string, pages int64) Host {
	return Host{Name: name, Group: name, Pages: pages, Known: true, Sitemaps: 1, Origins: 1}
}

func same(t *testing.T, what string, got *time.Duration, want time.Duration) {
	t.Helper()
	if got == nil || *got < want-2*time.Millisecond || *got > want+2*time.Millisecond {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

func has(p Plan, words string) bool {
	for _, l := range p.LimitBy {
		if strings.Contains(l, words) {
			return true
		}
	}
	return false
}

func Test_hosts_are_crawled_side_by_side_and_the_slowest_decides(t *testing.T) {
	slow := site("slow.test", 98)
	slow.CrawlDelay = 10 * time.Second
	p := Predict([]Host{site("fast.test", 998), slow}, base(time.Second))
	same(t, "all", p.Time, 1000*time.Second)
	same(t, "fast", p.Hosts[1].Time, 1000*time.Second)
	if *p.Pages != 1096 || *p.Requests != 1100 {
		t.Errorf("%d pages, %d requests", *p.Pages, *p.Requests)
	}
	slow.CrawlDelay = 11 * time.Second
	p = Predict([]Host{site("fast.test", 998), slow}, base(time.Second))
	same(t, "all", p.Time, 1100*time.Second)
	if p.Hosts[0].Name != "slow.test" || !has(p, "slow.test: one request every 11s, because of the robots Crawl-delay") {
		t.Errorf("%v", p.LimitBy)
	}
}

func Test_names_of_one_group_are_crawled_one_after_the_other(t *testing.T) {
	a, b := site("a.test", 48), site("b.test", 48)
	a.Group, b.Group = "203.0.113.7", "203.0.113.7"
	p := Predict([]Host{a, b}, base(time.Second))
	same(t, "all", p.Time, 100*time.Second)
	if !has(p, "a.test (and all that is paced with it)") {
		t.Errorf("%v", p.LimitBy)
	}
}

func Test_the_pace_is_the_longest_of_base_crawl_delay_learned_delay_and_what_answers_take(t *testing.T) {
	for _, tc := range []struct {
		name   string
		set    func(*Host, *Limits)
		each   time.Duration
		why    politeness.Why
		blocks time.Duration
	}{
		{"base", func(*Host, *Limits) {}, time.Second, politeness.WhyBase, 0},
		{"random base at its mean", func(_ *Host, l *Limits) {
			l.Rules.DelayMin, l.Rules.DelayMax = 200*time.Millisecond, 500*time.Millisecond
		}, 350 * time.Millisecond, politeness.WhyBase, 0},
		{"crawl delay", func(h *Host, _ *Limits) { h.CrawlDelay = 3 * time.Second }, 3 * time.Second, politeness.WhyCrawlDelay, 0},
		{"crawl delay too long", func(h *Host, _ *Limits) { h.CrawlDelay = time.Hour }, time.Minute, politeness.WhyCrawlDelay, 0},
		{"learned", func(h *Host, _ *Limits) { h.Clocks.Learned = 5 * time.Second }, 5100 * time.Millisecond, politeness.WhyLearned, 0},
		{"slow answers, two at once", func(h *Host, _ *Limits) { h.Clocks.Latency = 4 * time.Second }, 2 * time.Second, politeness.WhyLatency, 0},
		{"blocked", func(h *Host, _ *Limits) { h.Clocks.BlockedUntil = noon.Add(time.Minute) }, time.Second, politeness.WhyBase, time.Minute},
		{"a block that is over", func(h *Host, _ *Limits) { h.Clocks.BlockedUntil = noon.Add(-time.Minute) }, time.Second, politeness.WhyBase, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, l := site("a.test", 8), base(time.Second)
			tc.set(&h, &l)
			p := Predict([]Host{h}, l)
			if g := p.Hosts[0]; g.Each != tc.each || g.Why != tc.why || g.Blocked != tc.blocks {
				t.Errorf("one every %s because of %s, blocked %s", g.Each, g.Why, g.Blocked)
			}
			same(t, "time", p.Time, 10*tc.each+tc.blocks)
			if (tc.blocks > 0) != has(p, "must be left alone for 1m0s") {
				t.Errorf("%v", p.LimitBy)
			}
		})
	}
}

func Test_unknown_is_nil_and_never_zero(t *testing.T) {
	bare := Host{Name: "bare.test", Group: "bare.test", Pages: 1, Origins: 1}
	p := Predict([]Host{site("a.test", 8), bare}, base(time.Second))
	if p.Pages != nil || p.Requests != nil || p.Time != nil || p.Named != 9 || !has(p, "1 of 2 hosts have no sitemap") {
		t.Errorf("%+v", p)
	}
	for _, h := range p.Hosts {
		if (h.Requests == nil) != (h.Name == "bare.test") || (h.Time == nil) != (h.Name == "bare.test") {
			t.Errorf("%+v", h)
		}
	}
	l := base(time.Second)
	l.MaxURLs = 5 // the known hosts alone have more
	if p := Predict([]Host{site("a.test", 8), bare}, l); p.Pages == nil || *p.Pages != 5 {
		t.Errorf("%+v", p)
	}
	l.MaxURLs = 50 // nobody knows whether there are so many
	if p := Predict([]Host{site("a.test", 8), bare}, l); p.Pages != nil {
		t.Errorf("%+v", p)
	}
}

func Test_a_page_limit_is_reached_by_all_hosts_together(t *testing.T) {
	l := base(time.Second)
	l.MaxURLs = 20
	var hosts []Host
	for i := range 4 {
		hosts = append(hosts, site(fmt.Sprintf("h%d.test", i), 100))
	}
	p := Predict(hosts, l)
	same(t, "5 pages and 2 other requests each", p.Time, 7*time.Second)
	if *p.Pages != 20 || p.Named != 400 || !strings.HasPrefix(p.LimitBy[0], "page limit (20)") {
		t.Errorf("%+v", p)
	}
	l.MaxURLs = 1000
	if p := Predict(hosts, l); *p.Pages != 400 || has(p, "page limit") {
		t.Errorf("a limit that is never reached: %+v", p)
	}
}

func Test_a_time_limit_cuts_what_does_not_fit(t *testing.T) {
	l := base(time.Second)
	l.Duration = 32 * time.Second
	p := Predict([]Host{site("a.test", 100), site("b.test", 10)}, l)
	same(t, "time", p.Time, 32*time.Second)
	if *p.Pages != 40 || !strings.HasPrefix(p.LimitBy[0], "time limit (32s): about 40 of 110 pages") {
		t.Errorf("%d pages, %v", *p.Pages, p.LimitBy)
	}
	l.Duration = time.Hour
	if p := Predict([]Host{site("a.test", 100)}, l); has(p, "time limit") || *p.Pages != 100 {
		t.Errorf("%+v", p)
	}
}

func Test_the_book_counts_pages_once_and_by_what_became_of_them(t *testing.T) {
	b := NewBook(nil, nil)
	row := func(url, host, kind, via string, o outcome.Outcome) ledger.Page {
		return ledger.Page{URL: url, Host: host, Kind: kind, Via: via, Outcome: o, Robots: ledger.RobotsDecision{Decided: o != outcome.Scope}}
	}
	pages := []ledger.Page{
		row("https://a.test/", "a.test", "page", "seed", outcome.Pending),
		row("http://a.test/1", "a.test", "page", "sitemap", outcome.Pending),
		row("https://a.test/2", "a.test", "page", "sitemap", outcome.Robots),
		row("https://a.test/s.xml", "a.test", "sitemap", "robots", outcome.OK),
		row("https://else.test/", "else.test", "page", "sitemap", outcome.Scope),
		row("https://b.test/", "b.test", "page", "seed", outcome.Pending),
		row("https://b.test/sitemap.xml", "b.test", "sitemap", "guess", outcome.NotFound),
		row("https://down.test/", "down.test", "page", "seed", outcome.Connect),
		row("https://shut.test/", "shut.test", "page", "seed", outcome.Robots),
	}
	pages[0].Robots.CrawlDelay = 3 * time.Second
	if err := b.Commit(context.Background(), &ledger.Batch{Pages: pages, Requests: make([]ledger.Request, 7)}); err != nil {
		t.Fatal(err)
	}
	got := map[string]Host{}
	for _, h := range b.Hosts([]string{"https://a.test/", "https://b.test/", "https://down.test/", "https://shut.test/", "https://late.test/"}) {
		got[h.Name] = h
	}
	if h := got["a.test"]; h.Pages != 2 || h.Closed != 1 || h.Sitemaps != 1 || h.Origins != 2 || !h.Known || h.CrawlDelay != 3*time.Second {
		t.Errorf("a.test %+v", h)
	}
	if h := got["b.test"]; h.Pages != 1 || h.Known || h.Trouble != "" {
		t.Errorf("b.test %+v", h)
	}
	if h := got["down.test"]; h.Pages != 1 || h.Known || h.Trouble == "" {
		t.Errorf("down.test %+v", h)
	}
	if h := got["shut.test"]; h.Pages != 0 || !h.Known || h.Closed != 1 {
		t.Errorf("shut.test %+v", h)
	}
	if h := got["late.test"]; h.Pages != 1 || h.Known || !strings.Contains(h.Trouble, "in time") {
		t.Errorf("late.test %+v", h)
	}
	if len(got) != 5 || b.Requests() != 7 {
		t.Errorf("%d hosts, %d requests", len(got), b.Requests())
	}
}

func Test_the_book_says_once_that_it_is_full(t *testing.T) {
	said := 0
	b := NewBook(nil, func() { said++ })
	b.pages = MostPages - 1
	for i := range 3 {
		p := ledger.Page{URL: fmt.Sprintf("https://a.test/%d", i), Host: "a.test", Kind: "page", Outcome: outcome.Pending}
		if err := b.Commit(context.Background(), &ledger.Batch{Pages: []ledger.Page{p}}); err != nil {
			t.Fatal(err)
		}
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}
