package story

import (
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
	"tiptoe/internal/webfarm/books"
)

// promise is what a host was owed: by its own robots.txt, by the settings, by
// its Retry-After.
type promise struct {
	gap time.Duration
	cap int
}

// breaches holds a host's own books against what it was owed. Every request
// counts: pages, robots.txt, sitemaps, redirects, retries.
func breaches(h books.HostBooks, owed promise, late time.Duration) (broken []string) {
	if h.MinGapMS != nil {
		if least := time.Duration(*h.MinGapMS * float64(time.Millisecond)); least < owed.gap-late {
			broken = append(broken, fmt.Sprintf("%s: two requests arrived %s apart, owed were %s", h.Host, least, owed.gap))
		}
	}
	if h.MaxInFlight > owed.cap {
		broken = append(broken, fmt.Sprintf("%s: %d in flight, at most %d allowed", h.Host, h.MaxInFlight, owed.cap))
	}
	if h.DuringBlock > 0 {
		broken = append(broken, fmt.Sprintf("%s: %d requests while Retry-After ran", h.Host, h.DuringBlock))
	}
	if h.Closed > 0 {
		broken = append(broken, fmt.Sprintf("%s: %d requests for what robots.txt closes", h.Host, h.Closed))
	}
	return broken
}

func Test_the_proof_finds_each_breach_that_is_planted(t *testing.T) {
	gap := func(d time.Duration) *float64 { ms := float64(d) / float64(time.Millisecond); return &ms }
	owed := promise{gap: 100 * time.Millisecond, cap: 2}
	good := books.HostBooks{Host: "h", MaxInFlight: 2, MinGapMS: gap(101 * time.Millisecond)}
	if b := breaches(good, owed, 5*time.Millisecond); len(b) != 0 {
		t.Errorf("a polite crawl is accused: %q", b)
	}
	for name, plant := range map[string]func(*books.HostBooks){
		"gap":       func(h *books.HostBooks) { h.MinGapMS = gap(80 * time.Millisecond) },
		"in flight": func(h *books.HostBooks) { h.MaxInFlight = 3 },
		"block":     func(h *books.HostBooks) { h.DuringBlock = 1 },
		"robots":    func(h *books.HostBooks) { h.Closed = 1 },
	} {
		bad := good
		plant(&bad)
		if b := breaches(bad, owed, 5*time.Millisecond); len(b) != 1 {
			t.Errorf("%s: found %q", name, b)
		}
	}
}

func Test_gaps_and_caps_hold_over_redirects_robots_sitemaps_retries_and_kill_9(t *testing.T) {
	t.Parallel()
	const delay = 200 * time.Millisecond
	m := startMeter(t)
	kinds := []struct {
		name string
		web  webfarm.Config
		owed promise
	}{
		{"redirects, sitemaps, closed areas, slow answers", webfarm.Config{Seed: 2, Hosts: 2, Pages: 60, Redirects: 0.3, Sitemap: true,
			ClosedLinks: true, Latency: 150 * time.Millisecond, Jitter: 100 * time.Millisecond}, promise{delay, 2}},
		{"failures", webfarm.Config{Seed: 3, Pages: 40, Errors: 0.12, Latency: 20 * time.Millisecond}, promise{delay, 2}},
		{"Crawl-delay", webfarm.Config{Seed: 4, Pages: 30, CrawlDelay: "0.4", Latency: 20 * time.Millisecond}, promise{400 * time.Millisecond, 2}},
		{"Retry-After", webfarm.Config{Seed: 5, Pages: 30, Latency: 20 * time.Millisecond,
			Rate: webfarm.RateLimit{PerSecond: 4, Burst: 3, RetryAfter: 2 * time.Second}}, promise{delay, 2}},
	}
	args := []string{"crawl", "--delay", delay.String(), "--per-host", "2"}
	var farms []*webfarm.Farm
	for _, k := range kinds {
		k.web.Placement = webfarm.Ports
		f, err := webfarm.Start(k.web)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		farms = append(farms, f)
		args = append(args, f.Seeds()...)
	}
	served := func() (requests, throttled int64) {
		for _, f := range farms {
			b := f.Books()
			requests, throttled = requests+b.Requests, throttled+b.Throttled
		}
		return
	}

	// A Retry-After that reached the crawler milliseconds before the kill may
	// be lost with it; so the kill waits until the last one is old.
	dir := t.TempDir()
	r := start(t, dir, args...)
	for _, after := range []int64{60, 140} {
		known, quiet := int64(-1), time.Time{}
		for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			n, throttled := served()
			if throttled != known {
				known, quiet = throttled, time.Now()
			}
			if n >= after && time.Since(quiet) > 300*time.Millisecond {
				break
			}
			if r.done() || time.Now().After(limit) {
				r.kill()
				t.Fatalf("ended or stood still after %d requests:\n%s", n, tail(r.said.Bytes()))
			}
		}
		r.kill()
		r = start(t, dir, "resume")
	}
	r.complete(3 * time.Minute)

	late := m.worst(0)
	t.Logf("this machine was up to %s late", late)
	var sum books.Counts
	for i, f := range farms {
		b := f.Books()
		sum.Redirects, sum.Sitemaps = sum.Redirects+b.Redirects, sum.Sitemaps+b.Sitemaps
		sum.Throttled, sum.Failed = sum.Throttled+b.Throttled, sum.Failed+b.Failed
		t.Logf("%s: %d requests, %d pages, %d redirects, %d robots, %d sitemaps, %d of 429, %d failed, least gap %.1f ms, %d in flight",
			kinds[i].name, b.Requests, b.Pages, b.Redirects, b.Robots, b.Sitemaps, b.Throttled, b.Failed, *b.MinGapMS, b.MaxInFlight)
		if b.Missing != 0 {
			t.Errorf("%s: never served: %q", kinds[i].name, f.Missing(5))
		}
		for _, h := range b.Hosts {
			for _, broken := range breaches(h, kinds[i].owed, late) {
				t.Errorf("%s: %s", kinds[i].name, broken)
			}
		}
	}
	if sum.Redirects == 0 || sum.Sitemaps == 0 || sum.Throttled == 0 || sum.Failed == 0 {
		t.Errorf("the proof has seen too little: %+v", sum)
	}
}
