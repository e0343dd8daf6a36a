package story

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// limited is a site with a rate limit that writes down every request.
type limited struct {
	url   string
	host  string
	limit webfarm.RateLimit
	pages int

	mu          sync.Mutex
	bucket      webfarm.Bucket
	begun       time.Time
	log         []seen
	inFlight    int
	mostAtOnce  int
	serverError error
}

func startLimited(t *testing.T, limit webfarm.RateLimit, pages int) *limited {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{url: "http://" + ln.Addr().String() + "/", host: ln.Addr().String(), limit: limit, pages: pages, begun: time.Now()}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := srv.Serve(ln); err != http.ErrServerClosed {
			s.serverError = err
		}
	}()
	t.Cleanup(func() {
		srv.Close()
		if <-ended; s.serverError != nil {
			t.Error(s.serverError)
		}
	})
	return s
}

// ServeHTTP admits what the bucket lets through: a home page with a link to
// every other page, the pages, no robots.txt.
func (s *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := time.Since(s.begun)
	s.inFlight++
	s.mostAtOnce = max(s.mostAtOnce, s.inFlight)
	status := http.StatusOK
	if ok, _ := s.bucket.Take(at, s.limit); !ok {
		status = http.StatusTooManyRequests
	} else if r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml" {
		status = http.StatusNotFound
	}
	s.log = append(s.log, seen{at, status, r.URL.Path})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	if status == http.StatusOK && r.URL.Path == "/" {
		for i := 1; i < s.pages; i++ {
			fmt.Fprintf(w, "<a href=/p/%d>%d</a>\n", i, i)
		}
	} else {
		fmt.Fprint(w, "<p>Text.")
	}
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
}

func (s *limited) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.log...)
}

func (s *limited) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mostAtOnce
}

// The story that began this project: 22 workers, 500 URLs, a server that
// answers 429 above its limit, and everybody else's crawl waiting behind it.
func Test_22_workers_learn_the_limit_of_500_urls_and_the_host_beside_it_does_not_notice(t *testing.T) {
	t.Parallel()
	const perSecond, pages = 10, 500
	hasty := []string{"crawl", "--workers", "22", "--per-host", "22", "--delay", "0"}
	// Answers take 100 ms, so that 22 workers are what limits the free host,
	// and not a processor that the tests share.
	free, err := webfarm.Start(webfarm.Config{Seed: 1, Pages: 2000, Links: 60, Fanout: 50, Latency: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free.Close)
	speed := func() float64 {
		b := free.Books()
		if b.Missing != 0 || b.Duplicates != 0 || b.Throttled != 0 {
			t.Fatalf("the free host: %d pages missing, %d served twice, %d answers of 429", b.Missing, b.Duplicates, b.Throttled)
		}
		return float64(b.Requests) / b.SpanSeconds
	}
	start(t, t.TempDir(), append(hasty, free.Seeds()...)...).complete(3 * time.Minute)
	alone := speed()
	free.Reset()

	m := startMeter(t)
	mark := m.mark()
	s := startLimited(t, webfarm.RateLimit{PerSecond: perSecond, Burst: 1}, pages)
	dir := t.TempDir()
	start(t, dir, append(hasty, s.url, free.Seeds()[0])...).complete(5 * time.Minute)
	beside := speed()

	all := s.requests()
	a := accountOf(all)
	_, st := learned(t, dir, s.host)
	t.Logf("limited host: %s; learned %s", a, st.Learned)
	t.Logf("free host: %.0f requests/s alone, %.0f beside the limited one", alone, beside)
	if a.pages != pages || a.twice != 0 {
		t.Errorf("%d of %d pages served, %d of them twice", a.pages, pages, a.twice)
	}
	if beside < 0.85*alone {
		t.Errorf("the free host was crawled at %.0f requests/s, alone at %.0f", beside, alone)
	}
	// The first answers of 429 find 22 requests on their way; after them one
	// for each probe that went too far, and none when the search is over.
	if a.throttled > 22+12 {
		t.Errorf("%d answers of 429: more than a handful", a.throttled)
	}
	excused := a.keepsPace(t, m, mark, perSecond)
	half := accountOf(all[len(all)/2:])
	if half.throttled > excused {
		t.Errorf("%d of the last %d requests were still answered with 429", half.throttled, half.requests)
	}
	if n := s.most(); n > 22 {
		t.Errorf("%d requests in flight at once", n)
	}
}
