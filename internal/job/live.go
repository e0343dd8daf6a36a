package job

import (
	"context"
	"sync"
	"time"

	"tiptoe/internal/crawl"
)

// picture keeps the job's status of this second.
func (a *active) picture(st crawl.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.has = st, true
	a.series.add(&st)
}

// Live is a running job's picture of its own crawl, a second old at most, or
// what the server that drives it last showed.
func (s *Service) Live(ctx context.Context, id string) (crawl.Status, bool) {
	a := s.driven(id)
	if a == nil {
		return s.glimpse(ctx, id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.has && a.run != nil {
		a.status, a.has = a.run.Status(), true
	}
	return a.status, a.has
}

// Point is a step of a job's story in numbers.
type Point struct {
	At             time.Time `json:"at"`
	PagesPerSecond float64   `json:"pages_per_second"`
	Classes        [6]int64  `json:"classes"` // answers in the step: none, 1xx ... 5xx
	HTTP429        int64     `json:"http_429"`
	Queued         int64     `json:"queued"`
	InFlight       int64     `json:"in_flight"`
}

// seriesMost bounds the points of a job; then every two become one.
const seriesMost = 600

// series samples a job once a second, and less often the longer it runs.
type series struct {
	points []Point
	every  int // samples a point
	n      int // samples in the last point
	pages  int64
	last   crawl.Status
	from   time.Time
}

// begin says where the counters stand: a job that goes on does not begin at
// zero, and what it did earlier belongs to no point.
func (s *series) begin(st crawl.Status) { s.every, s.last = 1, st }

func (s *series) add(st *crawl.Status) {
	if s.n == 0 {
		if len(s.points) == seriesMost {
			s.halve()
		}
		s.points = append(s.points, Point{})
		s.pages, s.from = 0, s.last.At
	}
	p := &s.points[len(s.points)-1]
	p.At, p.Queued, p.InFlight = st.At, st.Queued, st.InFlight
	for i := range p.Classes {
		p.Classes[i] += st.StatusClasses[i] - s.last.StatusClasses[i]
	}
	p.HTTP429 += st.HTTP429 - s.last.HTTP429
	s.pages += st.Processed - s.last.Processed
	if d := st.At.Sub(s.from).Seconds(); d > 0 {
		p.PagesPerSecond = float64(s.pages) / d
	}
	s.last = *st
	if s.n++; s.n == s.every {
		s.n = 0
	}
}

// halve makes one point of every two; seriesMost is even.
func (s *series) halve() {
	half := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		a, b := s.points[i], s.points[i+1]
		b.PagesPerSecond = (a.PagesPerSecond + b.PagesPerSecond) / 2
		b.HTTP429 += a.HTTP429
		for c := range b.Classes {
			b.Classes[c] += a.Classes[c]
		}
		half = append(half, b)
	}
	s.points, s.every = half, s.every*2
}

// Series is a running job's story in numbers.
func (s *Service) Series(id string) ([]Point, bool) {
	a := s.driven(id)
	if a == nil {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Point(nil), a.series.points...), true
}

// stallWatch notices that nothing happens any more.
type stallWatch struct {
	since    time.Time
	requests int64
	said     bool
}

// look says, once a stall, what a job waits for that has made no request for
// stallAfter.
func (w *stallWatch) look(st *crawl.Status) (text string, stalled bool) {
	if st.Requests != w.requests || st.InFlight > 0 || st.Queued == 0 {
		w.requests, w.since, w.said = st.Requests, st.At, false
		return "", false
	}
	if w.said || st.At.Sub(w.since) < stallAfter {
		return "", false
	}
	w.said = true
	if st.Binding == "" {
		return "nothing can be fetched right now", true
	}
	return st.Binding, true
}

// watchers are told that a job has moved.
type watchers struct {
	mu  sync.Mutex
	all map[string]map[chan struct{}]bool
}

// Watch returns a channel that fires after each change of a job; several
// changes may be one. stop ends it.
func (s *Service) Watch(id string) (changed <-chan struct{}, stop func()) {
	w := &s.watch
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[string]map[chan struct{}]bool)
	}
	if w.all[id] == nil {
		w.all[id] = make(map[chan struct{}]bool)
	}
	w.all[id][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all[id], ch)
		if len(w.all[id]) == 0 {
			delete(w.all, id)
		}
	}
}

func (w *watchers) notify(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.all[id] {
		poke(ch)
	}
}
