package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// names is one server with many names, which keeps one book for all of them.
type names struct {
	*httptest.Server
	port string
	took time.Duration

	mu       sync.Mutex
	arrivals []arrival
	inFlight int
	most     int
}

type arrival struct {
	at         time.Time
	host, path string
}

// site answers a request that was booked.
type site func(w http.ResponseWriter, r *http.Request, name string)

func serveNames(t *testing.T, took time.Duration, answer site) *names {
	t.Helper()
	n := &names{took: took}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.Host, ":")
		n.mu.Lock()
		n.arrivals = append(n.arrivals, arrival{time.Now(), name, r.URL.Path})
		n.inFlight++
		n.most = max(n.most, n.inFlight)
		n.mu.Unlock()
		time.Sleep(n.took)
		n.mu.Lock()
		n.inFlight-- // before the answer is out: the client cannot know sooner
		n.mu.Unlock()
		answer(w, r, name)
	}))
	t.Cleanup(n.Server.Close)
	_, n.port, _ = net.SplitHostPort(n.Listener.Addr().String())
	return n
}

func (n *names) url(name string) string { return "http://" + name + ":" + n.port + "/" }

// web is how to reach the names; a gap of gap, two in flight.
func (n *names) web(gap time.Duration) config.Web {
	return config.Web{Profile: "polite", Delay: &config.Delay{Min: gap, Max: gap}, UserAgent: "tiptoe/1.0", Timeout: 10 * time.Second,
		MaxBody: 1 << 20, MaxRedirects: 10, RelNofollow: "follow", Client: config.Client{Resolve: []string{"*:" + n.port + ":127.0.0.1"}}}
}

func (n *names) spec(t *testing.T, w config.Web, urls ...string) crawl.Spec {
	t.Helper()
	var seeds []config.Seed
	for _, u := range urls {
		s, err := config.ParseSeed(u, "test")
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, s)
	}
	spec, err := config.Spec(&w, &config.Bounds{Depth: -1, Scope: "host", Seeding: "sitemap"}, seeds)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func machine() config.Machine {
	return config.Machine{Process: config.Process{Workers: 64, Parsers: 8, RobotsSlots: 64, FrontierURLs: 100_000, ReadyHosts: 10_000, BodyBytes: 1 << 24},
		Seen: config.Seen{SeenURLs: 100_000, SeenLookups: 64}}
}

// crawlAll runs a crawl in dir to its end and returns its requests.
func crawlAll(t *testing.T, dir string, w config.Web, spec crawl.Spec) (crawl.Summary, []ledger.Request) {
	t.Helper()
	a, err := Open(Settings{Dir: dir, Machine: machine(), Web: w, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := a.Engine.Start(ctx, spec, crawl.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx) }()
	sum, err := run.Supervise(ctx)
	cancel()
	if eerr := <-ended; err != nil || eerr != nil {
		t.Fatal(err, eerr)
	}
	var all []ledger.Request
	for r, err := range a.Ledger.Requests(context.Background(), sum.Crawl) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return sum, all
}

// keeps demands the gap between all arrivals. Arrivals are seen when the
// server's goroutine runs, so a single one may look early by slack; over any
// longer stretch that does not add up.
func (n *names) keeps(t *testing.T, gap, slack time.Duration) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for from := range n.arrivals {
		for _, k := range []int{5, 20, 50} {
			if from+k >= len(n.arrivals) {
				continue
			}
			d, owed := n.arrivals[from+k].at.Sub(n.arrivals[from].at), time.Duration(k)*gap
			if d < owed-slack {
				t.Fatalf("%d requests within %s, from %v to %v; %s owed", k+1, d, n.arrivals[from], n.arrivals[from+k], owed)
			}
		}
	}
}

const (
	fifty    = 50
	gap      = 25 * time.Millisecond
	slack    = 100 * time.Millisecond // a busy machine wakes the server late
	oneDelay = 400 * time.Millisecond
)

// fiftyNames serves fifty names with two pages each; h03 is closed and h07
// asks for a Crawl-delay.
func fiftyNames(t *testing.T) (*names, []string) {
	n := serveNames(t, 60*time.Millisecond, func(w http.ResponseWriter, r *http.Request, name string) {
		switch {
		case r.URL.Path == "/robots.txt" && strings.HasPrefix(name, "h03."):
			fmt.Fprint(w, "User-agent: *\nDisallow: /")
		case r.URL.Path == "/robots.txt" && strings.HasPrefix(name, "h07."):
			fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %g", oneDelay.Seconds())
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=/2>two</a>")
		case r.URL.Path == "/2":
		default:
			http.NotFound(w, r)
		}
	})
	var seeds []string
	for i := range fifty {
		seeds = append(seeds, n.url(fmt.Sprintf("h%02d.example.test", i)))
	}
	return n, seeds
}

func Test_fifty_names_of_one_server_are_paced_as_one(t *testing.T) {
	for name, set := range map[string]func(*config.Web){
		"by address":                func(w *config.Web) { w.Group = "ip" },
		"by a name of the operator": func(w *config.Web) { w.Groups = []string{"shared=*.example.test"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, seeds := fiftyNames(t)
			w := n.web(gap)
			set(&w)
			spec := n.spec(t, w, seeds...)
			spec.Seeding = nil
			sum, requests := crawlAll(t, filepath.Join(t.TempDir(), "d"), w, spec)
			if want := int64(2 * (fifty - 1)); sum.Status != ledger.Completed || sum.Counters.Successful != want || sum.Counters.Blocked != 1 {
				t.Fatalf("%+v", sum)
			}
			n.keeps(t, gap, slack)
			if n.most > 2 {
				t.Errorf("%d in flight at the server, the cap is 2", n.most)
			}
			n.checkOrigins(t)
			group := "127.0.0.1"
			if len(w.Groups) > 0 {
				group = "@shared"
			}
			for i, r := range requests {
				if r.Group != group {
					t.Fatalf("a request of group %q, want %q", r.Group, group)
				}
				if i > 0 && r.Started.Sub(requests[i-1].Started) < gap {
					t.Errorf("%s between two starts by our own log", r.Started.Sub(requests[i-1].Started))
				}
			}
			if len(requests) != len(n.arrivals) {
				t.Errorf("%d requests in the log, %d at the server", len(requests), len(n.arrivals))
			}
			t.Logf("%d requests", len(requests))
		})
	}
}

// checkOrigins demands that each name's robots.txt was asked for first and
// obeyed, and its Crawl-delay kept.
func (n *names) checkOrigins(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	paths := map[string][]string{}
	last := time.Time{}
	for _, a := range n.arrivals {
		paths[a.host] = append(paths[a.host], a.path)
		if !strings.HasPrefix(a.host, "h07.") {
			continue
		}
		if !last.IsZero() && a.at.Sub(last) < oneDelay-slack {
			t.Errorf("%v came %s after the last request to that name; its Crawl-delay is %s", a, a.at.Sub(last), oneDelay)
		}
		last = a.at
	}
	if len(paths) != fifty {
		t.Errorf("%d names were asked", len(paths))
	}
	for host, got := range paths {
		want := []string{"/robots.txt", "/", "/2"}
		if strings.HasPrefix(host, "h03.") {
			want = want[:1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s was asked for %v, want %v", host, got, want)
		}
	}
}
