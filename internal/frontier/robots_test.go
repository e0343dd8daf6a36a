package frontier

import (
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/robots"
)

func (w *world) robotsHits(group string) (out []*hit) {
	for _, h := range w.hits {
		if h.robots && h.group == group {
			out = append(out, h)
		}
	}
	return out
}

func Test_no_page_of_a_host_before_its_robots_answer(t *testing.T) {
	w := newWorld(t, Options{Shards: 2})
	c := w.crawl(1, pace(0))
	answered := map[string]time.Time{}
	w.serve = func(h *hit) reply {
		if h.robots {
			answered[h.group] = w.now.Add(2 * time.Second)
			return reply{took: 2 * time.Second}
		}
		if at, ok := answered[h.group]; !ok || h.at.Before(at) {
			t.Errorf("%s was requested before robots.txt was known", h.url)
		}
		return reply{}
	}
	for i := range 5 {
		w.add(c, urls(fmt.Sprintf("h%d.example", i), 4)...)
	}
	w.finish(c)
}

func Test_robots_is_fetched_once_however_many_urls_wait_for_it(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0), func(c *Crawl) { c.Rules.PerHost = 20 })
	w.serve = func(h *hit) reply {
		if h.robots {
			return reply{took: time.Second}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 300)...) // more than may be held
	w.finish(c)
	if n := len(w.robotsHits("a.example")); n != 1 {
		t.Errorf("robots.txt was fetched %d times", n)
	}
}

func Test_each_origin_of_a_host_has_its_own_robots(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1)
	group := func(u string) Entry { e := entry(1, u, 0); e.Group = "a.example"; return e }
	w.commit(&Batch{Add: []Entry{group("https://a.example/"), group("http://a.example/")}})
	w.finish(c)
	if n := len(w.robotsHits("a.example")); n != 2 {
		t.Errorf("%d robots fetches for two origins", n)
	}
	w.mustKeep("a.example", time.Second)
}

func Test_blocked_means_no_request_and_costs_nothing(t *testing.T) {
	w := newWorld(t, Options{})
	paid := 0
	c := w.crawl(1, func(c *Crawl) { c.Reserve = func() bool { paid++; return true } })
	w.serve = func(h *hit) reply {
		if h.robots {
			return reply{body: "User-agent: *\nDisallow: /1"}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 3)...)
	w.finish(c)
	if len(w.pages("")) != 2 || paid != 2 {
		t.Errorf("%d pages requested, %d paid, want 2", len(w.pages("")), paid)
	}
	d, ok := w.refused["https://a.example/1"]
	if !ok || d.Line != 2 || d.Outcome != outcome.Robots {
		t.Errorf("refusal %+v", d)
	}
}

func Test_a_robots_redirect_to_another_host_goes_through_that_hosts_clocks(t *testing.T) {
	w := newWorld(t, Options{Shards: 4})
	c := w.crawl(1, pace(10*time.Second))
	w.serve = func(h *hit) reply {
		if h.robots && h.group == "a.example" {
			return reply{location: "https://other.test/rules.txt"}
		}
		if h.url == "https://other.test/rules.txt" {
			return reply{body: "User-agent: *\nDisallow: /1"}
		}
		return reply{}
	}
	w.add(c, urls("other.test", 4)...)
	w.add(c, urls("a.example", 2)...)
	w.finish(c)
	w.mustKeep("other.test", 10*time.Second)
	if _, ok := w.refused["https://a.example/1"]; !ok {
		t.Error("the rules found behind the redirect were not used")
	}
	if n := len(w.robotsHits("other.test")); n != 2 {
		t.Errorf("%d robots requests at the other host, want its own and the hop", n)
	}
}

func Test_robots_fetches_never_exceed_their_slots_and_every_host_gets_its_turn(t *testing.T) {
	for _, shards := range []int{1, 4} {
		w := newWorld(t, Options{RobotSlots: 3, Shards: shards})
		c := w.crawl(1)
		at, most := 0, 0
		w.serve = func(h *hit) reply {
			if h.robots {
				at++
				most = max(most, at)
				w.after(500*time.Millisecond, func() { at-- })
				return reply{took: 500 * time.Millisecond}
			}
			return reply{}
		}
		for i := range 40 {
			w.add(c, urls(fmt.Sprintf("h%d.site%d.example", i, i), 2)...)
		}
		w.finish(c)
		if most != 3 {
			t.Errorf("%d shards: at most %d robots fetches at once, limit 3", shards, most)
		}
	}
}

func Test_a_host_that_owes_a_wait_keeps_no_robots_slot_from_others(t *testing.T) {
	w := newWorld(t, Options{RobotSlots: 1})
	c := w.crawl(1)
	w.serve = func(h *hit) reply {
		if h.robots && h.group == "a.example" && h.nth == 1 {
			return reply{status: 503, retryAfter: 30 * time.Minute}
		}
		return reply{took: 100 * time.Millisecond}
	}
	for i := range 5 {
		w.add(c, urls(fmt.Sprintf("h%d.example", i), 1)...)
	}
	w.add(c, urls("a.example", 1)...)
	w.runFor(10 * time.Second)
	if n := len(w.pages("")); n != 5 {
		t.Errorf("%d of 5 pages after 10 s; the blocked host holds the slot", n)
	}
	w.finish(c)
}

func Test_a_slot_is_not_lost_with_a_crawl_that_is_closed_while_it_waits(t *testing.T) {
	w := newWorld(t, Options{RobotSlots: 1})
	a, b := w.crawl(1), w.crawl(2)
	w.serve = func(h *hit) reply { return reply{took: time.Second} }
	w.add(a, urls("first.example", 1)...)
	w.add(a, urls("second.example", 1)...)
	w.add(b, urls("third.example", 1)...)
	w.pump()
	w.runFor(1500 * time.Millisecond)
	w.s.Close(a, w.now)
	w.run()
	if !b.Exhausted() {
		t.Fatalf("the other crawl waits for ever:\n%s", w.states())
	}
}

func Test_a_paused_crawl_does_not_keep_robots_from_another(t *testing.T) {
	w := newWorld(t, Options{})
	a, b := w.crawl(1), w.crawl(2)
	w.serve = func(h *hit) reply {
		if h.robots && h.nth == 1 && h.crawl == 1 {
			return reply{status: 500}
		}
		return reply{}
	}
	w.add(a, urls("a.example", 2)...)
	w.add(b, urls("a.example", 2)...)
	w.runFor(500 * time.Millisecond)
	w.s.Pause(a)
	w.run()
	if !b.Exhausted() {
		t.Fatalf("crawl 2 waits for ever:\n%s", w.states())
	}
}

func Test_a_paused_crawl_gives_its_queued_robots_fetch_to_another(t *testing.T) {
	w := newWorld(t, Options{RobotSlots: 1})
	a, b := w.crawl(1), w.crawl(2)
	w.serve = func(h *hit) reply { return reply{took: time.Second} }
	w.add(b, urls("first.example", 1)...) // holds the only slot
	w.pump()
	w.add(a, urls("a.example", 2)...)
	w.add(b, urls("a.example", 2)...)
	w.runFor(500 * time.Millisecond)
	w.s.Pause(a)
	w.run()
	if !b.Exhausted() {
		t.Fatalf("crawl 2 waits for ever:\n%s", w.states())
	}
	for _, h := range w.hits {
		if h.crawl == 1 {
			t.Errorf("%s was requested for the paused crawl", h.url)
		}
	}
}

func Test_a_robots_hop_that_others_wait_for_goes_on_when_its_crawl_is_paused(t *testing.T) {
	w := newWorld(t, Options{})
	a, b := w.crawl(1, pace(5*time.Second)), w.crawl(2, pace(5*time.Second))
	w.serve = func(h *hit) reply {
		if h.robots && h.group == "a.example" {
			return reply{location: "https://other.test/rules.txt"}
		}
		return reply{}
	}
	w.add(b, urls("other.test", 3)...) // its clocks make the hop wait
	w.pump()
	w.add(a, urls("a.example", 1)...)
	w.add(b, urls("a.example", 1)...)
	w.runFor(time.Second)
	w.s.Pause(a)
	w.run()
	if !b.Exhausted() {
		t.Fatalf("crawl 2 waits for ever:\n%s", w.states())
	}
	w.mustKeep("other.test", 5*time.Second)
}

func Test_a_robots_txt_that_cannot_be_read_is_retried_with_backoff_then_judged_by_policy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		policy  robots.Policy
		reply   reply
		fetches int
		pages   int
	}{
		{"RFC9309 503 disallows", robots.RFC9309, reply{status: 503}, 4, 0},
		{"RFC9309 429 disallows", robots.RFC9309, reply{status: 429}, 4, 0},
		{"RFC9309 no answer disallows", robots.RFC9309, reply{failure: outcome.Timeout}, 4, 0},
		{"House an unknown name is asked for twice", robots.RFC9309, reply{failure: outcome.DNS}, 2, 0},
		{"RFC9309 404 allows", robots.RFC9309, reply{status: 404}, 1, 2},
		{"RFC9309 403 allows", robots.RFC9309, reply{status: 403}, 1, 2},
		{"House open allows after the retries [ROB-4]", robots.Open, reply{status: 503}, 4, 2},
		{"House open allows without an answer [ROB-4]", robots.Open, reply{failure: outcome.Timeout}, 4, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			c := w.crawl(1, pace(0), func(c *Crawl) { c.Decide = decideBy(tc.policy) })
			w.serve = func(h *hit) reply {
				if h.robots {
					return tc.reply
				}
				return reply{}
			}
			w.add(c, urls("a.example", 2)...)
			w.finish(c)
			hs := w.robotsHits("a.example")
			if len(hs) != tc.fetches || len(w.pages("")) != tc.pages || len(w.refused) != 2-tc.pages {
				t.Errorf("%d robots fetches, %d pages, %d refused", len(hs), len(w.pages("")), len(w.refused))
			}
			for i := 1; i < len(hs); i++ {
				if d := hs[i].at.Sub(hs[i-1].at); d < time.Second<<(i-1) {
					t.Errorf("try %d came %s after the last", i+1, d)
				}
			}
		})
	}
}

func Test_the_last_good_copy_stands_in_while_it_is_younger_than_a_day(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0))
	down := false
	w.serve = func(h *hit) reply {
		if h.robots && down {
			return reply{status: 500}
		}
		if h.robots {
			return reply{body: "User-agent: *\nDisallow: /1"}
		}
		return reply{}
	}
	w.add(c, "https://a.example/0")
	w.finish(c)
	down = true
	w.s.shards[0].groups["a.example"].origins[0].copy.Expires = w.now.Add(-time.Second) // Cache-Control was shorter than a day
	w.add(c, "https://a.example/1", "https://a.example/2")
	w.finish(c)
	if len(w.refused) != 1 || len(w.pages("")) != 2 {
		t.Errorf("refused %d, fetched %d; want the old rules", len(w.refused), len(w.pages("")))
	}
	w.now = w.now.Add(25 * time.Hour)
	w.add(c, "https://a.example/3")
	w.finish(c)
	if len(w.refused) != 2 {
		t.Error("a copy older than a day was still used")
	}
}

func Test_a_crawl_delay_binds_from_the_robots_fetch_on(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(100*time.Millisecond))
	w.serve = func(h *hit) reply {
		if h.robots {
			return reply{body: "User-agent: *\nCrawl-delay: 7.5"}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 4)...)
	w.finish(c)
	w.mustKeep("a.example", 7500*time.Millisecond)
}

func Test_ignore_robots_makes_no_robots_request_and_says_so_in_the_decision(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, func(c *Crawl) { c.IgnoreRobots = true })
	w.add(c, urls("a.example", 2)...)
	w.finish(c)
	if len(w.robotsHits("a.example")) != 0 || len(w.pages("")) != 2 {
		t.Errorf("%d robots fetches, %d pages", len(w.robotsHits("a.example")), len(w.pages("")))
	}
	if d := w.allowed["https://a.example/0"]; !d.Allowed || !d.Ignored || d.Rule == "" {
		t.Errorf("decision %+v", d)
	}
}
