package fleettest

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

func Test_SAF_2_two_servers_on_one_database_give_out_one_slot_and_take_over_from_each_other(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f := newFleet(t, false, webfarm.Config{Seed: 7, Hosts: 10, Pages: 70, Links: 12, Latency: 5 * time.Millisecond})
	first := f.serve("--workers", "16", "--max-concurrent-crawls", "1")
	a := f.order(first, fields{"delay_ms": pace.Milliseconds()})
	f.served(12, 30*time.Second)
	second := f.serve("--workers", "16", "--max-concurrent-crawls", "1")
	b := f.order(second, fields{"urls": f.farm.Seeds()[:1], "pages": 5})

	// The slot is taken, whoever asks; and a job that somebody drives is
	// nobody else's.
	f.served(60, 30*time.Second)
	if n := number(f, "SELECT count(*) FROM jobs WHERE status = 'running'"); n != 1 {
		t.Errorf("%d jobs run, there is one slot", n)
	}
	if strings.Contains(second.out.String(), "taking up a job") {
		t.Error("the second server took up a job that the first one drives")
	}

	// A server that dies leaves its job to the other.
	first.kill()
	at := time.Now()
	f.until(40*time.Second, "the other server takes the job up", func() bool {
		return strings.Contains(second.out.String(), "taking up a job")
	})
	t.Logf("taken up after %s", time.Since(at).Round(time.Millisecond))
	a = f.ended(second, a.ID, 2*time.Minute)
	b = f.ended(second, b.ID, time.Minute)
	if a.Status != "completed" || b.Status != "partial" {
		t.Errorf("the jobs ended as %s and %s", a.Status, b.Status)
	}
	f.oneAtATime(a, b)
	f.complete()
	f.gaps()
	f.arrivals(pace)
}

// oneAtATime demands that the second job began when the first had ended.
func (f *fleet) oneAtATime(a, b client.Job) {
	f.t.Helper()
	if a.Ended == nil || b.Started == nil || b.Started.Before(*a.Ended) {
		f.t.Errorf("one job ended at %v, the other began at %v", a.Ended, b.Started)
	}
}
