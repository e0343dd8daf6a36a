package frontier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

func Test_a_host_that_drains_and_refills_keeps_its_delay(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(10*time.Second))
	w.add(c, "https://a.example/1")
	w.finish(c)
	w.add(c, "https://a.example/2")
	w.finish(c)
	w.mustKeep("a.example", 10*time.Second)
}

func Test_a_gap_counts_from_the_wire_not_from_the_grant(t *testing.T) {
	w := newWorld(t, Options{})
	w.wire = 700 * time.Millisecond // dial and handshake
	c := w.crawl(1)
	w.add(c, urls("a.example", 5)...)
	w.finish(c)
	w.mustKeep("a.example", time.Second)
}

func Test_a_url_put_back_for_backoff_is_not_lost_when_its_queue_drains_meanwhile(t *testing.T) {
	w := newWorld(t, Options{IdleHosts: 1})
	c := w.crawl(1, pace(0))
	w.serve = func(h *hit) reply {
		if h.path() == "/0" && h.nth < 3 {
			return reply{status: 500}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 3)...)
	w.add(c, urls("b.example", 3)...)
	w.finish(c)
	if w.done["https://a.example/0"] != 1 {
		t.Fatal("the retried URL has no end")
	}
	hs := w.pages("a.example")
	if last := hs[len(hs)-1]; last.path() != "/0" || last.nth != 3 {
		t.Fatalf("last request is %s, try %d", last.url, last.nth)
	}
}

func Test_retry_after_stops_the_whole_host_and_only_that_host(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0))
	asked := false
	var until time.Time
	w.serve = func(h *hit) reply {
		if h.group == "a.example" && !h.robots && !asked {
			asked = true
			until = w.now.Add(10*time.Millisecond + time.Minute)
			return reply{status: 429, retryAfter: time.Minute}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 4)...)
	w.add(c, urls("b.example", 4)...)
	w.finish(c)
	first := w.pages("a.example")[0].at
	for _, h := range w.pages("a.example")[1:] {
		if h.at.Sub(first) > 10*time.Millisecond && h.at.Before(until) {
			t.Fatalf("%s went out %s before Retry-After ended", h.url, until.Sub(h.at))
		}
	}
	for _, h := range w.pages("b.example") {
		if h.at.Sub(w.start) > time.Second {
			t.Fatalf("%s waited for another host", h.url)
		}
	}
}

func Test_two_crawls_on_one_host_share_one_pace_and_take_turns(t *testing.T) {
	w := newWorld(t, Options{})
	a, b := w.crawl(1), w.crawl(2)
	w.add(a, urls("a.example", 10)...)
	w.add(b, urls("a.example", 10)...)
	w.run()
	if !a.Exhausted() || !b.Exhausted() {
		t.Fatal("not finished")
	}
	w.mustKeep("a.example", time.Second)
	robots, turns := 0, 0
	var last CrawlID
	for _, h := range w.hits {
		if h.robots {
			robots++
		} else {
			if h.crawl != last {
				turns++
			}
			last = h.crawl
		}
	}
	if robots != 1 {
		t.Errorf("robots.txt was fetched %d times for two crawls", robots)
	}
	if turns < 19 {
		t.Errorf("only %d changes of turn in 20 pages", turns)
	}
}

func Test_waiting_is_free_and_is_not_polled(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(time.Minute))
	w.add(c, urls("a.example", 1000)...)
	w.runFor(10 * time.Minute)
	before := w.calls
	w.runFor(time.Hour)
	if n := w.calls - before; n > 60*6 {
		t.Fatalf("%d calls of Next for 60 requests", n)
	}
}

func Test_a_parked_host_keeps_its_urls_accounted_and_the_crawl_ends(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0))
	w.serve = func(h *hit) reply {
		if h.group == "dead.example" && !h.robots {
			return reply{failure: outcome.Connect}
		}
		return reply{}
	}
	w.add(c, urls("dead.example", 40)...)
	w.add(c, urls("b.example", 5)...)
	w.run()
	if !c.Exhausted() {
		t.Fatalf("not exhausted: pending %d parked %d", c.Pending(), c.Parked())
	}
	if c.Parked() == 0 || int(c.Parked()) != w.store.left(1) {
		t.Fatalf("%d parked, %d in the store", c.Parked(), w.store.left(1))
	}
	parked := 0
	w.s.EachParked(func(v HostView) {
		parked++
		if v.Group != "dead.example" || v.Waiting != int(c.Parked()) || v.Reason == "" {
			t.Errorf("parked view: %+v", v)
		}
	})
	if parked != 1 {
		t.Errorf("%d hosts parked", parked)
	}
	n := len(w.hits)
	w.add(c, "https://dead.example/late") // announced to a parked host
	w.run()
	if !c.Exhausted() || len(w.hits) != n {
		t.Errorf("a URL for a parked host: exhausted %v, %d requests more", c.Exhausted(), len(w.hits)-n)
	}

	// A resume gives the host another chance.
	w.serve = func(*hit) reply { return reply{} }
	w.s.Close(c, w.now)
	w.open(Options{RestartedAt: w.now})
	w.granted, w.released = 0, 0
	w.finish(w.crawl(1, pace(0)))
	if w.done["https://dead.example/late"] != 1 {
		t.Error("the resumed crawl did not fetch the parked host")
	}
}

func Test_hosts_beyond_the_ready_limit_wait_in_the_store_and_none_is_lost(t *testing.T) {
	for _, shards := range []int{1, 3} {
		w := newWorld(t, Options{ReadyHosts: 3 * shards, IdleHosts: 2, Shards: shards})
		c := w.crawl(1)
		for h := range 40 {
			w.add(c, urls(fmt.Sprintf("h%d.example%d", h, h%7), 3)...)
		}
		most := 0
		for w.step() {
			for _, sh := range w.s.shards {
				most = max(most, sh.active)
			}
		}
		w.finish(c)
		if len(w.done) != 120 {
			t.Errorf("%d of 120 URLs ended", len(w.done))
		}
		if most > 3 {
			t.Errorf("%d hosts were in memory, limit 3", most)
		}
	}
}

func Test_a_dormant_host_that_gets_another_link_forgets_neither_the_old_nor_the_new(t *testing.T) {
	w := newWorld(t, Options{ReadyHosts: 2})
	c := w.crawl(1)
	w.serve = func(h *hit) reply {
		// Pages of the hosts that are in memory name hosts that are not.
		if strings.HasPrefix(h.group, "busy") && !h.robots {
			return reply{links: []string{"https://far.example" + h.path() + "x", "https://busy1.example" + h.path() + "/n"}}
		}
		return reply{}
	}
	w.add(c, urls("busy1.example", 4)...)
	w.add(c, urls("busy2.example", 4)...)
	w.add(c, urls("far.example", 4)...)
	for n := 0; n < 400 && w.step(); n++ {
	}
	w.serve = func(*hit) reply { return reply{} }
	w.finish(c)
	for _, u := range urls("far.example", 4) {
		if w.done[u] != 1 || w.done[u+"x"] != 1 {
			t.Errorf("%s ended %d times, %sx %d times", u, w.done[u], u, w.done[u+"x"])
		}
	}
}

func Test_a_new_link_to_a_dormant_host_waits_for_the_look_that_counts_its_queue(t *testing.T) {
	w := newWorld(t, Options{ReadyHosts: 20})
	c := w.crawl(1)
	for i := range 20 {
		w.add(c, urls(fmt.Sprintf("busy%d.example", i), 2+i)...)
	}
	w.add(c, urls("far.example", 3)...)
	sh := w.s.shards[0]
	for sh.active == 20 {
		w.step()
	}
	if sh.dormant == 0 || sh.active*10 <= sh.hostLimit()*9 {
		t.Fatalf("%d active, %d dormant: there is no room that nobody looks at", sh.active, sh.dormant)
	}
	w.add(c, "https://far.example/new")
	w.finish(c)
}

func Test_a_robots_hop_to_a_dormant_host_does_not_hide_its_queue(t *testing.T) {
	w := newWorld(t, Options{ReadyHosts: 1})
	c := w.crawl(1)
	w.serve = func(h *hit) reply {
		if h.robots && h.group == "a.example" {
			return reply{location: "https://far.example/robots.txt", took: 5 * time.Second}
		}
		if h.group == "a.example" {
			return reply{links: []string{"https://far.example/late"}}
		}
		return reply{}
	}
	w.add(c, urls("a.example", 1)...)
	w.add(c, urls("far.example", 3)...) // dormant
	w.finish(c)
	if len(w.done) != 5 {
		t.Errorf("%d of 5 URLs ended", len(w.done))
	}
}

func Test_a_small_memory_limit_makes_small_windows_and_loses_nothing(t *testing.T) {
	w := newWorld(t, Options{MemoryURLs: 1})
	c := w.crawl(1, pace(0))
	w.add(c, urls("a.example", 500)...)
	most := 0
	for w.step() {
		most = max(most, w.s.Snapshot(w.now, 1, nil).Memory)
	}
	w.finish(c)
	if most > minWindow+maxHeldPerOrigin {
		t.Errorf("%d entries in memory", most)
	}
	if len(w.done) != 500 {
		t.Errorf("%d of 500 ended", len(w.done))
	}
}

func Test_priorities_hold_over_memory_and_store(t *testing.T) {
	w := newWorld(t, Options{MemoryURLs: 1})
	c := w.crawl(1, pace(10*time.Millisecond))
	var b Batch
	for i := range 300 {
		b.Add = append(b.Add, entry(1, fmt.Sprintf("https://a.example/%d", i), uint8(i*7%5)))
	}
	w.commit(&b)
	w.finish(c)
	prio := map[string]uint8{}
	for _, e := range b.Add {
		prio[e.URL] = e.Prio
	}
	hs := w.pages("a.example")
	for i := 1; i < len(hs); i++ {
		if prio[hs[i].url] < prio[hs[i-1].url] {
			t.Fatalf("request %d has priority %d after %d", i, prio[hs[i].url], prio[hs[i-1].url])
		}
	}
}

func Test_DOM3_eviction_keeps_hosts_that_owe_a_wait_or_learned_something(t *testing.T) {
	w := newWorld(t, Options{IdleHosts: 1})
	c := w.crawl(1, pace(0))
	w.serve = func(h *hit) reply {
		switch {
		case h.robots:
		case h.group == "limited.example" && h.nth == 1:
			return reply{status: 429}
		case h.group == "blocked.example":
			return reply{status: 200, retryAfter: 50 * time.Minute}
		}
		return reply{}
	}
	w.add(c, urls("limited.example", 1)...)
	w.add(c, urls("blocked.example", 1)...)
	for i := range 20 {
		w.add(c, urls(fmt.Sprintf("plain%d.example", i), 1)...)
	}
	w.finish(c)
	w.s.TakeChanged()
	for i := range 20 {
		w.add(c, fmt.Sprintf("https://plain%d.example/again", i))
		w.finish(c)
		w.s.TakeChanged()
	}
	if w.s.Clocks("limited.example").Learned == 0 {
		t.Error("a learned delay was evicted")
	}
	if !w.s.Clocks("blocked.example").BlockedUntil.After(w.now) {
		t.Error("a block was evicted")
	}
	if n := len(w.s.shards[0].groups); n > 12 {
		t.Errorf("%d hosts are still in memory; nothing was evicted", n)
	}
}

func Test_a_host_is_not_evicted_while_its_refusal_waits_for_its_commit(t *testing.T) {
	w := newWorld(t, Options{IdleHosts: 1})
	c := w.crawl(1, pace(0))
	w.serve = func(h *hit) reply {
		if h.robots && h.group == "closed.example" {
			return reply{body: "User-agent: *\nDisallow: /"}
		}
		return reply{}
	}
	w.add(c, "https://closed.example/1")
	w.finish(c)
	w.s.TakeChanged()
	w.commitIn = time.Minute // the refusal is decided long before it is written
	w.add(c, "https://closed.example/2")
	w.pump()
	for i := range 10 {
		w.s.TakeChanged()
		w.add(c, urls(fmt.Sprintf("plain%d.example", i), 1)...)
		w.runFor(time.Second)
	}
	w.finish(c)
}

func Test_the_budget_is_never_overshot_and_retries_are_not_counted_twice(t *testing.T) {
	for _, budget := range []int64{1, 7, 20} {
		w := newWorld(t, Options{Shards: 2})
		var left, calls atomic.Int64
		left.Store(budget)
		c := w.crawl(1, pace(100*time.Millisecond), func(c *Crawl) {
			c.Reserve = func() bool { calls.Add(1); return left.Add(-1) >= 0 }
		})
		w.serve = func(h *hit) reply {
			if !h.robots && h.nth == 1 && strings.HasSuffix(h.url, "0") {
				return reply{status: 503, retryAfter: time.Second}
			}
			return reply{}
		}
		for i := range 10 {
			w.add(c, urls(fmt.Sprintf("h%d.example", i), 10)...)
		}
		w.run()
		if !c.Spent() {
			t.Error("the budget turned nobody away")
		}
		distinct := map[string]bool{}
		for _, h := range w.pages("") {
			distinct[h.url] = true
		}
		if int64(len(distinct)) != budget || int64(len(w.done)) != budget {
			t.Errorf("budget %d: %d pages requested, %d ended", budget, len(distinct), len(w.done))
		}
		if c.Retrying() != 0 || c.Taken() != 0 {
			t.Errorf("budget %d: %d retrying, %d taken", budget, c.Retrying(), c.Taken())
		}
	}
}

func Test_a_sitemap_costs_no_page_of_the_budget(t *testing.T) {
	w := newWorld(t, Options{})
	n := 0
	c := w.crawl(1, func(c *Crawl) { c.Reserve = func() bool { n++; return true } })
	e := entry(1, "https://a.example/sitemap.xml", 0)
	e.Kind = KindSitemap
	w.commit(&Batch{Add: []Entry{e, entry(1, "https://a.example/", 0)}})
	w.finish(c)
	if n != 1 {
		t.Errorf("%d pages were paid for one page and one sitemap", n)
	}
}

func Test_a_paused_crawl_makes_no_request_and_goes_on_where_it_was(t *testing.T) {
	w := newWorld(t, Options{})
	a, b := w.crawl(1), w.crawl(2)
	w.add(a, urls("a.example", 20)...)
	w.add(b, urls("a.example", 3)...)
	w.runFor(5 * time.Second)
	w.s.Pause(a)
	w.runFor(100 * time.Millisecond) // what was in flight
	n := 0
	for _, h := range w.hits {
		if h.crawl == 1 {
			n++
		}
	}
	w.run()
	for _, h := range w.hits {
		if h.crawl == 1 {
			n--
		}
	}
	if n != 0 {
		t.Fatalf("%d requests of a paused crawl", -n)
	}
	if !b.Exhausted() {
		t.Error("the other crawl was paused too")
	}
	w.s.Unpause(a, w.now)
	w.check()
	w.run()
	if !a.Exhausted() {
		t.Error("the crawl did not go on")
	}
	w.mustKeep("a.example", time.Second)
}

func Test_a_pause_also_holds_robots_fetches_back(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1)
	w.serve = func(h *hit) reply { return reply{status: 500} }
	w.add(c, urls("a.example", 2)...)
	w.runFor(100 * time.Millisecond)
	if len(w.hits) != 1 {
		t.Fatalf("%d requests, want the first robots.txt", len(w.hits))
	}
	w.s.Pause(c)
	w.run()
	if len(w.hits) != 1 {
		t.Fatalf("%d robots.txt fetches of a paused crawl", len(w.hits)-1)
	}
	w.serve = func(*hit) reply { return reply{} }
	w.s.Unpause(c, w.now)
	w.finish(c)
}

func Test_a_closed_crawl_is_forgotten_and_the_other_goes_on(t *testing.T) {
	w := newWorld(t, Options{RobotSlots: 1})
	a, b := w.crawl(1), w.crawl(2)
	w.add(a, urls("a.example", 5)...)
	w.add(b, urls("a.example", 5)...)
	w.runFor(1500 * time.Millisecond)
	w.s.Close(a, w.now)
	w.check()
	w.run()
	if !b.Exhausted() {
		t.Fatalf("the other crawl stalled: %d pending\n%s", b.Pending(), w.states())
	}
	if w.store.left(1) == 0 {
		t.Error("the store forgot the closed crawl")
	}
}

func Test_a_failed_commit_changes_nothing_and_its_notes_go_with_the_next(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0))
	w.serve = func(h *hit) reply {
		if !h.robots && h.nth == 1 {
			return reply{status: 429}
		}
		return reply{}
	}
	w.add(c, "https://a.example/1")
	w.commitIn = time.Hour
	w.runFor(time.Minute)
	pending, taken := c.Pending(), c.Taken()
	w.store.fail = errors.New("disk full")
	e := entry(1, "https://a.example/2", 0)
	if _, err := w.s.Commit(context.Background(), &Batch{Add: []Entry{e}}, w.now); err == nil {
		t.Fatal("the failure was swallowed")
	}
	w.check()
	if c.Pending() != pending || c.Taken() != taken {
		t.Errorf("a failed commit moved pending %d to %d, taken %d to %d", pending, c.Pending(), taken, c.Taken())
	}
	w.commit(&Batch{})
	if w.store.notes[[2]string{"a.example", clocksNoteName}] == nil || w.store.notes[[2]string{"a.example", robotsNotePrefix + "https://a.example"}] == nil {
		t.Error("clocks or robots copy of the failed commit were never written")
	}
}

func Test_a_restart_stays_polite_and_repeats_nothing_that_was_acknowledged(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(20*time.Second))
	w.add(c, urls("a.example", 6)...)
	w.runFor(70 * time.Second)
	done := len(w.done)
	w.commitIn = 0
	w.open(Options{RestartedAt: w.now, RestartRules: c.Rules}) // kill -9: no Close
	w.granted, w.released = 0, 0
	w.inFlight = map[string]int{}
	c = w.crawl(1, pace(20*time.Second))
	if int(c.Pending()) != 6-done {
		t.Fatalf("%d pending after the restart, %d were done of 6", c.Pending(), done)
	}
	restart := w.now
	w.finish(c)
	for _, h := range w.all("a.example") {
		if h.at.After(restart) && h.at.Sub(restart) < 20*time.Second {
			t.Errorf("%s went out %s after the restart", h.url, h.at.Sub(restart))
		}
		if h.robots && h.at.After(restart) {
			t.Error("the stored robots.txt was fetched again")
		}
	}
	w.mustKeep("a.example", 20*time.Second)
}

func Test_concurrency_reaches_the_cap_and_never_passes_it(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0), func(c *Crawl) { c.Rules.PerHost = 3 })
	most := 0
	w.serve = func(h *hit) reply {
		most = max(most, w.inFlight[h.group])
		return reply{took: time.Second}
	}
	w.add(c, urls("a.example", 30)...)
	w.finish(c)
	if most != 3 {
		t.Errorf("at most %d in flight, cap 3", most)
	}
}

func Test_what_earlier_crawls_learned_is_the_pace_to_start_with(t *testing.T) {
	w := newWorld(t, Options{Knowledge: func(_ context.Context, g string) (politeness.State, error) {
		return politeness.State{Learned: 5 * time.Second, Safe: 5 * time.Second}, nil
	}})
	c := w.crawl(1)
	w.add(c, urls("a.example", 4)...)
	w.finish(c)
	w.mustKeep("a.example", 5*time.Second)
}

func Test_adding_a_node_moves_about_one_in_n_keys_and_only_to_it(t *testing.T) {
	var nodes []string
	for n := 1; n <= 9; n++ {
		nodes = append(nodes, fmt.Sprintf("node %d", n))
		if n == 1 {
			continue
		}
		const keys = 20_000
		moved := 0
		for k := range keys {
			key := fmt.Sprintf("host%d.example", k)
			was, is := Rendezvous(key, nodes[:n-1]), Rendezvous(key, nodes)
			if was != is {
				moved++
				if is != n-1 {
					t.Fatalf("%s moved between old nodes", key)
				}
			}
		}
		if want := keys / n; moved < want*9/10 || moved > want*11/10 {
			t.Errorf("node %d took %d of %d keys, want about %d", n, moved, keys, want)
		}
	}
}

func Test_the_hosts_of_a_domain_share_a_shard(t *testing.T) {
	w := newWorld(t, Options{Shards: 16})
	if w.s.shardOf("a.example.co.uk") != w.s.shardOf("b.example.co.uk:8443") {
		t.Error("two hosts of one domain are in two shards")
	}
	used := map[*shard]bool{}
	for i := range 100 {
		used[w.s.shardOf(fmt.Sprintf("site%d.example", i))] = true
	}
	if len(used) < 12 {
		t.Errorf("100 domains use only %d of 16 shards", len(used))
	}
}
