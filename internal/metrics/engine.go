package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"tiptoe/internal/crawl"
)

// WatchEngine asks for a picture of the engine once a scrape. ok false says
// that none is running.
func (m *Metrics) WatchEngine(view func() (v crawl.EngineView, ok bool)) {
	m.reg.MustRegister(&engineCollector{view: view})
}

var (
	upDesc           = prometheus.NewDesc("tiptoe_engine_up", "1 while the engine runs, 0 once it has stopped.", nil, nil)
	inFlightDesc     = prometheus.NewDesc("tiptoe_requests_in_flight", "Requests on the wire.", nil, nil)
	uncommittedDesc  = prometheus.NewDesc("tiptoe_uncommitted_records", "Records fetched and not yet durable.", nil, nil)
	commitDesc       = prometheus.NewDesc("tiptoe_commit_smoothed_seconds", "Commit latency as the governor sees it.", nil, nil)
	hostsDesc        = prometheus.NewDesc("tiptoe_hosts", "Hosts by the scheduler's state.", []string{"state"}, nil)
	waitingHostsDesc = prometheus.NewDesc("tiptoe_waiting_hosts", "Hosts that wait, by what for.", []string{"reason"}, nil)
	waitingURLsDesc  = prometheus.NewDesc("tiptoe_waiting_urls", "URLs in memory whose host waits, by what for.", []string{"reason"}, nil)
	layerUsedDesc    = prometheus.NewDesc("tiptoe_layer_used", "How much of a concurrency layer is in use.", []string{"layer"}, nil)
	layerLimitDesc   = prometheus.NewDesc("tiptoe_layer_limit", "How much of a concurrency layer there is.", []string{"layer"}, nil)

	http429Desc       = prometheus.NewDesc("tiptoe_http_429_total", "Answers of 429.", nil, nil)
	retriesDesc       = prometheus.NewDesc("tiptoe_retries_total", "Tries that were put off to a later time.", nil, nil)
	cancellationsDesc = prometheus.NewDesc("tiptoe_cancellations_total", "Jobs ended by a rule: too many failures or 429s in a row.", nil, nil)
	overridesDesc     = prometheus.NewDesc("tiptoe_concurrency_overrides_total", "Times a learned delay took slots from a host.", nil, nil)
)

// commitLayer is a latency, not a number of things; it has a metric of its own.
const commitLayer = "commit ms"

type engineCollector struct {
	view            func() (crawl.EngineView, bool)
	reasons, layers bounded
}

func (c *engineCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, inFlightDesc, uncommittedDesc, commitDesc, hostsDesc, waitingHostsDesc, waitingURLsDesc,
		layerUsedDesc, layerLimitDesc, http429Desc, retriesDesc, cancellationsDesc, overridesDesc} {
		ch <- d
	}
}

func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	v, ok := c.view()
	if !ok {
		ch <- gauge(upDesc, 0)
		return
	}
	ch <- gauge(upDesc, 1)
	ch <- gauge(inFlightDesc, float64(v.InFlight))
	ch <- gauge(uncommittedDesc, float64(v.Uncommitted))
	ch <- gauge(commitDesc, v.CommitEWMA.Seconds())
	for state, n := range map[string]int{"ready": v.Hosts.Ready, "running": v.Hosts.Running, "waiting": v.Hosts.Waiting,
		"parked": v.Hosts.Parked, "idle": v.Hosts.Idle} {
		ch <- gauge(hostsDesc, float64(n), state)
	}
	// Several names may have become "other", and a series is sent once.
	hosts, urls := map[string]int{}, map[string]int{}
	for _, w := range v.Waiting {
		reason := c.reasons.value(w.Reason)
		hosts[reason] += w.Hosts
		urls[reason] += w.URLs
	}
	for reason := range hosts {
		ch <- gauge(waitingHostsDesc, float64(hosts[reason]), reason)
		ch <- gauge(waitingURLsDesc, float64(urls[reason]), reason)
	}
	used, limit := map[string]int64{}, map[string]int64{}
	for _, l := range v.Layers {
		if l.Name != commitLayer {
			name := c.layers.value(l.Name)
			used[name] += l.Used
			limit[name] += l.Limit
		}
	}
	for name := range used {
		ch <- gauge(layerUsedDesc, float64(used[name]), name)
		ch <- gauge(layerLimitDesc, float64(limit[name]), name)
	}
	for d, n := range map[*prometheus.Desc]int64{http429Desc: v.Counts.HTTP429, retriesDesc: v.Counts.Retries,
		cancellationsDesc: v.Counts.Cancellations, overridesDesc: v.Counts.ConcurrencyOverrides} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
