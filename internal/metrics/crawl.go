package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tiptoe/internal/outcome"
)

// crawlMetrics count what the engine does, as it tells.
type crawlMetrics struct {
	requests, pages           *prometheus.CounterVec
	requestSeconds            *prometheus.HistogramVec
	bytes, records, throttles prometheus.Counter
	commitSeconds             prometheus.Histogram
	kinds                     *bounded
}

func newCrawlMetrics() crawlMetrics {
	return crawlMetrics{
		requests:  counter("tiptoe_requests_total", "Requests put on the wire, by what was asked for and how it ended.", "kind", "outcome"),
		pages:     counter("tiptoe_pages_total", "URLs that are done with, by outcome; those that were never requested included.", "outcome"),
		throttles: single("tiptoe_throttle_changes_total", "Times a host's delay was raised because it answered 429, or a try at lowering it failed."),
		requestSeconds: histogram("tiptoe_request_seconds", "Time of one request, to the end of the body.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "kind"),
		bytes:   single("tiptoe_received_bytes_total", "Bytes of bodies, as they came over the wire."),
		records: single("tiptoe_committed_records_total", "Records made durable."),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tiptoe_commit_seconds", Help: "Time of one commit, ledger and frontier.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}),
		kinds: &bounded{},
	}
}

func (c *crawlMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{c.requests, c.pages, c.throttles, c.requestSeconds, c.bytes, c.records, c.commitSeconds}
}

// Committed is told of each commit.
func (c *crawlMetrics) Committed(took time.Duration, records int) {
	c.commitSeconds.Observe(took.Seconds())
	c.records.Add(float64(max(records, 0)))
}

// Requested is told of each request when it has ended.
func (c *crawlMetrics) Requested(kind string, o outcome.Outcome, took time.Duration, wireBytes int64) {
	kind = c.kinds.value(kind)
	c.requests.WithLabelValues(kind, o.String()).Inc()
	c.requestSeconds.WithLabelValues(kind).Observe(took.Seconds())
	c.bytes.Add(float64(max(wireBytes, 0)))
}

// PageDone is told of each URL that is done with.
func (c *crawlMetrics) PageDone(o outcome.Outcome) { c.pages.WithLabelValues(o.String()).Inc() }

// Throttled is told when a host's delay is raised, or a try at lowering it
// failed [OBS-1]. Which host it was is for the log.
func (c *crawlMetrics) Throttled() { c.throttles.Inc() }
