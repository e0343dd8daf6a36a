package sim

import "time"

// Plan is one host made by hand.
type Plan struct {
	Name       string
	Pages      int
	Latency    time.Duration
	CrawlDelay time.Duration
	Limit      time.Duration    // answers 429 to requests closer together than this
	RetryAfter time.Duration    // sent with 429
	Down       [2]time.Duration // cannot be reached between these two, from the start
}

// Arrival is a line in a host's own book.
type Arrival struct {
	At     time.Duration // since the simulation's start
	Path   string
	Status int // 0: the connection failed
}

func (w *world) plan(p Plan, start time.Time) {
	h := &host{name: p.Name, pages: p.Pages, latency: p.Latency, delay: p.CrawlDelay, limit: p.Limit, after: p.RetryAfter,
		minGap: time.Hour, arrivals: []Arrival{}}
	if p.Down[1] > 0 {
		h.down = [2]time.Time{start.Add(p.Down[0]), start.Add(p.Down[1])}
	}
	w.hosts[p.Name] = h
	w.names = append(w.names, p.Name)
}
