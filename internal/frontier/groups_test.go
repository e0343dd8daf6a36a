package frontier

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// addTo queues URLs of many hosts in one group.
func (w *world) addTo(group string, c *Crawl, urls ...string) {
	w.t.Helper()
	var b Batch
	for _, u := range urls {
		e := entry(c.ID, u, 0)
		e.Group = group
		b.Add = append(b.Add, e)
	}
	w.commit(&b)
}

func Test_many_names_of_one_group_share_a_pace_and_keep_their_own_robots(t *testing.T) {
	w := newWorld(t, Options{Shards: 3})
	c := w.crawl(1, pace(time.Second))
	w.serve = func(h *hit) reply {
		if h.robots && strings.Contains(h.url, "//h3.") {
			return reply{body: "User-agent: *\nDisallow: /1"}
		}
		return reply{took: 3 * time.Second} // more than the gap: the cap binds too
	}
	for i := range 10 {
		w.addTo("203.0.113.7", c, urls(fmt.Sprintf("h%d.example", i), 3)...)
	}
	w.finish(c)
	w.mustKeep("203.0.113.7", time.Second)
	if n := len(w.robotsHits("203.0.113.7")); n != 10 {
		t.Errorf("%d robots.txt fetched for ten names", n)
	}
	if n := len(w.pages("")); n != 29 {
		t.Errorf("%d pages requested, want all but the one that h3 closes", n)
	}
	if _, ok := w.refused["https://h3.example/1"]; !ok || len(w.refused) != 1 {
		t.Errorf("refused: %v", w.refused)
	}
}

func Test_the_crawl_delay_of_one_origin_is_kept_in_a_group_of_many(t *testing.T) {
	const delay = 10 * time.Second
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(time.Second))
	w.serve = func(h *hit) reply {
		if h.robots && strings.Contains(h.url, "//slow.") {
			return reply{body: "User-agent: *\nCrawl-delay: 10"}
		}
		return reply{}
	}
	for i := range 6 { // so that they take turns
		for _, host := range []string{"slow.example", "a.example", "b.example"} {
			w.addTo("@shared", c, fmt.Sprintf("https://%s/%d", host, i))
		}
	}
	w.finish(c)
	w.mustKeep("@shared", time.Second)
	var last *hit
	n := 0
	for _, h := range w.all("@shared") {
		if weburl.FromCanonical(h.url).Hostname() != "slow.example" {
			continue
		}
		if n++; last != nil && h.at.Sub(last.at) < delay {
			t.Errorf("%s came %s after %s", h.url, h.at.Sub(last.at), last.url)
		}
		last = h
	}
	if n != 7 {
		t.Errorf("%d requests to slow.example", n)
	}
	st, ok, err := ReadClocks(context.Background(), w.store, "@shared")
	if err != nil || !ok || st.CrawlDelay != delay {
		t.Errorf("stored Crawl-delay %s, %v, %v; a restart would not keep the %s", st.CrawlDelay, ok, err, delay)
	}
}

func Test_a_crawl_that_only_counts_requests_robots_and_sitemaps_and_nothing_else(t *testing.T) {
	w := newWorld(t, Options{})
	paid := 0
	c := w.crawl(1, func(c *Crawl) { c.CountOnly, c.Reserve = true, func() bool { paid++; return true } })
	w.serve = func(h *hit) reply { return reply{body: "User-agent: *\nDisallow: /1"} }
	w.add(c, urls("a.example", 5)...)
	list := entry(1, "https://a.example/sitemap.xml", 1)
	list.Kind = KindSitemap
	w.commit(&Batch{Add: []Entry{list}})
	w.finish(c)
	if len(w.hits) != 2 || paid != 0 {
		t.Errorf("%d requests, %d paid, want robots.txt and the sitemap for nothing", len(w.hits), paid)
	}
	allowed := 0
	for _, d := range w.refused {
		if d.Allowed {
			allowed++
		}
	}
	if allowed != 4 || len(w.refused) != 5 {
		t.Errorf("%d of %d counted pages are allowed, want 4 of 5", allowed, len(w.refused))
	}
}

func Test_the_operators_rules_hold_where_robots_are_ignored(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, func(c *Crawl) {
		c.IgnoreRobots = true
		c.Overrule = func(url string) (Decision, bool) {
			return Decision{Rule: "mine"}, strings.HasSuffix(url, "/2")
		}
	})
	w.add(c, urls("a.example", 4)...)
	w.finish(c)
	if len(w.hits) != 3 || w.refused["https://a.example/2"].Rule != "mine" {
		t.Errorf("%d requests, refused %v", len(w.hits), w.refused)
	}
}

func Test_what_a_group_starts_from_is_told_whether_the_store_or_the_ledger_knew_it(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	week := politeness.State{Learned: 4 * time.Second, Updated: now.Add(-politeness.HalfLife)}
	told := map[string][2]time.Duration{}
	opt := Options{
		Knowledge: func(_ context.Context, group string) (politeness.State, error) {
			if group == "ledger.example" {
				return week, nil
			}
			return politeness.State{}, nil
		},
		Remembered: func(group string, stored, now politeness.State) {
			told[group] = [2]time.Duration{stored.Learned, now.Learned}
		},
	}
	w := newWorld(t, opt)
	if _, err := w.store.Commit(context.Background(), &Batch{Notes: []Note{ClocksNote("note.example", week)}}); err != nil {
		t.Fatal(err)
	}
	c := w.crawl(1)
	for _, host := range []string{"ledger.example", "note.example", "new.example"} {
		w.add(c, urls(host, 1)...)
	}
	w.finish(c)
	for host, want := range map[string][2]time.Duration{
		"ledger.example": {4 * time.Second, 2 * time.Second},
		"note.example":   {4 * time.Second, 2 * time.Second},
		"new.example":    {},
	} {
		if got, ok := told[host]; !ok || got != want {
			t.Errorf("%s: told %v (%v), want %v", host, got, ok, want)
		}
	}
}
