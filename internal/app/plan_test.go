package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/plan"
	"tiptoe/internal/politeness"
)

// planned serves two names with sitemaps (one an index) and one without.
func planned(t *testing.T) *names {
	n := serveNames(t, time.Millisecond, func(w http.ResponseWriter, r *http.Request, name string) {
		base := "http://" + r.Host
		urls := func(from, to int) {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, "<urlset>")
			for i := from; i < to; i++ {
				fmt.Fprintf(w, "<url><loc>%s/p%d</loc></url>", base, i)
			}
			fmt.Fprintf(w, "<url><loc>%s/closed/x</loc></url><url><loc>http://elsewhere.example/</loc></url></urlset>", base)
		}
		switch name + r.URL.Path {
		case "map.test/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nDisallow: /closed/\nSitemap: %s/index.xml", base)
		case "map.test/index.xml":
			fmt.Fprintf(w, "<sitemapindex><sitemap><loc>%s/a.xml</loc></sitemap><sitemap><loc>%s/b.xml</loc></sitemap></sitemapindex>", base, base)
		case "map.test/a.xml":
			urls(0, 30)
		case "map.test/b.xml":
			urls(20, 40) // ten of them again
		case "slow.test/robots.txt":
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 0.2")
		case "slow.test/sitemap.xml":
			urls(0, 9)
		default:
			if strings.HasPrefix(r.URL.Path, "/p") || r.URL.Path == "/" {
				return
			}
			http.NotFound(w, r)
		}
	})
	return n
}

func (n *names) plan(t *testing.T, dir string, spec func(*crawl.Spec), urls ...string) plan.Plan {
	t.Helper()
	w := n.web(20 * time.Millisecond)
	s := n.spec(t, w, urls...)
	if spec != nil {
		spec(&s)
	}
	p, err := Plan(t.Context(), Settings{Dir: dir, Machine: machine(), Web: w, Log: slog.New(slog.DiscardHandler)}, s, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (n *names) asked() (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.arrivals {
		list = append(list, a.host+a.path)
	}
	slices.Sort(list)
	return list
}

func Test_a_plan_asks_for_robots_and_sitemaps_and_nothing_else(t *testing.T) {
	n := planned(t)
	dir := filepath.Join(t.TempDir(), "never")
	p := n.plan(t, dir, nil, n.url("map.test"), n.url("slow.test"), n.url("none.test"))
	want := []string{"map.test/a.xml", "map.test/b.xml", "map.test/index.xml", "map.test/robots.txt",
		"none.test/robots.txt", "none.test/sitemap.xml", "slow.test/robots.txt", "slow.test/sitemap.xml"}
	if got := n.asked(); !slices.Equal(got, want) {
		t.Errorf("asked for %v,\nwant %v", got, want)
	}
	if p.Asked != int64(len(want)) || p.Cut {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was touched: %v", err)
	}
	by := map[string]plan.HostPlan{}
	for _, h := range p.Hosts {
		by[strings.TrimSuffix(h.Name, ":"+n.port)] = h
	}
	if h := by["map.test"]; !h.Known || h.Pages != 41 || h.Closed != 1 || h.Sitemaps != 3 || h.Each != 20*time.Millisecond {
		t.Errorf("map.test: %+v", h) // 40 pages and the seed; slow.test closes nothing
	}
	if h := by["slow.test"]; !h.Known || h.Pages != 11 || h.Each != 200*time.Millisecond || h.Why != politeness.WhyCrawlDelay {
		t.Errorf("slow.test: %+v", h)
	}
	if h := by["none.test"]; h.Known || h.Requests != nil || h.Time != nil || h.Pages != 1 {
		t.Errorf("none.test: %+v", h)
	}
	if len(by) != 3 || p.Pages != nil || p.Requests != nil || p.Time != nil || p.Named != 53 {
		t.Errorf("the total of something unknown is unknown: %+v", p)
	}
}

func Test_a_prediction_is_what_the_crawl_then_does(t *testing.T) {
	n := planned(t)
	dir := filepath.Join(t.TempDir(), "d")
	p := n.plan(t, dir, nil, n.url("map.test"), n.url("slow.test"))
	if p.Pages == nil || *p.Pages != 52 || *p.Requests != 58 {
		t.Fatalf("%+v", p)
	}
	n.mu.Lock()
	n.arrivals = nil
	n.mu.Unlock()
	w := n.web(20 * time.Millisecond)
	began := time.Now()
	sum, requests := crawlAll(t, dir, w, n.spec(t, w, n.url("map.test"), n.url("slow.test")))
	took := time.Since(began)
	if sum.Counters.Processed != *p.Pages || int64(len(requests)) != *p.Requests {
		t.Errorf("%d pages in %d requests, predicted %d in %d", sum.Counters.Processed, len(requests), *p.Pages, *p.Requests)
	}
	// Pace bounds it from below; from above only the machine's other work does.
	if took.Seconds() < 0.8*p.Time.Seconds() || took > *p.Time+5*time.Second {
		t.Errorf("it took %s, predicted %s", took, *p.Time)
	}
	t.Logf("predicted %s, took %s", *p.Time, took)
}

func Test_a_plan_starts_from_what_was_learned_and_leaves_its_own_pace_behind(t *testing.T) {
	n := planned(t)
	dir := filepath.Join(t.TempDir(), "d")
	w := n.web(20 * time.Millisecond)
	one := n.spec(t, w, n.url("map.test"))
	one.MaxURLs = 1
	crawlAll(t, dir, w, one)

	host := "map.test:" + n.port
	k, err := OpenKnowledge(t.Context(), config.Stores{Results: config.In(dir)})
	if err != nil {
		t.Fatal(err)
	}
	st, ok, err := k.Of(t.Context(), host)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := st.Teach(time.Now(), 2*time.Second, 0); err != nil {
		t.Fatal(err)
	}
	if err := k.Set(t.Context(), host, st); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	p := n.plan(t, dir, func(s *crawl.Spec) { s.Seeding = nil }, n.url("map.test"))
	if h := p.Hosts[0]; h.Why != politeness.WhyLearned || h.Each < 1900*time.Millisecond || h.Each > 2100*time.Millisecond {
		t.Errorf("%+v", h)
	}
	if p.Asked != 0 {
		t.Errorf("robots.txt was asked for again although a copy is at hand: %d requests", p.Asked)
	}
	k, err = OpenKnowledge(t.Context(), config.Stores{Results: config.In(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if st, ok, err := k.Of(t.Context(), host); err != nil || !ok || st.Learned < 1900*time.Millisecond {
		t.Errorf("after the plan: %+v %v %v", st, ok, err)
	}
}

func Test_a_plan_keeps_away_from_a_host_that_a_running_crawl_is_at(t *testing.T) {
	n := planned(t)
	dir := filepath.Join(t.TempDir(), "d")
	w := n.web(20 * time.Millisecond)
	one := n.spec(t, w, n.url("map.test"))
	one.MaxURLs = 1
	crawlAll(t, dir, w, one)
	a, err := Open(Settings{Dir: dir, Machine: machine(), Web: w, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	settings := Settings{Dir: dir, Machine: machine(), Web: w, Log: slog.New(slog.DiscardHandler)}
	if _, err := Plan(t.Context(), settings, n.spec(t, w, n.url("map.test")), time.Minute); err == nil || !strings.Contains(err.Error(), "is at map.test:"+n.port+" right now") {
		t.Errorf("%v", err)
	}
	if _, err := Plan(t.Context(), settings, n.spec(t, w, n.url("slow.test")), time.Minute); err != nil {
		t.Errorf("another host: %v", err)
	}
}
