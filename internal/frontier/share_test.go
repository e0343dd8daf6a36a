package frontier

import (
	"fmt"
	"testing"
	"time"
)

// crowd is tenants that each want more workers than there are: so many hosts of
// slow pages each, one request at a time.
type crowd struct {
	*world
	crawls []*Crawl
	pages  map[CrawlID]int           // answered or under way
	held   map[CrawlID]time.Duration // worker time
	now    map[CrawlID]int
	most   map[CrawlID]int
}

func newCrowd(t *testing.T, shards, workers int, weights []int, took func(CrawlID) time.Duration) *crowd {
	t.Helper()
	c := &crowd{world: newWorld(t, Options{Shards: shards}), held: map[CrawlID]time.Duration{},
		pages: map[CrawlID]int{}, now: map[CrawlID]int{}, most: map[CrawlID]int{}}
	c.workers = workers
	shares := NewShares(workers)
	for i, weight := range weights {
		c.crawls = append(c.crawls, c.crawl(CrawlID(i+1), pace(0), func(c *Crawl) {
			c.Share, c.IgnoreRobots, c.Rules.PerHost = shares.Open(weight), true, 1
		}))
	}
	c.serve = func(h *hit) reply {
		d := took(h.crawl)
		c.pages[h.crawl]++
		c.held[h.crawl] += d
		c.now[h.crawl]++
		c.most[h.crawl] = max(c.most[h.crawl], c.now[h.crawl])
		c.after(d, func() { c.now[h.crawl]-- })
		return reply{took: d}
	}
	return c
}

// fill gives a crawl hosts with pages.
func (c *crowd) fill(i, hosts, pages int) {
	for n := range hosts {
		c.add(c.crawls[i], urls(fmt.Sprintf("c%d-%d.example", i, n), pages)...)
	}
}

func (c *crowd) forget() { clear(c.pages); clear(c.held); clear(c.most) }

// mustShare demands that each crawl has its part of something within a tenth of
// what is its due.
func mustShare[N int | time.Duration](t *testing.T, what string, got map[CrawlID]N, weights []int) {
	t.Helper()
	all, sum := 0.0, 0
	for i, w := range weights {
		all += float64(got[CrawlID(i+1)])
		sum += w
	}
	for i, w := range weights {
		want, have := float64(w)/float64(sum), float64(got[CrawlID(i+1)])/all
		if have < want*0.9 || have > want*1.1 {
			t.Errorf("%s, weights %d: crawl %d had %.3f, its due is %.3f (%v)", what, weights, i+1, have, want, got)
		}
	}
}

func Test_tenants_that_want_more_workers_than_there_are_share_them_by_weight_few_or_many_and_in_step(t *testing.T) {
	second := func(CrawlID) time.Duration { return time.Second }
	for _, weights := range [][]int{{1, 1}, {1, 3}, {3, 1}, {1, 2, 5}} {
		for _, workers := range []int{2, 4, 8, 16} {
			for _, how := range []struct {
				shards int
				inStep bool
			}{{1, false}, {1, true}, {2, false}, {2, true}} {
				c := newCrowd(t, how.shards, workers, weights, second)
				c.inStep = how.inStep
				for i := range weights {
					c.fill(i, 20, 6)
				}
				rounds := 80 / workers
				c.runFor(time.Duration(rounds) * time.Second)
				mustShare(t, fmt.Sprintf("%d workers, %+v", workers, how), c.pages, weights)
				total := 0
				for _, n := range c.pages {
					total += n
				}
				if total < workers*rounds {
					t.Errorf("%d workers, %+v: somebody had nothing to do: %d pages in %d s", workers, how, total, rounds)
				}
			}
		}
	}
}

func Test_tenants_whose_hosts_are_in_different_shards_share_the_workers_by_weight_and_leave_none_idle(t *testing.T) {
	for _, weights := range [][]int{{1, 3}, {3, 1}, {2, 2}} {
		for _, inStep := range []bool{false, true} {
			c := newCrowd(t, 2, 8, weights, func(CrawlID) time.Duration { return time.Second })
			c.inStep = inStep
			for n := range 60 {
				host := fmt.Sprintf("h%d.example", n)
				c.add(c.crawls[c.s.shardOf(host).ix], urls(host, 10)...)
			}
			c.runFor(30 * time.Second)
			mustShare(t, fmt.Sprintf("in step: %v", inStep), c.pages, weights)
			if n := c.pages[1] + c.pages[2]; n < 240 {
				t.Errorf("in step: %v, weights %d: 8 workers made %d requests in 30 s", inStep, weights, n)
			}
		}
	}
}

func Test_a_tenant_whose_hosts_are_slow_has_its_share_of_the_workers_not_of_the_pages(t *testing.T) {
	c := newCrowd(t, 2, 8, []int{1, 1}, func(id CrawlID) time.Duration {
		if id == 1 {
			return 2 * time.Second
		}
		return 100 * time.Millisecond
	})
	c.fill(0, 20, 10)
	c.fill(1, 20, 60)
	c.runFor(4 * time.Second)
	c.forget()
	c.runFor(16 * time.Second)
	mustShare(t, "slow beside quick", c.held, []int{1, 1})
}

func Test_a_tenant_alone_has_every_worker_and_hands_them_over_when_another_comes(t *testing.T) {
	weights := []int{1, 4}
	c := newCrowd(t, 2, 20, weights, func(CrawlID) time.Duration { return time.Second })
	c.fill(0, 60, 10)
	c.runFor(10 * time.Second)
	if c.most[1] != 20 || c.pages[1] < 200 {
		t.Fatalf("alone, a tenant had %d of 20 workers and %d pages", c.most[1], c.pages[1])
	}
	c.fill(1, 60, 8)
	c.runFor(4 * time.Second) // what was in flight ends, and is made up for
	c.forget()
	c.runFor(15 * time.Second)
	mustShare(t, "after it came", c.pages, weights)

	// Neither is forgotten, and who is left has everything again.
	c.run()
	for _, cr := range c.crawls {
		if !cr.Exhausted() {
			t.Errorf("crawl %d has %d left", cr.ID, cr.Pending())
		}
	}
}

func Test_a_tenant_that_could_not_use_its_turns_may_make_up_for_few_of_them(t *testing.T) {
	c := newCrowd(t, 2, 4, []int{1, 1}, func(CrawlID) time.Duration { return time.Second })
	c.fill(0, 20, 50)
	c.fill(1, 1, 40) // one request at a time, half of its share
	c.runFor(20 * time.Second)
	if c.pages[2] < 19 {
		t.Errorf("who has work for one worker had %d pages in 20 s", c.pages[2])
	}
	for n := range 20 {
		c.add(c.crawls[1], urls(fmt.Sprintf("late%d.example", n), 10)...)
	}
	c.forget()
	c.runFor(10 * time.Second)
	if got := c.pages[1]; got < 10 {
		t.Errorf("beside one that made up for what it had missed the other had %d of 40 pages", got)
	}
	c.forget()
	c.runFor(10 * time.Second)
	mustShare(t, "then", c.pages, []int{1, 1})
}

func Test_a_crawl_without_a_delay_waits_for_the_pace_of_a_crawl_with_one(t *testing.T) {
	w := newWorld(t, Options{})
	fast, slow := w.crawl(1, pace(0)), w.crawl(2, pace(2*time.Second))
	w.wire = 300 * time.Millisecond // a slow dial
	w.add(fast, urls("a.example", 10)...)
	w.add(slow, urls("a.example", 10)...)
	w.run()
	if !fast.Exhausted() || !slow.Exhausted() {
		t.Fatal("not finished")
	}
	last := map[CrawlID]time.Time{}
	hits := w.all("a.example")
	for i, h := range hits[1:] {
		if d := h.at.Sub(hits[i].at); d < 2*time.Second && w.pendingAt(hits, i) {
			t.Fatalf("request %d came %s after the one before", i+1, d)
		}
		last[h.crawl] = h.at
	}
	if len(last) != 2 {
		t.Fatal(last)
	}
}

// pendingAt reports whether the slow crawl still had pages to come behind i.
func (w *world) pendingAt(hits []*hit, i int) bool {
	for _, h := range hits[i+1:] {
		if h.crawl == 2 && !h.robots {
			return true
		}
	}
	return false
}

func Test_a_crawl_has_no_more_requests_in_flight_than_its_slots_over_all_hosts_and_shards(t *testing.T) {
	for _, limit := range []int64{1, 3, 20} {
		w := newWorld(t, Options{Shards: 3})
		c := w.crawl(1, pace(0), func(c *Crawl) { c.Slots = NewSlots(limit) }) // robots.txt counts too
		other := w.crawl(2, pace(0))
		now, most, others, mostOthers := 0, 0, 0, 0
		w.serve = func(h *hit) reply {
			n, m := &now, &most
			if h.crawl == 2 {
				n, m = &others, &mostOthers
			}
			*n++
			*m = max(*m, *n)
			w.after(time.Second, func() { *n-- })
			return reply{took: time.Second}
		}
		for i := range 30 {
			w.add(c, urls(fmt.Sprintf("a%d.example", i), 3)...)
			w.add(other, urls(fmt.Sprintf("b%d.example", i), 3)...)
		}
		w.run()
		if int64(most) != limit {
			t.Errorf("%d requests in flight at once, %d may be", most, limit)
		}
		if mostOthers < 30 {
			t.Errorf("beside it a crawl without a bound had %d in flight", mostOthers)
		}
		if !c.Exhausted() || !other.Exhausted() {
			t.Errorf("%d and %d URLs are left", c.Pending(), other.Pending())
		}
	}
}

func Test_slots_that_are_taken_away_come_back_and_wake_who_waits(t *testing.T) {
	w := newWorld(t, Options{Shards: 2})
	c := w.crawl(1, pace(0), func(c *Crawl) { c.Slots = NewSlots(0) })
	w.serve = func(*hit) reply { return reply{took: time.Second} }
	for i := range 10 {
		w.add(c, urls(fmt.Sprintf("a%d.example", i), 2)...)
	}
	w.runFor(time.Minute)
	if len(w.hits) != 0 {
		t.Fatalf("%d requests without a slot", len(w.hits))
	}
	if n := w.s.Snapshot(w.now, 1, nil).Waits["slots"].Hosts; n != 10 {
		t.Errorf("%d hosts wait for a slot of their crawl", n)
	}
	w.s.SetSlots(c, 2)
	w.run()
	if !c.Exhausted() {
		t.Errorf("%d URLs are left", c.Pending())
	}
}
