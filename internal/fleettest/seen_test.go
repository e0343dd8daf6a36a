package fleettest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

func Test_a_fleet_shows_who_works_on_what_and_who_has_gone(t *testing.T) {
	t.Parallel()
	const pace = 500 * time.Millisecond
	const hosts = 24
	f := newFleet(t, false, webfarm.Config{Seed: 11, Hosts: hosts, Pages: 200, Links: 12, Latency: 5 * time.Millisecond, NoRobots: true})
	s := f.serve("--workers", "16")
	f.work("--workers", "16")
	last := f.work("--workers", "16")
	f.until(20*time.Second, "three workers are seen, each alive and with nothing to do", func() bool {
		list := f.workersSeen(s).Items
		for _, w := range list {
			if w.State != "live" || w.Hosts != 0 || w.Machine == "" || w.Started == nil || w.Heard == nil || time.Since(*w.Heard) > leaseTTL {
				return false
			}
		}
		return len(list) == 3
	})
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	var seen client.Workers
	f.until(30*time.Second, "all hosts are held and all three fetch", func() bool {
		seen = f.workersSeen(s)
		held, busy, self := 0, 0, 0
		for _, w := range seen.Items {
			held += w.Hosts
			if w.PagesPerSec > 0 && w.Hosts > 0 {
				busy++
			}
			if w.Self {
				self++
			}
		}
		return len(seen.Items) == 3 && held == hosts && busy == 3 && self == 1
	})
	rate := 0.0
	for _, w := range seen.Items {
		t.Logf("%s holds %d hosts, %.1f pages a second, heard %s ago", w.ID, w.Hosts, w.PagesPerSec, time.Since(*w.Heard).Round(time.Millisecond))
		rate += w.PagesPerSec
	}
	if most := hosts * float64(time.Second) / float64(pace); rate > 1.5*most {
		t.Errorf("%.1f pages a second together, the pace allows %.0f", rate, most)
	}
	f.until(20*time.Second, "a job's hosts are those of all workers", func() bool { return len(f.holders(s, j.ID)) == 3 })
	f.owned(s, j.ID)
	f.wire(s, j.ID, hosts)
	f.brief()

	last.Kill()
	died := time.Now()
	f.until(leaseTTL+5*time.Second, "a killed worker has left the list", func() bool { return len(f.workersSeen(s).Items) == 2 })
	t.Logf("gone after %s, the lease is %s", time.Since(died).Round(100*time.Millisecond), leaseTTL)
	f.until(30*time.Second, "the others have its hosts, and nothing of it is shown", func() bool {
		held := 0
		for _, w := range f.workersSeen(s).Items {
			held += w.Hosts
		}
		return held == hosts && len(f.holders(s, j.ID)) == 2
	})

	f.freezeRedis()
	f.until(leaseTTL+15*time.Second, "without Redis the list is there, and says why it is old", func() bool {
		list := f.workersSeen(s)
		return len(list.Items) == 2 && list.Waiting != nil && strings.Contains(*list.Waiting, "the fleet's store")
	})
}

// brief demands that what workers tell of the first crawl twice a second, and
// what they show of it every two seconds, is short.
func (f *fleet) brief() {
	f.t.Helper()
	for kind, most := range map[string]int{"r": 700, "rp": 8 << 10} {
		text, err := f.redis.Do("EVAL", "local n = 0 for _, v in ipairs(redis.call('HVALS', KEYS[1])) do n = math.max(n, #v) end return tostring(n)", "1", redisKey(kind+":1"))
		if err != nil {
			f.t.Fatal(err)
		}
		n, err := strconv.Atoi(text)
		if err != nil || n == 0 || n > most {
			f.t.Errorf("%s: %s bytes, at most %d are meant: %v", kind, text, most, err)
		}
		f.t.Logf("%s: at most %d bytes a worker", map[string]string{"r": "reports", "rp": "pictures"}[kind], n)
	}
}

// workersSeen is the list of workers as a server gives it.
func (f *fleet) workersSeen(s *server) (list client.Workers) {
	f.t.Helper()
	f.get(s, "/v1/workers", &list)
	return list
}

func (f *fleet) hostsSeen(s *server, job string) []client.Host {
	f.t.Helper()
	var list struct{ Items []client.Host }
	f.get(s, "/v1/jobs/"+job+"/hosts", &list)
	return list.Items
}

// holders counts a job's shown hosts by worker.
func (f *fleet) holders(s *server, job string) map[string]int {
	f.t.Helper()
	by := map[string]int{}
	for _, h := range f.hostsSeen(s, job) {
		if h.Worker == nil {
			f.t.Fatalf("%s is held by nobody", h.Host)
		}
		by[*h.Worker]++
	}
	return by
}

// owned demands that hosts are shown with the worker that has them by Redis.
func (f *fleet) owned(s *server, job string) {
	f.t.Helper()
	f.until(10*time.Second, "hosts are shown with their owners", func() bool { // pictures are seconds old
		owners := f.owners()
		for _, h := range f.hostsSeen(s, job) {
			if owners[h.Host] != *h.Worker {
				return false
			}
		}
		return true
	})
}

// wire demands that a job's live picture counts the whole fleet.
func (f *fleet) wire(s *server, job string, hosts int) {
	f.t.Helper()
	var live struct {
		Queued   int64          `json:"queued"`
		InFlight int64          `json:"in_flight"`
		Hosts    map[string]int `json:"hosts"`
		Waits    []struct {
			Reason string
			Hosts  int
		} `json:"waits"`
		Layers []struct {
			Name  string
			Limit int64
		} `json:"layers"`
	}
	f.until(10*time.Second, "the live picture has all hosts", func() bool {
		f.get(s, "/v1/jobs/"+job+"/live", &live)
		n := 0
		for _, c := range live.Hosts {
			n += c
		}
		return n == hosts && live.Layers[0].Limit == 3*16
	})
	if live.InFlight > int64(2*hosts) || live.Queued == 0 || len(live.Waits) == 0 {
		f.t.Errorf("%+v", live)
	}
}
