package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/webfarm"
)

// arrivals is a site whose pages are all linked from its home page, and which
// writes down when it was asked for what.
type arrivals struct {
	*httptest.Server

	mu   sync.Mutex
	list []arrival
	came chan arrival
}

type arrival struct {
	at   time.Time
	path string
}

// newArrivals starts the site. Before it answers, first is asked, if there is
// one, and says whether it has.
func newArrivals(t *testing.T, pages int, first func(w http.ResponseWriter, r *http.Request) bool) *arrivals {
	a := &arrivals{came: make(chan arrival, 10_000)}
	var home strings.Builder
	home.WriteString("<!doctype html><title>home</title>")
	for i := range pages {
		fmt.Fprintf(&home, `<a href="/p/%d">%[1]d</a>`, i)
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := arrival{time.Now(), r.URL.Path}
		a.mu.Lock()
		a.list = append(a.list, now)
		a.mu.Unlock()
		a.came <- now
		if first != nil && first(w, r) {
			return
		}
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/":
			fmt.Fprint(w, home.String())
		case strings.HasPrefix(r.URL.Path, "/p/"):
			fmt.Fprintf(w, "<!doctype html><title>page</title>%s", r.URL.Path)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// wait returns the next arrival.
func (a *arrivals) wait(t *testing.T, p *process) arrival {
	t.Helper()
	select {
	case got := <-a.came:
		return got
	case <-time.After(30 * time.Second):
		t.Fatalf("nobody came; tiptoe said:\n%s", p.Stderr)
		return arrival{}
	}
}

// shortest returns the smallest time between two arrivals, and their number.
func (a *arrivals) shortest() (time.Duration, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	least := time.Hour
	for i := 1; i < len(a.list); i++ {
		least = min(least, a.list[i].at.Sub(a.list[i-1].at))
	}
	return least, len(a.list)
}

// lateness is how much later than it was sent a request may arrive on a busy
// machine, so that the next one seems to come too early. A forgotten clock
// shows as a gap of the time a process needs to start, which is far shorter
// than what is left.
const lateness = 150 * time.Millisecond

func Test_a_killed_crawl_still_owes_the_gap_when_it_is_resumed(t *testing.T) {
	t.Parallel()
	const gap, rounds = 700 * time.Millisecond, 6
	_, draw := seeded(t)
	site := newArrivals(t, 100, nil)
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"crawl", site.URL + "/", "--delay", gap.String(), "--seeding", "none"}
	for n := range rounds {
		p := start(t, dir, args...)
		site.wait(t, p)
		site.wait(t, p)
		if n%2 == 1 { // else at once, when most is owed
			time.Sleep(time.Duration(draw.Int64N(int64(gap))))
		}
		if !p.Kill() {
			t.Fatalf("it had ended; tiptoe said:\n%s", p.Stderr)
		}
		args = []string{"resume"}
	}
	least, requests := site.shortest()
	t.Logf("%d requests over %d processes, smallest gap %s of %s", requests, rounds, least.Round(time.Millisecond), gap)
	if least < gap-lateness {
		t.Errorf("two requests within %s; %s is the least", least, gap)
	}
}

// Short gaps cannot be judged from a busy machine's sockets; here the ledger
// is taken at its word about when each request was written to the wire.
func Test_over_random_kills_the_ledger_shows_no_two_starts_closer_than_the_gap(t *testing.T) {
	t.Parallel()
	const gap, restarts = 30 * time.Millisecond, 8
	seed, draw := seeded(t)
	farm, err := webfarm.Start(webfarm.Config{Seed: seed, Pages: 150, NoRobots: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"crawl", farm.Seeds()[0], "--delay", gap.String(), "--seeding", "none"}
	for range restarts {
		p := start(t, dir, args...)
		p.until(20*time.Second, "it has begun", func() bool { return resumable(dir) })
		select {
		case <-p.Ended:
			t.Fatalf("it ended by itself; tiptoe said:\n%s", p.Stderr)
		case <-time.After(time.Duration(draw.Int64N(int64(400 * time.Millisecond)))):
		}
		p.Kill()
		args = []string{"resume"}
	}
	p := start(t, dir, args...)
	if code := p.wait(time.Minute); code != 0 {
		t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	rows := requestsOf(t, dir)
	slices.SortFunc(rows, func(a, b ledger.Request) int { return a.Started.Compare(b.Started) })
	least := time.Hour
	for i := range rows[1:] {
		least = min(least, rows[i+1].Started.Sub(rows[i].Started))
	}
	books := farm.Books()
	t.Logf("%d requests over %d processes, %d of them in the ledger, smallest gap %s of %s", books.Requests, restarts+1, len(rows), least, gap)
	if least < gap {
		t.Errorf("two starts within %s; %s is the least", least, gap)
	}
	if books.Missing != 0 || int64(len(rows)) > books.Requests {
		t.Errorf("%d pages are missing; the ledger has %d requests, the farm saw %d", books.Missing, len(rows), books.Requests)
	}
}

func Test_a_Retry_After_outlives_kill_9(t *testing.T) {
	t.Parallel()
	const asked = 4 * time.Second
	var once sync.Once
	site := newArrivals(t, 5, func(w http.ResponseWriter, r *http.Request) (done bool) {
		if r.URL.Path != "/p/0" {
			return false
		}
		once.Do(func() {
			w.Header().Set("Retry-After", strconv.Itoa(int(asked.Seconds())))
			http.Error(w, "not now", http.StatusTooManyRequests)
			done = true
		})
		return done
	})
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir, "crawl", site.URL+"/", "--delay", "50ms", "--per-host", "1", "--seeding", "none")
	var throttled time.Time
	for throttled.IsZero() {
		if got := site.wait(t, p); got.path == "/p/0" {
			throttled = got.at
		}
	}
	// What is not yet written cannot be remembered: the evidence and the
	// clocks are of one commit.
	l := openLedger(t, dir)
	p.until(10*time.Second, "the 429 is in the ledger", func() bool {
		all, err := l.Evidence(context.Background(), 1, site.URL+"/p/0")
		return err == nil && slices.ContainsFunc(all, func(e ledger.Evidence) bool { return e.Type == "throttled" })
	})
	// The ledger comes first, the frontier's clocks within the same breath.
	time.Sleep(300 * time.Millisecond)
	if !p.Kill() {
		t.Fatalf("it had ended; tiptoe said:\n%s", p.Stderr)
	}
	p = start(t, dir, "resume")
	next := site.wait(t, p)
	waited := next.at.Sub(throttled)
	t.Logf("the server asked for %s; the next request came after %s", asked, waited.Round(time.Millisecond))
	if waited < asked {
		t.Errorf("a request came %s after a Retry-After of %s", waited, asked)
	}
	if code := p.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
}
