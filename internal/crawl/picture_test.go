package crawl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// part is a made-up picture of a worker whose hosts have so many URLs each.
func part(name string, queued ...int64) Picture {
	p := Picture{Counts: HostCounts{Ready: 1, Running: 2, Waiting: 3, Parked: 4, Idle: 5}, Waits: map[string]frontier.Waits{"pace": {Hosts: 2, URLs: 20}, name: {Hosts: 1, URLs: 1}},
		Layers:      []Layer{{"workers", 3, 16}, {layerBusiest, 1, 2}, {layerCommit, 10, 50}},
		Uncommitted: 2, BytesPerSec: 100}
	for i, n := range queued {
		p.Hosts = append(p.Hosts, HostStatus{Host: fmt.Sprintf("h%d.%s.example", i, name), State: "waiting", Queued: n, Recent: 1 / float64(n+1)})
	}
	p.Of(name)
	return p
}

func Test_the_pictures_of_many_workers_make_one_of_the_fleet(t *testing.T) {
	now := time.Now()
	a, b := part("a", 5, 50, 0), part("b", 40, 4)
	a.Soonest, b.Soonest = now.Add(time.Minute), now.Add(time.Second)
	b.Slowest, b.SlowestFor = "h0.b.example: 40 URLs, one every 1s", 40*time.Second
	b.Layers[1], b.Layers[2] = Layer{"", 2, 2}, Layer{"", 5, 50}
	a.add(&b)
	if a.Counts != (HostCounts{2, 4, 6, 8, 10}) || a.Uncommitted != 4 || a.BytesPerSec != 200 {
		t.Errorf("%+v", a)
	}
	if !slices.Equal(a.Layers, []Layer{{"workers", 6, 32}, {layerBusiest, 2, 2}, {layerCommit, 10, 50}}) {
		t.Errorf("layers %+v", a.Layers)
	}
	if w := waits(a.Waits); !slices.Equal(w, []WaitingFor{{"a", 1, 1}, {"b", 1, 1}, {"pace", 4, 40}}) {
		t.Errorf("waits %+v", w)
	}
	if !a.Soonest.Equal(now.Add(time.Second)) || a.SlowestFor != 40*time.Second || !strings.HasPrefix(a.Slowest, "h0.b") {
		t.Errorf("soonest %s, slowest %s %s", a.Soonest, a.Slowest, a.SlowestFor)
	}
	names := func(list []HostStatus) (s []string) {
		for _, h := range list {
			s = append(s, h.Worker+":"+h.Host[:2])
		}
		return s
	}
	if got := strings.Join(names(a.longest()), " "); got != "a:h1 b:h0 a:h0 b:h1" {
		t.Errorf("longest queues: %s", got)
	}
	if got := strings.Join(names(a.busiest()), " "); got != "a:h2 b:h1 a:h0 b:h0 a:h1" {
		t.Errorf("busiest: %s", got)
	}
}

func Test_a_status_of_a_fleet_counts_and_names_what_all_its_workers_do(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites["http://a.example/"] = page("")
		_, err := w.crawl(plainSpec("http://a.example/"), func(r *Run) {
			own, p := r.Status(), part("b", 900)
			p.Layers = nil // of another version
			r.SetShared(&Shared{Pending: 1000, InHand: 60, InFlight: 20, Parked: 4, Tally: Tally{Counters: ledger.Counters{Processed: 77}}, Rate: 9, Pictures: []Picture{p}})
			st := r.Status()
			if st.Queued != 960 || st.InFlight != 20 || st.Processed != 77 || st.PagesPerSec != 9 || st.Hosts.Parked != own.Hosts.Parked+4 {
				t.Errorf("%+v", st)
			}
			if len(st.Waiting) == 0 || st.Waiting[0].Host != "h0.b.example" || st.Waiting[0].Worker != "b" || !strings.HasPrefix(st.Binding, "9") {
				t.Errorf("waiting %+v; %s", st.Waiting, st.Binding)
			}
			if len(st.Layers) != len(own.Layers) || st.Layers[0].Name != "workers" {
				t.Errorf("layers %+v", st.Layers)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func Test_a_picture_is_small_however_many_hosts_there_are(t *testing.T) {
	p := part("a")
	for i := range 2 * shownHosts { // as many as it ever has
		p.Hosts = append(p.Hosts, HostStatus{Host: fmt.Sprintf("host%03d.some-shop.example.com", i), State: "waiting", Queued: 12345, InFlight: 2, Cap: 2,
			Gap: 350 * time.Millisecond, Until: time.Now(), Reason: "pace: one request every 350ms (configured delay)", Recent: 2.857})
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of %d hosts, %d a host", len(b), len(p.Hosts), len(b)/len(p.Hosts))
	if len(b) > 8<<10 {
		t.Errorf("a picture of %d bytes; 8 KiB is the most that is meant", len(b))
	}
}

func Test_the_engines_of_a_fleet_make_one_whatever_cannot_be_read(t *testing.T) {
	view := func(used int64, commit time.Duration, reasons ...string) EngineView {
		v := EngineView{Layers: []Layer{{"workers", used, 16}, {layerBusiest, used, 2}, {layerCommit, commit.Milliseconds(), 50}}, CommitEWMA: commit}
		for _, r := range reasons {
			v.Waiting = append(v.Waiting, WaitingFor{r, 2, 20})
		}
		return v
	}
	v, o := view(1, 10*time.Millisecond, "pace", "robots"), view(2, 30*time.Millisecond, "block", "pace")
	text, err := o.Shown()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Add(text); err != nil {
		t.Fatal(err)
	}
	if err := v.Add([]byte(`{"l":[{"u":1,"l":1}],"w":[{"r":"new","h":1,"u":1}]}`)); err != nil { // another version
		t.Fatal(err)
	}
	if v.Add([]byte("?")) == nil {
		t.Error("nonsense was added")
	}
	if !slices.Equal(v.Layers, []Layer{{"workers", 3, 32}, {layerBusiest, 2, 2}, {layerCommit, 30, 50}}) || v.CommitEWMA != 30*time.Millisecond {
		t.Errorf("%+v", v)
	}
	if !slices.Equal(v.Waiting, []WaitingFor{{"block", 2, 20}, {"new", 1, 1}, {"pace", 4, 40}, {"robots", 2, 20}}) {
		t.Errorf("%+v", v.Waiting)
	}
}
