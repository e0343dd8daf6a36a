package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
)

// jobMetrics count what the job service does, as it tells.
type jobMetrics struct {
	ended, deliveries *prometheus.CounterVec
	queueSeconds      prometheus.Histogram
	refusals          prometheus.Counter
}

func newJobMetrics() jobMetrics {
	j := jobMetrics{
		ended:      counter("tiptoe_jobs_ended_total", "Jobs that ended, by status.", "status"),
		deliveries: counter("tiptoe_webhook_deliveries_total", "Attempts at webhooks, by result.", "result"),
		queueSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tiptoe_job_queue_seconds", Help: "Time from the order of a job to its first slot.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}}),
		refusals: single("tiptoe_quota_refusals_total", "Orders refused because the month's pages are spent."),
	}
	for _, s := range []ledger.Status{ledger.Completed, ledger.Partial, ledger.Failed, ledger.Cancelled} {
		j.ended.WithLabelValues(string(s))
	}
	for _, d := range []job.Delivered{job.Arrived, job.PutOff, job.GivenUp} {
		j.deliveries.WithLabelValues(string(d))
	}
	return j
}

func (j *jobMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{j.ended, j.deliveries, j.queueSeconds, j.refusals}
}

// JobGranted is told when a job is given its first slot.
func (j *jobMetrics) JobGranted(waited time.Duration) { j.queueSeconds.Observe(waited.Seconds()) }

// JobEnded is told of each end.
func (j *jobMetrics) JobEnded(s ledger.Status) {
	if s.Done() {
		j.ended.WithLabelValues(string(s)).Inc()
	}
}

// QuotaRefused is told of each order that the month has no page left for.
func (j *jobMetrics) QuotaRefused() { j.refusals.Inc() }

// Attempted is told of each attempt at a webhook.
func (j *jobMetrics) Attempted(d job.Delivered) { j.deliveries.WithLabelValues(string(d)).Inc() }

// WatchQueue asks for the queue once a scrape: jobs that wait, jobs that run,
// and how many may; 0 slots is no limit.
func (m *Metrics) WatchQueue(queue func() (queued, running, slots int)) {
	m.reg.MustRegister(&queueCollector{queue})
}

var (
	queuedDesc  = prometheus.NewDesc("tiptoe_jobs_queued", "Jobs that wait for a slot.", nil, nil)
	runningDesc = prometheus.NewDesc("tiptoe_jobs_running", "Jobs that hold a slot.", nil, nil)
	slotsDesc   = prometheus.NewDesc("tiptoe_job_slots", "Jobs that may run at once; 0 is no limit.", nil, nil)
)

type queueCollector struct {
	queue func() (queued, running, slots int)
}

func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- queuedDesc
	ch <- runningDesc
	ch <- slotsDesc
}

func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	queued, running, slots := c.queue()
	ch <- gauge(queuedDesc, float64(queued))
	ch <- gauge(runningDesc, float64(running))
	ch <- gauge(slotsDesc, float64(slots))
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
