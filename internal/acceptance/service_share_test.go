package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// halves is a site of which each of two tenants crawls a half.
func halves(t *testing.T, pages int) *arrivals {
	return newArrivals(t, 0, func(w http.ResponseWriter, r *http.Request) bool {
		half, page, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if half != "a" && half != "b" {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>%s</title>", r.URL.Path)
		for i := range pages {
			if page == "" {
				fmt.Fprintf(w, `<a href="/%s/%d">%[2]d</a>`, half, i)
			}
		}
		return true
	})
}

func Test_DOM_1_two_tenants_jobs_on_one_host_share_its_pace_and_take_turns(t *testing.T) {
	t.Parallel()
	const gap, pages = 60 * time.Millisecond, 30
	site := halves(t, pages)
	dir := newDir(t)
	s := serve(t, dir, "MAX_CONCURRENT_CRAWLS=2")
	ann, bob := s.tenant("ann", "enterprise", 1), s.tenant("bob", "enterprise", 1)
	order := func(c caller, half string) string {
		return c.order(fields{"url": site.URL + half, "include": []string{half}, "delay_ms": gap.Milliseconds(), "per_host": 8, "seeding": "none"}).ID
	}
	a, b := order(ann, "/a/"), order(bob, "/b/")
	one, two := ann.ended(a, 30*time.Second), bob.ended(b, 30*time.Second)
	if said(one) != "completed true" || said(two) != "completed true" || one.Pages.Spent != pages+1 || two.Pages.Spent != pages+1 {
		t.Fatalf("%d and %d pages: %s, %s", one.Pages.Spent, two.Pages.Spent, said(one), said(two))
	}

	// The pace, by when the requests were written to the wire.
	var starts []time.Time
	l := openLedger(t, dir)
	for crawl := range int64(2) {
		for r, err := range l.Requests(context.Background(), crawl+1) {
			if err != nil {
				t.Fatal(err)
			}
			starts = append(starts, r.Started)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	least := time.Hour
	for i := range starts[1:] {
		least = min(least, starts[i+1].Sub(starts[i]))
	}
	t.Logf("%d requests of two jobs, smallest gap %s of %s", len(starts), least, gap)
	if least < gap || len(starts) != len(site.list) {
		t.Errorf("two starts within %s; %s is the least; %d of %d requests are in the ledger", least, gap, len(starts), len(site.list))
	}

	// Turns: while both have work, neither has three in a row.
	turns := ""
	for _, r := range site.list {
		if half := strings.TrimPrefix(r.path, "/"); strings.HasPrefix(half, "a/") || strings.HasPrefix(half, "b/") {
			turns += half[:1]
		}
	}
	t.Logf("turns: %s", turns)
	middle := turns[2 : len(turns)-2]
	if strings.Contains(middle, "aaa") || strings.Contains(middle, "bbb") {
		t.Errorf("they did not take turns: %s", turns)
	}
}

// Both tenants have more to fetch than the few workers can: who has three
// times the weight gets three times the pages.
func Test_few_workers_are_shared_by_weight(t *testing.T) {
	t.Parallel()
	light := newFarm(t, webfarm.Config{Seed: 8, Pages: 20_000, Latency: 20 * time.Millisecond, Jitter: 80 * time.Millisecond, NoRobots: true})
	heavy := newFarm(t, webfarm.Config{Seed: 9, Pages: 20_000, Latency: 20 * time.Millisecond, Jitter: 80 * time.Millisecond, NoRobots: true})
	s := serve(t, newDir(t), "MAX_CONCURRENT_CRAWLS=2", "MAX_PAGES_PER_CRAWL=0", "--workers", "16")
	ann, bob := s.tenant("ann", "enterprise", 1), s.tenant("bob", "enterprise", 3)
	a := ann.order(hurry(light.Seeds()[0], fields{"pages": 20_000}))
	b := bob.order(hurry(heavy.Seeds()[0], fields{"pages": 20_000}))
	s.until(20*time.Second, "both run", func() bool { return asked(light) > 50 && asked(heavy) > 50 })
	x, y := asked(light), asked(heavy)
	s.until(30*time.Second, "some hundred pages more", func() bool { return asked(light)+asked(heavy) > x+y+1000 })
	x, y = asked(light)-x, asked(heavy)-y
	t.Logf("weight 1: %d pages, weight 3: %d pages", x, y)
	if ratio := float64(y) / float64(x); ratio < 2.4 || ratio > 3.6 {
		t.Errorf("%.2f times as many for three times the weight", ratio)
	}
	ann.must("POST", "/v1/jobs/"+a.ID+"/cancel", nil, nil)
	bob.must("POST", "/v1/jobs/"+b.ID+"/cancel", nil, nil)
	if j := ann.job(a.ID); j.Status != "cancelled" || j.Pages.Spent < 50 {
		t.Errorf("%d pages, %s", j.Pages.Spent, said(j))
	}
	if u := ann.usage(); u.Used != ann.job(a.ID).Pages.Spent || u.Reserved != 0 {
		t.Errorf("%+v", u)
	}
}
