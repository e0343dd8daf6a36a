package metrics

import (
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ crawl.Meter = (*Metrics)(nil)
	_ job.Meter   = (*Metrics)(nil)
)

// reasons are those of crawl.WaitingFor.
var reasons = []string{"pace", "block", "robots", "robots_slots", "share", "retry", "concurrency", "parked"}

func view() (crawl.EngineView, bool) {
	v := crawl.EngineView{
		Layers:   []crawl.Layer{{Name: "workers", Used: 3, Limit: 512}, {Name: "commit ms", Used: 7, Limit: 500}},
		Hosts:    crawl.HostCounts{Ready: 1, Running: 2, Waiting: 3, Parked: 4, Idle: 5},
		InFlight: 6, Uncommitted: 7, CommitEWMA: 8 * time.Millisecond,
		Counts: limits.Counts{HTTP429: 9, Retries: 10, Cancellations: 11, ConcurrencyOverrides: 12},
	}
	for i, r := range reasons {
		v.Waiting = append(v.Waiting, crawl.WaitingFor{Reason: r, Hosts: i, URLs: 10 * i})
	}
	return v, true
}

// exercised are metrics to which everything has happened once.
func exercised(t *testing.T) *Metrics {
	m := New("1.2.3")
	m.WatchEngine(view)
	m.WatchQueue(func() (queued, running, slots int) { return 2, 1, 4 })
	m.WatchDisk(t.TempDir())
	for _, kind := range []string{"page", "robots", "sitemap", "source"} {
		for _, o := range outcome.All() {
			m.Requested(kind, o, 30*time.Millisecond, 100)
			m.PageDone(o)
		}
	}
	m.Committed(4*time.Millisecond, 17)
	m.Throttled()
	m.JobGranted(90 * time.Second)
	m.JobEnded(ledger.Partial)
	m.QuotaRefused()
	m.Attempted(job.GivenUp)
	for _, code := range []int{200, 302, 404, 500} {
		m.Observe("/v1/jobs/{id}", "GET", code, 5*time.Millisecond)
	}
	return m
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(rec.Result().Body)
	if err != nil || rec.Code != 200 {
		t.Fatalf("%d, %v:\n%s", rec.Code, err, b)
	}
	return string(b)
}

// lines demands that a scrape says these.
func lines(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains("\n"+text, "\n"+w+"\n") {
			t.Errorf("no line %q", w)
		}
	}
}

func Test_a_scrape_says_what_happened(t *testing.T) {
	lines(t, scrape(t, exercised(t)),
		`tiptoe_requests_total{kind="page",outcome="throttled"} 1`,
		`tiptoe_pages_total{outcome="not_found"} 4`,
		fmt.Sprintf("tiptoe_received_bytes_total %d", 4*100*len(outcome.All())),
		`tiptoe_throttle_changes_total 1`,
		`tiptoe_commit_seconds_count 1`, `tiptoe_commit_seconds_bucket{le="0.005"} 1`, `tiptoe_commit_seconds_bucket{le="0.0025"} 0`,
		`tiptoe_committed_records_total 17`,
		`tiptoe_engine_up 1`, `tiptoe_requests_in_flight 6`, `tiptoe_uncommitted_records 7`, `tiptoe_commit_smoothed_seconds 0.008`,
		`tiptoe_hosts{state="ready"} 1`, `tiptoe_hosts{state="running"} 2`, `tiptoe_hosts{state="waiting"} 3`,
		`tiptoe_hosts{state="parked"} 4`, `tiptoe_hosts{state="idle"} 5`,
		`tiptoe_waiting_hosts{reason="block"} 1`, `tiptoe_waiting_urls{reason="block"} 10`,
		`tiptoe_layer_used{layer="workers"} 3`, `tiptoe_layer_limit{layer="workers"} 512`,
		`tiptoe_http_429_total 9`, `tiptoe_retries_total 10`, `tiptoe_cancellations_total 11`, `tiptoe_concurrency_overrides_total 12`,
		`tiptoe_jobs_queued 2`, `tiptoe_jobs_running 1`, `tiptoe_job_slots 4`,
		`tiptoe_jobs_ended_total{status="partial"} 1`, `tiptoe_jobs_ended_total{status="failed"} 0`,
		`tiptoe_job_queue_seconds_sum 90`, `tiptoe_quota_refusals_total 1`,
		`tiptoe_webhook_deliveries_total{result="given_up"} 1`, `tiptoe_webhook_deliveries_total{result="delivered"} 0`,
		`tiptoe_api_requests_total{code="2xx",method="GET",route="/v1/jobs/{id}"} 1`,
		`tiptoe_api_request_seconds_count{method="GET",route="/v1/jobs/{id}"} 4`,
	)
	for _, part := range []string{`tiptoe_build_info{goversion="go`, `version="1.2.3"} 1`, "process_resident_memory_bytes ", "go_goroutines ", "tiptoe_data_free_bytes "} {
		if !strings.Contains(scrape(t, exercised(t)), part) {
			t.Errorf("nothing of %s", part)
		}
	}
}

func Test_a_scrape_is_in_order_for_Prometheus(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scrape(t, exercised(t)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "tiptoe_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func Test_an_engine_that_stopped_is_0_and_tells_nothing_else(t *testing.T) {
	m := New("x")
	m.WatchEngine(func() (crawl.EngineView, bool) { return crawl.EngineView{}, false })
	text := scrape(t, m)
	lines(t, text, "tiptoe_engine_up 0")
	for _, absent := range []string{"tiptoe_hosts", "tiptoe_http_429_total", "tiptoe_requests_in_flight"} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is told, though nobody knows it", absent)
		}
	}
}

func Test_two_services_in_one_process_do_not_meet(t *testing.T) {
	a, b := exercised(t), New("x")
	b.QuotaRefused()
	b.QuotaRefused()
	lines(t, scrape(t, a), "tiptoe_quota_refusals_total 1")
	lines(t, scrape(t, b), "tiptoe_quota_refusals_total 2")
}

// A stranger chooses hosts, paths, methods and how many of each.
func Test_the_number_of_series_is_bounded_whatever_is_asked(t *testing.T) {
	m := New("x")
	n := 0
	m.WatchEngine(func() (crawl.EngineView, bool) {
		var v crawl.EngineView
		for range 300 {
			n++
			v.Waiting = append(v.Waiting, crawl.WaitingFor{Reason: fmt.Sprint("reason ", n), Hosts: 1, URLs: 2})
			v.Layers = append(v.Layers, crawl.Layer{Name: fmt.Sprint("layer ", n), Used: 1, Limit: 2})
		}
		return v, true
	})
	for i := range 5000 {
		m.Observe(fmt.Sprintf("/v1/jobs/%d", i), "GET", 200, time.Millisecond)
		m.Observe("", fmt.Sprintf("VERB%d", i), i, time.Millisecond)
		m.Requested(fmt.Sprintf("kind%d", i), outcome.OK, time.Millisecond, 1)
		m.JobEnded(ledger.Status(fmt.Sprintf("status%d", i)))
	}
	for round := range 3 {
		series := map[string]int{}
		for line := range strings.Lines(scrape(t, m)) {
			name, _, _ := strings.Cut(line, "{")
			if strings.HasPrefix(name, "tiptoe_") && strings.Contains(line, "{") && !strings.Contains(line, "_bucket") {
				series[name]++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(series)) {
			if series[name] > maxValues+10 {
				t.Errorf("%s has %d series", name, series[name])
			}
		}
		if round == 0 && (series["tiptoe_api_requests_total"] < maxValues || series["tiptoe_waiting_hosts"] < maxValues) {
			t.Errorf("%v: did the flood arrive?", series)
		}
	}
	lines(t, scrape(t, m), `tiptoe_waiting_hosts{reason="other"} 300`, `tiptoe_waiting_urls{reason="other"} 600`)
}

func Test_it_is_told_by_many_at_once(t *testing.T) {
	m := New("x")
	m.WatchEngine(view)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				m.Requested("page", outcome.OK, time.Millisecond, 1)
				m.Observe(fmt.Sprint("/", i%7), "GET", 200, time.Millisecond)
				m.Committed(time.Millisecond, 1)
			}
		})
	}
	for range 5 {
		scrape(t, m)
	}
	wg.Wait()
	lines(t, scrape(t, m), `tiptoe_requests_total{kind="page",outcome="ok"} 1600`, `tiptoe_committed_records_total 1600`)
}

func BenchmarkRequested(b *testing.B) {
	m := New("x")
	for b.Loop() {
		m.Requested("page", outcome.OK, time.Millisecond, 1)
	}
}
