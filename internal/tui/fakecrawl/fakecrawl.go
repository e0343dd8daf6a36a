// Package fakecrawl answers: what would a crawl look like after so long?
//
// It makes up the statuses and page events of a crawl of the demo hosts, as a
// pure function of the elapsed time: no network, no clock, the same picture
// for the same time. The tests of the views draw it into golden files, the
// picture in the docs is drawn from it, and the tuidemo command plays it in a
// real terminal. It is a test room: production code does not import it.
package fakecrawl

import (
	"fmt"
	"math"
	"sort"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// host is one made-up site: how large it is and what limits its pace.
type host struct {
	name    string
	urls    float64       // in the end
	rate    float64       // requests a second once it runs
	gap     time.Duration // effective
	learned time.Duration
	size    float64 // bytes a page
	ms      float64
	paths   []string
	cycle   float64 // seconds between two Retry-After blocks; 0: none
	block   float64 // seconds a block lasts
	reason  string
	parked  bool
}

var hosts = []host{
	{name: "shop.demo.test", urls: 1260, rate: 2.9, gap: 340 * time.Millisecond, size: 24_000, ms: 48,
		paths: []string{"/p/oak-table-%d", "/c/chairs?page=%d", "/p/lamp-%d"}},
	{name: "blog.demo.test", urls: 340, rate: 2.7, gap: 370 * time.Millisecond, size: 15_500, ms: 35,
		paths: []string{"/2026/03/post-%d", "/tag/moss/%d", "/old/%d"}},
	{name: "slow.demo.test", urls: 90, rate: 0.6, gap: 350 * time.Millisecond, size: 9_000, ms: 3100,
		paths: []string{"/report/%d"}},
	{name: "flaky.demo.test", urls: 160, rate: 1.9, gap: 410 * time.Millisecond, size: 7_000, ms: 90,
		paths: []string{"/item/%d", "/cart/%d"}},
	{name: "limited.demo.test", urls: 420, rate: 0.9, gap: 3 * time.Second, learned: 3 * time.Second, size: 11_000, ms: 60,
		paths: []string{"/api/list/%d"}, cycle: 50, block: 30, reason: "Retry-After: 30 s after 429"},
	{name: "delay.demo.test", urls: 64, rate: 0.2, gap: 5 * time.Second, size: 12_000, ms: 40,
		paths: []string{"/docs/%d"}, cycle: 5, block: 4.5, reason: "Crawl-delay: 5 s (robots.txt)"},
	{name: "broken.demo.test", urls: 18, rate: 0, parked: true,
		paths: []string{"/%d"}, reason: "10 failures in a row (connection refused)"},
}

// seconds since the start at which host h is blocked until, or 0.
func (h host) blockedUntil(t float64) float64 {
	if h.cycle == 0 {
		return 0
	}
	into := math.Mod(t, h.cycle)
	if into < h.cycle-h.block {
		return 0
	}
	return t - into + h.cycle
}

// done is the number of pages fetched after t seconds.
func (h host) done(t float64) float64 {
	ends := h.rate * t
	if h.cycle > 0 && h.cycle > 10 {
		ends = h.rate * (math.Floor(t/h.cycle)*(h.cycle-h.block) + math.Min(math.Mod(t, h.cycle), h.cycle-h.block))
	}
	return math.Floor(math.Min(ends, h.found(t)))
}

// found is the number of URLs known after t seconds.
func (h host) found(t float64) float64 { return math.Floor(h.urls * (1 - math.Exp(-t/40))) }

// Status is the picture after elapsed.
func Status(start time.Time, elapsed time.Duration) crawl.Status {
	t := elapsed.Seconds()
	st := crawl.Status{
		At: start.Add(elapsed), Crawl: 1, Started: start, Elapsed: elapsed,
		Seeds:    []string{"https://shop.demo.test/", "https://blog.demo.test/", "https://slow.demo.test/", "https://limited.demo.test/", "https://delay.demo.test/", "https://flaky.demo.test/", "https://broken.demo.test/"},
		Outcomes: map[outcome.Outcome]int64{},
		Layers:   []crawl.Layer{{Name: "workers", Limit: 512}},
	}
	var worst time.Duration
	for _, h := range hosts {
		done, recent := h.done(t), (h.done(t)-h.done(math.Max(0, t-5)))/5
		queued := int64(h.found(t) - done)
		hs := crawl.HostStatus{Host: h.name, Queued: queued, Cap: 2, Gap: h.gap, Learned: h.learned, Recent: recent}
		st.Processed += int64(done)
		st.Bytes += int64(done * h.size)
		st.Queued += queued
		st.PagesPerSec += recent
		st.BytesPerSec += recent * h.size
		until := h.blockedUntil(t)
		switch {
		case h.parked:
			hs.State, hs.Reason = "parked", h.reason
			st.Hosts.Parked++
			st.StatusClasses[0] += 10
			st.Waiting = append(st.Waiting, hs)
		case queued == 0:
			hs.State = "idle"
			st.Hosts.Idle++
		case until > 0:
			hs.State, hs.Reason = "waiting", h.reason
			hs.Until = start.Add(time.Duration(until * float64(time.Second)))
			st.Hosts.Waiting++
			st.Waiting = append(st.Waiting, hs)
		case math.Mod(t*h.rate, 1) < 0.6:
			hs.State, hs.InFlight = "running", 1+int(t*h.rate)%2
			st.Hosts.Running++
		default:
			hs.State = "ready"
			st.Hosts.Ready++
		}
		if h.name == "limited.demo.test" {
			hs.HTTP429 = int64(t / 12)
			st.HTTP429 += hs.HTTP429
		}
		st.InFlight += int64(hs.InFlight)
		if !h.parked && recent > 0 {
			st.Busiest = append(st.Busiest, hs)
			if left := time.Duration(float64(queued) / h.rate * float64(time.Second)); left > worst {
				worst = left
				st.ETA = left
				st.ETAWhy = fmt.Sprintf("%s: %d URLs, one every %.0f ms", h.name, queued, 1000/h.rate)
			}
		}
	}
	sort.SliceStable(st.Busiest, func(i, j int) bool { return st.Busiest[i].Recent > st.Busiest[j].Recent })
	sort.SliceStable(st.Waiting, func(i, j int) bool { return st.Waiting[i].Queued > st.Waiting[j].Queued })
	st.StatusClasses[4] = st.Processed/31 + st.HTTP429
	st.StatusClasses[3] = st.Processed / 17
	st.StatusClasses[5] = st.Processed / 57
	st.StatusClasses[2] = st.Processed - st.Processed/31 - st.StatusClasses[3] - st.StatusClasses[5]
	st.Requests = st.Processed + st.HTTP429 + 17
	st.Binding = "61 % of waiting URLs are on limited.demo.test, blocked by Retry-After"
	return st
}

// Pages are the page events that ended in (from, to].
func Pages(start time.Time, from, to time.Duration) []crawl.PageEvent {
	var out []crawl.PageEvent
	for _, h := range hosts {
		a, b := h.done(from.Seconds()), h.done(to.Seconds())
		for i := a; i < b; i++ {
			n := int(i)
			share := (i - a + 0.5) / (b - a)
			at := from + time.Duration(share*float64(to-from))
			ev := crawl.PageEvent{
				At: start.Add(at), Outcome: outcome.OK.String(), Status: 200, ContentType: "text/html", Links: 40, Tries: 1,
				URL:   "https://" + h.name + fmt.Sprintf(h.paths[n%len(h.paths)], n+1),
				Bytes: int64(h.size * (0.6 + float64(n%7)/9)), Millis: h.ms * (0.7 + float64(n%5)/6),
			}
			switch {
			case n%57 == 12:
				ev.Outcome, ev.Status, ev.Bytes, ev.Error = outcome.ServerError.String(), 502, 311, "502 Bad Gateway"
			case n%31 == 7:
				ev.Outcome, ev.Status, ev.Bytes = outcome.NotFound.String(), 404, 1_812
			case n%17 == 5:
				ev.Outcome, ev.Status, ev.Bytes = outcome.Redirect.String(), 301, 0
				ev.RedirectTo = "https://" + h.name + "/"
			case h.cycle > 10 && n%9 == 4:
				ev.Outcome, ev.Status, ev.Bytes, ev.Error = outcome.Throttled.String(), 429, 96, "Retry-After: 30"
			}
			out = append(out, ev)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}

// Summary is the end after elapsed.
func Summary(start time.Time, elapsed time.Duration) crawl.Summary {
	st := Status(start, elapsed)
	c := st.Counters
	c.Failed = st.StatusClasses[4] + st.StatusClasses[5] - c.HTTP429
	c.Successful = c.Processed - c.Failed
	c.Skipped, c.Blocked, c.Retries = 87, 23, c.HTTP429+4
	return crawl.Summary{
		Crawl: 1, Status: ledger.Partial, Reason: "Stopped by Ctrl+C", Counters: c,
		Remaining: st.Queued, ParkedURLs: 18, Duration: elapsed, DataDir: "tiptoe-data",
	}
}
