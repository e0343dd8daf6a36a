package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// apiMetrics count what callers of the API ask.
type apiMetrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	routes  *bounded
}

func newAPIMetrics() apiMetrics {
	return apiMetrics{
		calls: counter("tiptoe_api_requests_total", "Calls of the API, by route, method and class of status.", "route", "method", "code"),
		seconds: histogram("tiptoe_api_request_seconds", "Time to answer a call of the API. Streams of events and exports count when they end.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}, "route", "method"),
		routes: &bounded{},
	}
}

func (a *apiMetrics) all() []prometheus.Collector { return []prometheus.Collector{a.calls, a.seconds} }

var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// Observe is told of each call. route is the pattern that matched, such as
// /v1/jobs/{id}, never the path that was asked for; empty if none matched.
func (a *apiMetrics) Observe(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	if !methods[method] {
		method = "other"
	}
	code := "other"
	if status >= 100 && status < 600 {
		code = fmt.Sprintf("%dxx", status/100)
	}
	route = a.routes.value(route)
	a.calls.WithLabelValues(route, method, code).Inc()
	a.seconds.WithLabelValues(route, method).Observe(took.Seconds())
}
