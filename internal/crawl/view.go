package crawl

import (
	"fmt"
	"maps"
	"time"

	"tiptoe/internal/frontier"
)

// rate smooths pages and bytes a second over the last few seconds.
type rate struct {
	pages, bytes int64 // since at
	at           time.Time
	perSec, bps  float64
}

// sample folds what came since the last look into the smoothed rates.
func (r *rate) sample(now time.Time) {
	if r.at.IsZero() {
		r.at = now
		return
	}
	d := now.Sub(r.at).Seconds()
	if d < 0.2 {
		return
	}
	k := min(d/3, 1)
	r.perSec += (float64(r.pages)/d - r.perSec) * k
	r.bps += (float64(r.bytes)/d - r.bps) * k
	r.pages, r.bytes, r.at = 0, 0, now
}

// Status takes a picture of the crawl.
func (r *Run) Status() Status {
	now := r.e.cfg.Now()
	snap := r.e.sched.Snapshot(now, 8)
	used, limit, _ := r.e.tokens.state()
	robotsUsed, robotsLimit := r.e.sched.RobotsInFlight()

	r.mu.Lock()
	r.rate.sample(now)
	s := Status{
		At: now, Crawl: r.ID, Seeds: r.Spec.Seeds, Started: r.started, Elapsed: now.Sub(r.started),
		Counters: r.crawl.Counters, PagesPerSec: r.rate.perSec, BytesPerSec: r.rate.bps,
		StatusClasses: r.classes, Outcomes: maps.Clone(r.outcomes),
	}
	r.mu.Unlock()

	s.Queued = r.fc.Pending() - r.fc.Taken()
	s.InFlight = r.e.sched.InFlight()
	s.Uncommitted = r.e.uncommitted.Load()
	s.Hosts = HostCounts{Ready: snap.Ready, Running: snap.Running, Waiting: snap.Waiting, Parked: snap.Parked, Idle: snap.Idle}
	for _, v := range snap.Busiest {
		s.Busiest = append(s.Busiest, hostStatus(v))
	}
	for _, v := range snap.Longest {
		s.Waiting = append(s.Waiting, hostStatus(v))
	}
	s.ETA, s.ETAWhy = r.eta(&s, snap)
	s.Binding = binding(&s)
	s.Layers = []Layer{
		{"workers", int64(used), int64(limit)},
		{"frontier in memory", int64(snap.Memory), int64(max(r.e.cfg.MemoryURLs, 1))},
		{"ready hosts", int64(snap.Heap), int64(max(r.e.cfg.ReadyHosts, 1))},
		{"parsers", int64(len(r.e.parse)), int64(cap(r.e.parse))},
		{"robots fetches", robotsUsed, robotsLimit},
		{"commit ms", r.e.commitEWMA.Load() / 1e6, r.e.cfg.SlowCommit.Milliseconds()},
	}
	return s
}

// eta is the longer of what the slowest host owes and what the machine takes.
func (r *Run) eta(s *Status, snap frontier.Snapshot) (time.Duration, string) {
	left := s.Queued + s.InFlight - r.fc.Parked()
	if r.Spec.MaxURLs > 0 {
		left = min(left, r.Spec.MaxURLs-s.Processed)
	}
	if left <= 0 || s.Elapsed < 3*time.Second {
		return 0, ""
	}
	polite, why := snap.LastFor, ""
	if polite > 0 {
		v := snap.Last
		why = fmt.Sprintf("%s: %d URLs, one every %s", v.Group, v.Waiting, v.Gap.Round(time.Millisecond))
	}
	var machine time.Duration
	if s.PagesPerSec > 0.01 {
		machine = time.Duration(float64(left) / s.PagesPerSec * float64(time.Second))
	}
	if r.Spec.MaxURLs > 0 || polite == 0 {
		return machine, fmt.Sprintf("%d URLs at %.1f a second", left, s.PagesPerSec)
	}
	return polite, why
}

// binding says what most of the waiting work waits for.
func binding(s *Status) string {
	var total, shown int64
	total = s.Queued
	if total <= 0 || len(s.Waiting) == 0 {
		return ""
	}
	n := 0
	for _, h := range s.Waiting {
		if n == 3 {
			break
		}
		shown += h.Queued
		n++
	}
	top := s.Waiting[0]
	text := fmt.Sprintf("%d %% of waiting URLs are on %d hosts", min(100, shown*100/total), n)
	if n == 1 {
		text = fmt.Sprintf("%d %% of waiting URLs are on 1 host", min(100, shown*100/total))
	}
	switch {
	case top.Reason != "" && !top.Until.IsZero():
		text += fmt.Sprintf("; %s %s until %s", top.Host, top.Reason, top.Until.Local().Format("15:04:05"))
	case top.Reason != "":
		text += fmt.Sprintf("; %s: %s", top.Host, top.Reason)
	}
	return text
}

func hostStatus(v frontier.HostView) HostStatus {
	return HostStatus{
		Host: v.Group, State: v.State, Queued: int64(v.Waiting), InFlight: v.InFlight, Cap: v.Cap,
		Gap: v.Gap, Learned: v.Clocks.Learned, Until: v.Until, Reason: v.Reason, Recent: v.Rate, HTTP429: v.Clocks.Throttles,
	}
}
