package fleettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/webfarm"
)

func Test_a_worker_that_comes_or_goes_moves_a_fair_share_of_hosts_and_no_other(t *testing.T) {
	t.Parallel()
	// So many hosts that 1.2 times the fair share is three standard deviations
	// of the hash away from it.
	const hosts = 800
	f := newFleet(t, false, webfarm.Config{Seed: 5, Hosts: hosts, Pages: 40, Links: 12, Latency: 5 * time.Millisecond, NoRobots: true})
	s := f.serve("--workers", "32")
	f.work("--workers", "32")
	f.work("--workers", "32")
	f.until(20*time.Second, "all workers are there", func() bool { return f.workersIn() == 3 })
	f.order(s, fields{"delay_ms": 10_000})
	three := f.settled(hosts, 3)
	last := f.work("--workers", "32")
	four := f.settled(hosts, 4)
	f.listed(four)
	last.stop()
	again := f.settled(hosts, 3)
	for _, step := range []struct {
		name        string
		from, to    map[string]string
		most, least float64
	}{{"3 to 4", three, four, 1.2 / 4, 0.5 / 4}, {"4 to 3", four, again, 1.2 / 4, 0.5 / 4}} {
		moved := 0
		for host, owner := range step.from {
			if step.to[host] != owner {
				moved++
			}
		}
		t.Logf("%s workers: %d of %d hosts moved", step.name, moved, hosts)
		if share := float64(moved) / hosts; share > step.most || share < step.least {
			t.Errorf("%s workers: %d of %d hosts moved, %.2f is not from %.2f to %.2f", step.name, moved, hosts, share, step.least, step.most)
		}
	}
	f.gaps()
	f.oneOwner()
}

// listed demands that tiptoe workers names the owners with their hosts.
func (f *fleet) listed(owners map[string]string) {
	f.t.Helper()
	want := map[string]int{}
	for _, o := range owners {
		want[o]++
	}
	f.until(10*time.Second, "tiptoe workers says what Redis says", func() bool { // heartbeats are a moment old
		got := map[string]int{}
		for _, w := range f.list() {
			got[w.ID] = w.Hosts
		}
		return maps.Equal(got, want)
	})
}

// list is what tiptoe workers says.
func (f *fleet) list() (all []frontier.Worker) {
	f.t.Helper()
	out, err := exec.Command(binary, "workers", "--redis-url", f.redis.URL(), "--json").Output()
	if err != nil {
		f.t.Fatalf("tiptoe workers: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		var w frontier.Worker
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			f.t.Fatalf("tiptoe workers: %v in %s", err, line)
		}
		all = append(all, w)
	}
	return all
}

// settled waits until all hosts are held, by so many workers, and nothing
// moves any more.
func (f *fleet) settled(hosts, workers int) (owners map[string]string) {
	f.t.Helper()
	var since time.Time
	f.until(90*time.Second, fmt.Sprintf("%d hosts are held by %d workers and stay there", hosts, workers), func() bool {
		now := f.owners()
		distinct := map[string]bool{}
		for _, o := range now {
			distinct[o] = true
		}
		if len(now) != hosts || len(distinct) != workers || !maps.Equal(now, owners) {
			owners, since = now, time.Now()
			return false
		}
		return time.Since(since) > 3*time.Second
	})
	return owners
}

// owners asks Redis which worker holds which host.
func (f *fleet) owners() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for shard := range 8 {
		text, err := f.redis.Do("EVAL", "return cjson.encode(redis.call('HGETALL', KEYS[1]))", "1", fmt.Sprintf("tiptoe:{s%d}:o", shard))
		if err != nil {
			f.t.Fatal(err)
		}
		var list []string
		if strings.HasPrefix(text, "[") {
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				f.t.Fatal(err)
			}
		}
		for i := 0; i+1 < len(list); i += 2 {
			_, session, _ := strings.Cut(list[i+1], " ")
			worker, _, _ := strings.Cut(session, "/")
			all[list[i]] = worker
		}
	}
	return all
}

// oneOwner demands that no host was asked by two workers at once.
func (f *fleet) oneOwner() {
	f.t.Helper()
	n := number(f, `SELECT count(*) FROM requests a JOIN requests b ON a.pace_group = b.pace_group AND (a.permit & 4095) <> (b.permit & 4095)
		AND b.started_us >= a.started_us AND b.started_us < a.ended_us`)
	if n > 0 {
		f.t.Errorf("%d times a host was asked by two workers at once", n)
	}
}
