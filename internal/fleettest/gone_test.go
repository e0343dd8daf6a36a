package fleettest

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

func Test_a_job_whose_frontier_redis_has_lost_fails_and_says_so_and_the_next_one_runs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, webfarm.Config{Seed: 12, Hosts: 12, Pages: 40, Links: 12, Latency: 5 * time.Millisecond})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 2 })
	j := f.order(s, fields{"delay_ms": 400})
	f.served(60, time.Minute)
	if _, err := f.redis.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	j = f.ended(s, j.ID, 15*time.Second) // before somebody would take it up
	if j.Status != "failed" || j.Error == nil || !strings.Contains(*j.Error, "frontier is gone") {
		t.Errorf("%s, %v", j.Status, j.Error)
	}
	f.farm.Reset()
	j = f.ended(s, f.order(s, fields{"urls": f.farm.Seeds()[:4], "delay_ms": 0}).ID, time.Minute)
	if n := f.farm.Books().Pages; j.Status != "completed" || n != 4*40 {
		t.Errorf("the next job: %s, %d pages", j.Status, n)
	}
}
