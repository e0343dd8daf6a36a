package crawl

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/limits"
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

// Status takes a picture of the crawl; in a fleet, the supervisor's is of all
// that its workers do.
func (r *Run) Status() Status {
	p := r.Picture()
	if f := r.e.cfg.Fleet; f != nil {
		p.Of(f.Worker())
	}
	now := r.e.cfg.Now()
	r.mu.Lock()
	r.rate.sample(now)
	s := Status{
		At: now, Crawl: r.ID, Seeds: r.Spec.Seeds, Started: r.started, Elapsed: now.Sub(r.started),
		PagesPerSec: r.rate.perSec, StatusClasses: r.classes,
	}
	all := Tally{r.crawl.Counters, r.outcomes}
	all.Add(&r.Before)
	r.mu.Unlock()
	s.Queued = r.fc.Pending() - r.fc.Taken()
	s.InFlight = r.fc.InFlight()
	parked := r.fc.Parked()
	if sh := r.shared.Load(); sh != nil {
		all, s.StatusClasses, s.PagesPerSec = sh.Tally, sh.Classes, sh.Rate
		s.Queued, s.InFlight = max(sh.Pending-(sh.InHand-sh.InFlight), 0), sh.InFlight
		parked = sh.Parked
		for i := range sh.Pictures {
			p.add(&sh.Pictures[i])
		}
	}
	s.Counters, s.Outcomes, s.BytesPerSec, s.Uncommitted = all.Counters, all.Outcomes, p.BytesPerSec, p.Uncommitted
	s.Hosts, s.Busiest, s.Waiting, s.Waits, s.Layers = p.Counts, p.busiest(), p.longest(), waits(p.Waits), p.Layers
	s.ETA, s.ETAWhy = r.eta(&s, &p, parked)
	s.Binding = binding(&s)
	if f := r.e.cfg.Fleet; f != nil {
		s.Trouble = f.Waiting()
		s.Binding = cmp.Or(s.Trouble, s.Binding)
	}
	return s
}

// Rate is how many pages a second this process fetches lately, for all crawls.
func (e *Engine) Rate() (perSec float64) {
	for _, r := range e.allRuns() {
		perSec += r.Part().Rate
	}
	return perSec
}

// Layers of which a fleet has no sum.
const (
	layerBusiest = "in flight on the busiest host"
	layerCommit  = "commit ms"
)

// layers are the machine's, whoever uses them [SPEC §8].
func (e *Engine) layers(snap frontier.Snapshot) []Layer {
	used, limit, _ := e.tokens.state()
	robotsUsed, robotsLimit := e.sched.RobotsInFlight()
	return []Layer{
		{"workers", int64(used), int64(limit)},
		{layerBusiest, int64(snap.MostInFlight), int64(max(snap.CapThere, 1))},
		{"frontier in memory", int64(snap.Memory), int64(max(e.cfg.MemoryURLs, 1))},
		{"hosts waiting for their pace", int64(snap.Waits["pace"].Hosts), int64(max(snap.Hosts(), 1))},
		{"hosts held by the breaker or parked", int64(snap.Waits["block"].Hosts + snap.Waits["parked"].Hosts), int64(max(snap.Hosts(), 1))},
		gauge("dedupe look-ups", e.cfg.Lookups),
		{"parsers", int64(len(e.parse)), int64(cap(e.parse))},
		{"robots fetches", robotsUsed, robotsLimit},
		gauge("bytes of large bodies", e.cfg.Bodies),
		{"ready hosts", int64(snap.Heap), int64(max(e.cfg.ReadyHosts, 1))},
		{layerCommit, e.commitEWMA.Load() / 1e6, max(e.commitBound.Load(), int64(e.cfg.SlowCommit)) / 1e6},
	}
}

func gauge(name string, read func() (used, limit int64)) Layer {
	l := Layer{Name: name, Limit: 1}
	if read != nil {
		l.Used, l.Limit = read()
	}
	return l
}

// EngineView is the whole engine as metrics and operators see it.
type EngineView struct {
	Layers      []Layer
	Hosts       HostCounts
	Waiting     []WaitingFor
	InFlight    int64
	Uncommitted int64
	CommitEWMA  time.Duration
	Counts      limits.Counts
}

// WaitingFor counts the hosts that wait for one thing, and their URLs.
type WaitingFor struct {
	Reason string `json:"r"` // pace, block, robots, robots_slots, share, slots, lease, retry, concurrency, parked
	Hosts  int    `json:"h"`
	URLs   int    `json:"u"`
}

// View takes a picture of the engine.
func (e *Engine) View() EngineView {
	snap := e.sched.Snapshot(e.cfg.Now(), 1, nil)
	v := EngineView{
		Layers: e.layers(snap), Hosts: hostCounts(snap), Waiting: waits(snap.Waits), InFlight: e.sched.InFlight(), Uncommitted: e.uncommitted.Load(),
		CommitEWMA: time.Duration(e.commitEWMA.Load()), Counts: e.counts.Read(),
	}
	return v
}

func hostCounts(snap frontier.Snapshot) HostCounts {
	return HostCounts{Ready: snap.Ready, Running: snap.Running, Waiting: snap.Waiting, Parked: snap.Parked, Idle: snap.Idle}
}

// eta is the longer of what the slowest host owes and what the machine takes.
func (r *Run) eta(s *Status, p *Picture, parked int64) (time.Duration, string) {
	left := s.Queued + s.InFlight - parked
	if r.Spec.MaxURLs > 0 {
		left = min(left, r.Spec.MaxURLs-s.Processed)
	}
	if left <= 0 || s.Elapsed < 3*time.Second {
		return 0, ""
	}
	var machine time.Duration
	if s.PagesPerSec > 0.01 {
		machine = time.Duration(float64(left) / s.PagesPerSec * float64(time.Second))
	}
	if p.Counts.Ready+p.Counts.Running == 0 && p.Soonest.After(s.At) { // nobody may go on before
		machine += p.Soonest.Sub(s.At)
	}
	if r.Spec.MaxURLs > 0 || p.SlowestFor == 0 {
		return machine, fmt.Sprintf("%d URLs at %.1f a second", left, s.PagesPerSec)
	}
	return p.SlowestFor, p.Slowest
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
		Gap: v.Gap, Learned: v.Clocks.Learned, Until: v.Until, Reason: v.Reason, Recent: math.Round(v.Rate*1000) / 1000, HTTP429: v.Clocks.Throttles,
	}
}
