package frontier

import (
	"fmt"
	"testing"
	"time"
)

// crowd is two tenants that each want more workers than there are: 100 hosts
// of ten slow pages each, and twenty workers.
func crowd(t *testing.T, weightA, weightB int) (w *world, perTenant map[CrawlID]int, most map[CrawlID]int) {
	t.Helper()
	w = newWorld(t, Options{Shards: 2})
	shares := NewShares(20)
	open := func(id CrawlID, weight int) *Crawl {
		return w.crawl(id, pace(0), func(c *Crawl) { c.Share, c.IgnoreRobots, c.Rules.PerHost = shares.Open(weight), true, 1 })
	}
	a, b := open(1, weightA), open(2, weightB)
	perTenant, most = map[CrawlID]int{}, map[CrawlID]int{}
	now := map[CrawlID]int{}
	w.serve = func(h *hit) reply {
		perTenant[h.crawl]++
		now[h.crawl]++
		most[h.crawl] = max(most[h.crawl], now[h.crawl])
		w.after(time.Second, func() { now[h.crawl]-- })
		return reply{took: time.Second}
	}
	for i := range 100 {
		w.add(a, urls(fmt.Sprintf("a%d.example", i), 10)...)
	}
	w.runFor(20 * time.Second) // a is alone for a while, and may have everything
	if most[1] < 19 {
		t.Fatalf("alone, a tenant had %d of 20 workers", most[1])
	}
	for i := range 100 {
		w.add(b, urls(fmt.Sprintf("b%d.example", i), 10)...)
	}
	clear(perTenant)
	w.runFor(30 * time.Second)
	return w, perTenant, most
}

func Test_tenants_that_want_more_workers_than_there_are_share_them_by_weight(t *testing.T) {
	for _, tc := range []struct{ a, b int }{{1, 1}, {3, 1}, {1, 4}} {
		w, got, most := crowd(t, tc.a, tc.b)
		want := float64(tc.a) / float64(tc.a+tc.b)
		share := float64(got[1]) / float64(got[1]+got[2])
		if share < want-0.12 || share > want+0.12 {
			t.Errorf("weights %d:%d: %d and %d requests, a share of %.2f", tc.a, tc.b, got[1], got[2], share)
		}
		if most[1] > 20 || most[2] > 20 {
			t.Errorf("%v workers at once, there are 20", most)
		}
		w.run() // and nobody is forgotten
		for id := range got {
			if c := w.s.crawl(id); !c.Exhausted() {
				t.Errorf("crawl %d has %d left", id, c.Pending())
			}
		}
	}
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
