package fleettest

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

func Test_SAF_2_two_servers_on_one_database_give_out_one_slot_and_take_over_from_each_other(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f, first, second, a, b := twoServers(t, pace)
	first.Kill() // it leaves its job to the other
	f.takenUp(second)
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

func Test_a_server_that_was_frozen_finds_its_job_taken_and_goes_on_as_a_worker_of_it(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f, first, second, a, _ := twoServers(t, pace)
	first.signal(syscall.SIGSTOP)
	f.takenUp(second)
	first.signal(syscall.SIGCONT)
	f.until(30*time.Second, "the first server lets the job go", func() bool {
		return strings.Contains(first.Said(), "another server has taken a job up")
	})
	a = f.ended(second, a.ID, 2*time.Minute)
	if a.Status != "completed" {
		t.Errorf("the job ended as %s", a.Status)
	}
	f.complete()
	f.gaps()
	if n := number(f, "SELECT count(*) FROM job_events WHERE job_id = $1 AND data LIKE '%completed%'", a.ID); n != 1 {
		t.Errorf("the job ended %d times", n)
	}
}

// twoServers share one slot; the first drives a job on the whole web, and a
// small one that was ordered at the second waits.
func twoServers(t *testing.T, pace time.Duration) (f *fleet, first, second *server, a, b client.Job) {
	t.Helper()
	f = newFleet(t, false, webfarm.Config{Seed: 7, Hosts: 10, Pages: 90, Links: 12, Latency: 5 * time.Millisecond})
	first = f.serve("--workers", "16", "--max-concurrent-crawls", "1")
	a = f.order(first, fields{"delay_ms": pace.Milliseconds()})
	f.served(12, 30*time.Second)
	second = f.serve("--workers", "16", "--max-concurrent-crawls", "1")
	b = f.order(second, fields{"urls": f.farm.Seeds()[:1], "pages": 5, "delay_ms": pace.Milliseconds()})

	// The slot is taken, whoever asks; and a job that somebody drives is
	// nobody else's.
	f.served(60, 30*time.Second)
	if n := number(f, "SELECT count(*) FROM jobs WHERE status = 'running'"); n != 1 {
		t.Errorf("%d jobs run, there is one slot", n)
	}
	if strings.Contains(second.Said(), "taking up a job") {
		t.Error("the second server took up a job that the first one drives")
	}
	return f, first, second, a, b
}

// takenUp waits until a server has taken up the job of one that is silent.
func (f *fleet) takenUp(s *server) {
	f.t.Helper()
	begun := time.Now()
	f.until(40*time.Second, "the other server takes the job up", func() bool {
		return strings.Contains(s.Said(), "taking up a job")
	})
	f.t.Logf("taken up after %s", time.Since(begun).Round(time.Millisecond))
}

// oneAtATime demands that the second job began when the first had ended.
func (f *fleet) oneAtATime(a, b client.Job) {
	f.t.Helper()
	if a.Ended == nil || b.Started == nil || b.Started.Before(*a.Ended) {
		f.t.Errorf("one job ended at %v, the other began at %v", a.Ended, b.Started)
	}
}
