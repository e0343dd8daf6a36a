package fleettest

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

func Test_whichever_server_is_asked_she_sees_the_same_and_is_obeyed(t *testing.T) {
	t.Parallel()
	const pace = 500 * time.Millisecond
	const hosts = 12
	f := newFleet(t, false, webfarm.Config{Seed: 13, Hosts: hosts, Pages: 300, Links: 12, Latency: 5 * time.Millisecond, NoRobots: true})
	first := f.serve("--workers", "16")
	f.work("--workers", "16")
	j := f.order(first, fields{"delay_ms": pace.Milliseconds()})
	f.served(2*hosts, 30*time.Second)
	second := f.serve("--workers", "16")
	servers := []*server{first, second}
	if strings.Contains(second.Said(), "job started") {
		t.Fatal("the second server drives the job")
	}

	for _, s := range servers {
		f.wire(s, j.ID, hosts)
		f.until(20*time.Second, "hosts of all three are shown", func() bool { return len(f.holders(s, j.ID)) == 3 })
		f.owned(s, j.ID)
	}
	f.samePicture(servers, j.ID)
	if n, err := f.redis.Do("STRLEN", redisKey("show:"+j.ID)); err != nil || len(n) > 4 {
		t.Errorf("%s bytes are shown: %v", n, err)
	} else {
		t.Logf("%s bytes are shown", n)
	}
	f.engines(servers)
	f.follows(second, j.ID)
	f.sameStory(servers, j.ID)

	promptly := func(s *server, order, want string) {
		t.Helper()
		begun := time.Now()
		var got client.Job
		if err := json.Unmarshal([]byte(f.post(s, "/v1/jobs/"+j.ID+"/"+order, nil)), &got); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		t.Logf("%s took %s", order, took.Round(time.Millisecond))
		if got.Status != want || took > 4*time.Second {
			t.Errorf("%s: %s after %s", order, got.Status, took)
		}
		for _, s := range servers {
			if now, _ := f.job(s, j.ID); now.Status != got.Status && order != "resume" {
				t.Errorf("%s: %s is what another server says", order, now.Status)
			}
		}
	}
	promptly(second, "pause", "paused")
	promptly(second, "resume", "queued")
	f.until(20*time.Second, "it runs again", func() bool { j, _ := f.job(first, j.ID); return j.Status == "running" })
	drives := second // the one that gave it its new slot, or the first
	if !strings.Contains(second.Said(), "job started") {
		drives = first
	}
	promptly(servers[1-slices.Index(servers, drives)], "cancel", "cancelled")
	f.gaps()
}

type livePicture struct {
	Running  bool
	At       time.Time
	Queued   int64
	Progress struct {
		Processed int64
		Rate      float64 `json:"pages_per_second"`
	}
	Binding *string
	Waits   []struct {
		Reason      string
		Hosts, URLs int64
	}
}

// samePicture demands that a job's figures differ between servers by no more
// than happens in some seconds, and says how old they are.
func (f *fleet) samePicture(servers []*server, job string) {
	f.t.Helper()
	var seen [2]livePicture
	for i, s := range servers {
		f.get(s, "/v1/jobs/"+job+"/live", &seen[i])
		if old := time.Since(seen[i].At); old > 4*time.Second || !seen[i].Running || seen[i].Binding == nil || len(seen[i].Waits) == 0 {
			f.t.Errorf("%s old: %+v", old, seen[i])
		}
		var list struct{ Items []client.Job }
		f.get(s, "/v1/jobs", &list)
		if len(list.Items) != 1 || list.Items[0].Progress.PagesPerSec == nil || *list.Items[0].Progress.PagesPerSec == 0 {
			f.t.Errorf("the list of jobs has %+v", list.Items)
		}
		var series struct{ Points []struct{ At time.Time } }
		f.get(s, "/v1/jobs/"+job+"/series", &series)
		if len(series.Points) < 3 {
			f.t.Errorf("its story has %d points", len(series.Points))
		}
	}
	a, b := seen[0].Progress, seen[1].Progress
	if a.Processed == 0 || max(a.Processed-b.Processed, b.Processed-a.Processed) > 150 || b.Rate < a.Rate/2 || b.Rate > a.Rate*2 {
		f.t.Errorf("one server says %+v, the other %+v", a, b)
	}
	f.t.Logf("%d and %d pages, %.1f and %.1f a second", a.Processed, b.Processed, a.Rate, b.Rate)
}

var ahead = regexp.MustCompile(`(\d+) URLs? of its host before it`)

// sameStory demands that a waiting URL waits for the same, whoever is asked.
// What is at the head of its queue, only the worker that has its host knows.
func (f *fleet) sameStory(servers []*server, job string) {
	f.t.Helper()
	compared, i := 0, 0
	for u := range f.farm.URLs() {
		if i++; i%7 > 0 || compared == 6 {
			continue
		}
		one, behind := f.storyOf(servers[0], job, u)
		if behind < 5 {
			continue
		}
		compared++
		f.until(10*time.Second, u+": both servers say "+one, func() bool { // its host may just change hands
			one, _ = f.storyOf(servers[0], job, u)
			other, _ := f.storyOf(servers[1], job, u)
			return one == other
		})
	}
	if compared < 3 {
		f.t.Errorf("%d waiting URLs were compared", compared)
	}
}

// storyOf is what a server says of a URL, and how many it says are before it.
func (f *fleet) storyOf(s *server, job, u string) (text string, behind int) {
	f.t.Helper()
	var x struct {
		Fate  string
		Waits *struct {
			For string `json:"for"`
		}
		Host *struct{ Worker string }
	}
	f.get(s, "/v1/jobs/"+job+"/explain?url="+url.QueryEscape(u), &x)
	if x.Waits == nil || x.Host == nil {
		return x.Fate, 0
	}
	if m := ahead.FindStringSubmatch(x.Waits.For); m != nil {
		behind, _ = strconv.Atoi(m[1])
	}
	return x.Fate + " for " + ahead.ReplaceAllString(x.Waits.For, "some before it") + ", at " + x.Host.Worker, behind
}

// engines demands that the machine as a whole is the fleet.
func (f *fleet) engines(servers []*server) {
	f.t.Helper()
	for _, s := range servers {
		f.until(15*time.Second, "the machine is three processes that fetch", func() bool {
			var e struct {
				Processes, Hosts int
				Rate             float64 `json:"pages_per_second"`
				Layers           []struct{ Limit int64 }
				Waiting          []struct{ Hosts, URLs int }
			}
			f.get(s, "/v1/engine", &e)
			waiting := 0
			for _, w := range e.Waiting {
				waiting += w.Hosts
			}
			return e.Processes == 3 && e.Hosts == 12 && e.Rate > 5 && e.Layers[0].Limit == 3*16 && waiting > 8
		})
	}
}

// follows demands that a job's stream at a server that does not drive it tells
// of pages and of figures.
func (f *fleet) follows(s *server, job string) {
	f.t.Helper()
	c, err := client.New(s.base, f.key)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	begun, lives, pages := time.Now(), 0, 0
	for e, err := range c.Events(ctx, job, "") {
		if err != nil {
			f.t.Fatal(err)
		}
		if time.Since(begun) > time.Second { // what was there before does not count
			switch e.Type {
			case "live":
				lives++
			case "page":
				pages++
			}
		}
		if lives >= 2 && pages >= 5 {
			break
		}
	}
	f.t.Logf("%d pictures and %d pages in %s", lives, pages, time.Since(begun).Round(time.Millisecond))
}
