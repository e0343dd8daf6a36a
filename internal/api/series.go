package api

import (
	"context"
	"sync"
	"time"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
)

// Series is a job over time.
type Series struct {
	Step   float64 `json:"step_seconds" doc:"Between points, about."`
	Points []Point `json:"points" nullable:"false"`
}

// Point is what happened since the point before it.
type Point struct {
	At          *Stamp   `json:"at"`
	PagesPerSec float64  `json:"pages_per_second"`
	Classes     [6]int64 `json:"classes" doc:"Answers: none, 1xx, 2xx, 3xx, 4xx, 5xx."`
	HTTP429     int64    `json:"http_429"`
	Queued      *int64   `json:"queued" doc:"Null for a job that has ended."`
	InFlight    *int64   `json:"in_flight"`
}

// maxPoints bounds a series.
const maxPoints = 600

type seriesOut struct{ Body Series }

func (a *API) getSeries(ctx context.Context, c *caller, in *JobID) (*seriesOut, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	if points, ok := a.cfg.Service.Series(j.ID); ok {
		return &seriesOut{liveSeries(points)}, nil
	}
	begun := a.cfg.Now()
	if s, ok := a.series.get(j.ID, begun, j.Status.Done()); ok {
		return &seriesOut{s}, nil
	}
	if j.Crawl == 0 {
		return &seriesOut{Series{Step: 1, Points: []Point{}}}, nil
	}
	var b seriesBuilder
	for r, err := range a.cfg.Ledger.Requests(ctx, j.Crawl) {
		if err != nil {
			return nil, err
		}
		b.add(&r)
	}
	s, now := b.series(), a.cfg.Now()
	if j.Status.Done() {
		a.series.put(j.ID, s, time.Time{})
	} else if j.Status == ledger.Running { // at another server
		a.series.put(j.ID, s, now.Add(max(seriesFor, seriesCost*now.Sub(begun))))
	}
	return &seriesOut{s}, nil
}

func liveSeries(points []job.Point) Series {
	s := Series{Step: 1, Points: make([]Point, 0, len(points))}
	for i := range points {
		p := &points[i]
		s.Points = append(s.Points, Point{At: at(p.At), PagesPerSec: round(p.PagesPerSecond), Classes: p.Classes, HTTP429: p.HTTP429,
			Queued: &p.Queued, InFlight: &p.InFlight})
	}
	if n := len(points); n > 1 {
		s.Step = max(1, round(points[n-1].At.Sub(points[0].At).Seconds()/float64(n-1)))
	}
	return s
}

// seriesBuilder counts requests by the time of their end. When they span more
// steps than fit, every two steps become one.
type seriesBuilder struct {
	from  time.Time
	step  time.Duration
	steps []step
}

type step struct {
	pages   int64
	classes [6]int64
	http429 int64
	flight  int64 // requests that began in it, less those that ended in it
}

func (b *seriesBuilder) add(r *ledger.Request) {
	if !r.Sent() || r.Started.IsZero() {
		return
	}
	if b.from.IsZero() { // they come in the order in which they began
		b.from, b.step = r.Started, time.Second
	}
	b.at(r.Started).flight++
	if r.Ended.IsZero() {
		return
	}
	s := b.at(r.Ended)
	s.flight--
	if r.Kind == "page" {
		s.pages++
	}
	if class := r.Status / 100; class >= 0 && class < len(s.classes) {
		s.classes[class]++
	}
	if r.Status == 429 {
		s.http429++
	}
}

func (b *seriesBuilder) at(t time.Time) *step {
	i := max(int(t.Sub(b.from)/b.step), 0)
	for i >= maxPoints {
		half := make([]step, 0, maxPoints)
		for k := range b.steps {
			if k%2 == 0 {
				half = append(half, b.steps[k])
				continue
			}
			to := &half[len(half)-1]
			to.pages, to.http429, to.flight = to.pages+b.steps[k].pages, to.http429+b.steps[k].http429, to.flight+b.steps[k].flight
			for c := range to.classes {
				to.classes[c] += b.steps[k].classes[c]
			}
		}
		b.steps, b.step = half, 2*b.step
		i = int(t.Sub(b.from) / b.step)
	}
	for len(b.steps) <= i {
		b.steps = append(b.steps, step{})
	}
	return &b.steps[i]
}

func (b *seriesBuilder) series() Series {
	s := Series{Step: max(b.step.Seconds(), 1), Points: make([]Point, 0, len(b.steps))}
	flight := int64(0)
	for i, x := range b.steps {
		flight += x.flight
		now := flight
		s.Points = append(s.Points, Point{At: at(b.from.Add(time.Duration(i+1) * b.step)), PagesPerSec: round(float64(x.pages) / b.step.Seconds()),
			Classes: x.classes, HTTP429: x.http429, InFlight: &now})
	}
	return s
}

// seriesCache keeps the series of a few jobs: to count them costs a look at
// every request. Of those that have ended they change no more, those of jobs
// that another server drives are good for a while.
type seriesCache struct {
	mu   sync.Mutex
	jobs map[string]keptSeries
}

type keptSeries struct {
	Series
	until time.Time // zero: for ever
}

const (
	maxSeries = 32
	seriesFor = 2 * time.Second
	// seriesCost bounds the time that goes into counting a job that runs: one
	// part in so many.
	seriesCost = 20
)

func newSeriesCache() *seriesCache { return &seriesCache{jobs: make(map[string]keptSeries)} }

// get finds a series that is still good. What was counted while the job ran is
// not, once it has ended: it lacks the end.
func (c *seriesCache) get(id string, now time.Time, ended bool) (Series, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.jobs[id]
	return s.Series, ok && (s.until.IsZero() || !ended && now.Before(s.until))
}

func (c *seriesCache) put(id string, s Series, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.jobs) >= maxSeries {
		clear(c.jobs)
	}
	c.jobs[id] = keptSeries{s, until}
}
