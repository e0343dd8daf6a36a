package fleettest

import (
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

func Test_a_jobs_bound_on_requests_in_flight_holds_over_all_workers(t *testing.T) {
	t.Parallel()
	const most = 6
	f := newFleet(t, false, webfarm.Config{Seed: 11, Hosts: 40, Pages: 40, Links: 12, Latency: 60 * time.Millisecond})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	j := f.order(s, fields{"delay_ms": 0, "concurrency": most})
	f.served(400, time.Minute)
	f.workers[1].Kill() // its slots are the others', once its leases have ended
	j = f.ended(s, j.ID, 2*time.Minute)
	b := f.farm.Books()
	t.Logf("%s: %d pages, at most %d in flight, in %.1f s; %d slots at 60 ms would take %.1f s", j.Status, b.Pages, b.MostInAll, b.SpanSeconds,
		most, float64(b.Requests)*0.06/most)
	if b.MostInAll > most || b.MostInAll < most-1 {
		t.Errorf("%d requests were in flight at once, %d may be", b.MostInAll, most)
	}
	if n := number(f, "SELECT count(DISTINCT permit & 4095) FROM requests"); n != 3 {
		t.Errorf("%d workers took part", n)
	}
	f.complete()
}
