// Package metrics answers: how is this tiptoe doing, in numbers that a
// Prometheus server reads?
//
// It owns the names. Others own the facts: they call the small methods here
// when something happens (Requested, PageDone, Committed, Throttled, JobEnded,
// Observe, ...), or are asked once a scrape through a function that was handed
// in (WatchEngine, WatchQueue, WatchDisk). A request costs a crawl about half a
// microsecond here.
//
// # Guarantees
//
//   - A Metrics has a registry of its own: two services in one process do not
//     meet, and nothing registers itself.
//   - The number of series is bounded, whoever is crawled and whoever asks: no
//     label ever holds a host, a URL or a tenant. A label whose values come
//     from elsewhere (routes, reasons, layers) takes so many and then says
//     "other".
//   - Every name is in the table of docs/OPERATIONS.md, and the alert rules and
//     the board in deploy/ name nothing else; tests compare.
//   - Names follow the conventions of Prometheus: tiptoe_ in front, base units,
//     _total for what only grows.
//
// # What a scrape sees
//
// Counters begin at 0 with the process, as Prometheus expects. A crash loses
// them, and nothing else depends on them: what was crawled is in the ledger.
// While no engine runs, tiptoe_engine_up is 0 and what only an engine could
// tell is absent, not 0.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxValues bounds a label whose values are not of a closed list of our own.
// There are about 50 routes, 10 reasons and 10 layers.
const maxValues = 100

// Metrics are one process's. The zero value is of no use; see New.
type Metrics struct {
	reg *prometheus.Registry

	crawlMetrics
	jobMetrics
	apiMetrics
}

// New prepares everything that can be counted.
func New(version string) *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry(), crawlMetrics: newCrawlMetrics(), jobMetrics: newJobMetrics(), apiMetrics: newAPIMetrics()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tiptoe_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reg.MustRegister(m.crawlMetrics.all()...)
	m.reg.MustRegister(m.jobMetrics.all()...)
	m.reg.MustRegister(m.apiMetrics.all()...)
	return m
}

// Handler serves a scrape. What cannot be collected does not hide the rest.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}

// bounded keeps a label to its first maxValues values.
type bounded struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (b *bounded) value(s string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[s] {
		return s
	}
	if len(b.seen) >= maxValues {
		return "other"
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[s] = true
	return s
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func single(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
