package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/ledger"
)

func Test_every_answer_carries_the_security_headers(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Dashboard = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<p>hello") })
	})
	for path, api := range map[string]bool{"/v1/health": true, "/v1/me": true, "/v1/nothing": true, "/v1/openapi.json": true, "/": false, "/app.js": false} {
		for _, key := range []string{w.ann, ""} {
			h := w.do(key, "GET", path, "").header
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s: %v", path, h)
			}
			if api && (h.Get("Cache-Control") != "no-store" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'")) {
				t.Errorf("%s: %v", path, h)
			}
			for name := range h {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s lets other sites in: %s", path, name)
				}
			}
		}
	}
	if a := w.do("", "GET", "/", ""); a.status != 200 || a.body != "<p>hello" {
		t.Errorf("the dashboard: %+v", a)
	}
	if a := w.do("", "GET", "/x/../v1/jobs", ""); a.status == 200 && a.body != "<p>hello" {
		t.Errorf("a way round the key: %+v", a)
	}
}

func Test_a_stranger_s_name_for_this_machine_is_refused(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.Hosts = []string{"Crawler.Internal"} })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1": 200, "127.0.0.1:9": 200, "[::1]": 200, "[::1]:8080": 200, "crawler.internal:8080": 200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "0.0.0.0": 421, "": 421,
	} {
		r, _ := http.NewRequest("GET", "/v1/me", nil)
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+w.ann)
		if got := w.direct(r).status; got != want {
			t.Errorf("Host %q: %d, not %d", host, got, want)
		}
	}
	free := newWorld(t, openSQLite(t), func(c *Config) { c.Loopback = false })
	if a := free.do(free.ann, "GET", "/v1/me", "", "Host", "crawl.example"); a.status != 200 {
		t.Errorf("not bound to loopback: %+v", a)
	}
}

// direct calls the handler without a connection.
func (w *world) direct(r *http.Request) answer {
	rec := &memory{header: http.Header{}}
	w.api.ServeHTTP(rec, r)
	return answer{status: rec.status, header: rec.header, body: rec.body.String()}
}

type memory struct {
	header http.Header
	status int
	body   strings.Builder
}

func (m *memory) Header() http.Header  { return m.header }
func (m *memory) WriteHeader(code int) { m.status = code }
func (m *memory) Write(b []byte) (int, error) {
	if m.status == 0 {
		m.status = 200
	}
	return m.body.Write(b)
}

func Test_a_body_that_is_too_large_is_refused_and_one_that_just_fits_is_not(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	body := func(n int) string {
		b := `{"url":"https://a.example/"}`
		return b + strings.Repeat(" ", n-len(b))
	}
	decode[Job](w, w.do(w.ann, "POST", "/v1/jobs", body(1<<20)), 201)
	w.refused(w.do(w.ann, "POST", "/v1/jobs", body(1<<20+1)), 413)
	w.refused(w.do(w.ann, "POST", "/v1/jobs/x/cancel", strings.Repeat(" ", 1<<20+1)), 413) // also where none is expected
}

func Test_what_is_wrong_with_a_request_is_named(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	for _, c := range []struct {
		method, path, body, kind string
		status                   int
		says                     string
	}{
		{"POST", "/v1/jobs", `{"url":"https://a.example/","pagez":3}`, "", 422, "body.pagez"},
		{"POST", "/v1/jobs", `{"url":"https://a.example/","pages":"many"}`, "", 422, "body.pages"},
		{"POST", "/v1/jobs", `{"url":"https://a.example/","pages":0}`, "", 422, "body.pages"},
		{"POST", "/v1/jobs", `{"url":"https://a.example/","scope":"all"}`, "", 422, "body.scope"},
		{"POST", "/v1/jobs", `{}`, "", 422, "body.url"},
		{"POST", "/v1/jobs", `{"url":"ftp://a.example/"}`, "", 422, "body.url"},
		{"POST", "/v1/jobs", `{"url":"https://u:p@a.example/"}`, "", 422, "body.url"},
		{"POST", "/v1/jobs", `{"url":"https://a.example/","exclude":["re:("]}`, "", 422, "body.exclude"},
		{"POST", "/v1/jobs", `{"url":`, "", 400, "body"},
		{"POST", "/v1/jobs", ``, "", 400, "body"},
		{"POST", "/v1/jobs", `{"url":"https://a.example/"}`, "application/x-www-form-urlencoded", 415, "Content-Type: application/json"},
		{"POST", "/v1/schedules", `{"rule":"24h","job":{"url":"https://a.example/","x":1}}`, "", 422, "body.job.x"},
		{"POST", "/v1/schedules", `{"rule":"7h","job":{"url":"https://a.example/"}}`, "", 422, "body.rule"},
		{"POST", "/v1/fetch", `{}`, "", 422, "url"},
		{"GET", "/v1/jobs?limit=501", "", "", 422, "query.limit"},
		{"GET", "/v1/jobs?limit=0", "", "", 422, "query.limit"},
		{"GET", "/v1/jobs?cursor=x", "", "", 422, "query.cursor"},
		{"GET", "/v1/jobs?status=done", "", "", 422, "query.status"},
		{"GET", "/v1/jobs?stauts=queued", "", "", 422, "query.stauts"},
		{"GET", "/v1/jobs/x/pages?outcome=fine", "", "", 422, "not_found"},
		{"GET", "/v1/jobs/x/pages?status=4xx", "", "", 422, "query.status"},
		{"GET", "/v1/jobs/x/pages?depth=3-1", "", "", 422, "query.depth"},
		{"GET", "/v1/jobs/x/evidence", "", "", 422, "query.url"},
		{"GET", "/v1/jobs/x/export?format=pdf", "", "", 422, "query.format"},
		{"GET", "/v1/usage?month=2026-13", "", "", 422, "query.month"},
		{"GET", "/v1/domains", "", "", 422, "?job="},
		{"GET", "/v1/nothing", "", "", 404, "/v1/openapi.yaml"},
		{"PUT", "/v1/jobs", "", "", 405, "GET, HEAD, POST"},
	} {
		var header []string
		if c.kind != "" {
			header = []string{"Content-Type", c.kind}
		}
		a := w.do(w.ann, c.method, c.path, c.body, header...)
		if detail := w.refused(a, c.status); !strings.Contains(detail, c.says) {
			t.Errorf("%s %s %s: %q does not say %q", c.method, c.path, c.body, detail, c.says)
		}
		if c.status == 405 && a.header.Get("Allow") != c.says {
			t.Errorf("%v", a.header)
		}
	}
}

func Test_nothing_of_a_bad_request_is_echoed_and_faults_are_bounded(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	var fields []string
	for i := range 300 {
		fields = append(fields, fmt.Sprintf(`"f%d":"my-secret"`, i))
	}
	a := w.do(w.ann, "POST", "/v1/jobs", "{"+strings.Join(fields, ",")+"}")
	w.refused(a, 422)
	if strings.Contains(a.body, "my-secret") || len(a.body) > 5000 {
		t.Errorf("%d bytes: %.300s", len(a.body), a.body)
	}
}

func Test_a_key_that_asks_too_often_waits_and_others_do_not(t *testing.T) {
	clock := newClock()
	w := newWorld(t, openSQLite(t), func(c *Config) { c.RatePerSecond, c.RateBurst, c.Now = 2, 4, clock.now })
	for range 4 {
		get[Me](w, w.ann, "/v1/me")
	}
	a := w.do(w.ann, "GET", "/v1/me", "")
	w.refused(a, 429)
	if a.header.Get("Retry-After") != "1" || a.header.Get("RateLimit") != `"key";r=0;t=1` || a.header.Get("RateLimit-Policy") != `"key";q=4;w=2` {
		t.Errorf("%v", a.header)
	}
	get[Me](w, w.bob, "/v1/me")
	get[Me](w, w.annRO, "/v1/me")
	clock.advance(500 * time.Millisecond)
	get[Me](w, w.ann, "/v1/me")
	w.refused(w.do(w.ann, "GET", "/v1/me", ""), 429)
	w.refused(w.do(w.ann, "GET", "/v1/nothing", ""), 429) // whatever is asked for
}

// Whoever does not wait as told is made to, or refusing it would cost the
// crawls as much as answering.
func Test_a_refused_request_is_answered_late_and_holds_nobodys_place(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.RatePerSecond, c.RateBurst, c.MaxRequests = 0.001, 1, 1 })
	get[Me](w, w.ann, "/v1/me")
	took := make(chan time.Duration)
	go func() {
		begun := time.Now()
		w.refused(w.do(w.ann, "GET", "/v1/me", ""), 429)
		took <- time.Since(begun)
	}()
	time.Sleep(refusalPause / 4) // it is being refused by now
	get[Me](w, w.bob, "/v1/me")
	if d := <-took; d < refusalPause {
		t.Errorf("refused after %s", d)
	}
	w.api.Close()
	begun := time.Now()
	w.refused(w.do(w.ann, "GET", "/v1/me", ""), 429)
	if d := time.Since(begun); d > refusalPause/2 {
		t.Errorf("a stopping server waited %s to refuse", d)
	}
}

func Test_buckets_that_are_full_again_are_dropped(t *testing.T) {
	clock := newClock()
	l := newRates(1, 10, clock.now)
	for i := range maxBuckets {
		l.take(fmt.Sprint("early", i))
	}
	clock.advance(time.Second)
	l.take("early0") // as full as before it
	l.take("early0")
	l.take("late")
	if len(l.buckets) != 2 {
		t.Errorf("%d buckets are kept", len(l.buckets))
	}
}

func Test_turns_are_taken_in_order_and_none_is_held_for_longer_than_it_may(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(4, nil)
		begun := time.Now()
		waited := func() time.Duration { return time.Since(begun) }
		one, _ := turns.take(t.Context(), false)
		if _, err := turns.take(t.Context(), false); err != nil || waited() != 0 { // works on for ever
			t.Fatal(err, waited())
		}
		var third, fourth time.Duration
		go func() {
			end, _ := turns.take(t.Context(), false)
			third = waited()
			end()
		}()
		synctest.Wait()
		go func() {
			_, _ = turns.take(t.Context(), false)
			fourth = waited()
		}()
		time.Sleep(3 * time.Millisecond)
		one()
		one()
		synctest.Wait()
		if third != 3*time.Millisecond || fourth != 3*time.Millisecond {
			t.Errorf("the third began after %s, the fourth after %s", third, fourth)
		}
		if end, err := turns.take(t.Context(), false); err != nil || waited() != turnMost {
			t.Errorf("after %s: %v", waited(), err)
		} else {
			end()
		}
		time.Sleep(time.Second) // every turn is over
		if free, _ := turns.state(); free != 2 {
			t.Errorf("%d of two turns are free", free)
		}
		turns.mu.Lock()
		turns.free = 0
		turns.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := turns.take(ctx, false); err == nil {
			t.Error("a turn that nobody gave")
		}
	})
}

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 5, 14, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func Test_more_requests_at_once_than_allowed_are_told_to_come_back(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.MaxRequests = 2
		c.Fetch = func(context.Context, ledger.Tenant, string) (ledger.Page, error) {
			entered <- true
			<-leave
			return ledger.Page{}, nil
		}
	})
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- w.do(w.ann, "POST", "/v1/fetch", bodies["fetchPage"]).status }()
		<-entered
	}
	a := w.do(w.bob, "GET", "/v1/me", "")
	w.refused(a, 503)
	if a.header.Get("Retry-After") == "" {
		t.Error("without Retry-After")
	}
	if a := w.do("", "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("health: %d", a.status)
	}
	close(leave)
	if a, b := <-done, <-done; a != 200 || b != 200 {
		t.Error(a, b)
	}
	get[Me](w, w.bob, "/v1/me")
}

func Test_a_panic_is_logged_with_its_place_and_answered_without(t *testing.T) {
	var seen []string
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Fetch = func(context.Context, ledger.Tenant, string) (ledger.Page, error) { panic("the wheels came off") }
		c.Observe = func(route, method string, status int, _ time.Duration) {
			seen = append(seen, fmt.Sprint(method, " ", route, " ", status))
		}
	})
	r, _ := http.NewRequest("POST", "http://localhost/v1/fetch", strings.NewReader(bodies["fetchPage"]))
	r.Header.Set("Authorization", "Bearer "+w.ann)
	r.Header.Set("Content-Type", "application/json")
	a := w.direct(r)
	w.refused(a, 500)
	if strings.Contains(a.body, "wheels") || strings.Contains(a.body, ".go") {
		t.Errorf("it tells: %s", a.body)
	}
	if log := w.log.String(); !strings.Contains(log, "the wheels came off") || !strings.Contains(log, "guard_test.go") {
		t.Errorf("the log: %s", log)
	}
	if fmt.Sprint(seen) != "[POST /v1/fetch 500]" {
		t.Errorf("%q", seen)
	}
}

func Test_a_client_that_leaves_in_the_middle_of_an_answer_is_no_panic(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	id, crawlID := w.begin(w.ann, "https://a.example/")
	w.crowd(crawlID, 0, 10)
	r, _ := http.NewRequest("GET", "http://localhost/v1/jobs/"+id+"/pages", nil)
	r.Header.Set("Authorization", "Bearer "+w.ann)
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("%v", v)
		}
		if strings.Contains(w.log.String(), "panicked") {
			t.Error(w.log)
		}
	}()
	w.api.ServeHTTP(&deaf{}, r)
}

// deaf takes headers and nothing else.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}
func (d *deaf) WriteHeader(int)           {}
func (d *deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func Test_an_error_that_nobody_foresaw_is_logged_and_not_told(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Fetch = func(context.Context, ledger.Tenant, string) (ledger.Page, error) {
			return ledger.Page{}, errors.New("disk on fire at 10.1.2.3")
		}
	})
	a := w.do(w.ann, "POST", "/v1/fetch", bodies["fetchPage"])
	w.refused(a, 500)
	if strings.Contains(a.body, "fire") || !strings.Contains(w.log.String(), "disk on fire") {
		t.Errorf("%s\n%s", a.body, w.log)
	}
}

func Test_what_is_observed_is_the_pattern_and_never_what_strangers_send(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Observe = func(route, method string, status int, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			seen[fmt.Sprint(method, " ", route, " ", status)]++
		}
	})
	for i := range 5 {
		w.do(w.ann, "GET", fmt.Sprintf("/v1/jobs/j%d", i), "")
		w.do(w.ann, "GET", fmt.Sprintf("/v1/x%d", i), "")
		w.do("", "GET", fmt.Sprintf("/y%d", i), "")
		w.do("", fmt.Sprintf("M%d", i), "/v1/jobs", "")
	}
	w.do("", "GET", "/healthz", "")
	w.do(w.ann, "GET", "/v1/me", "")
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"GET /v1/jobs/{id} 404": 5, "GET none 404": 5, "GET none 401": 5, "other none 401": 5, "GET /healthz 200": 1, "GET /v1/me 200": 1}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("%v", seen)
	}
}

func Test_a_client_that_trickles_its_body_is_cut_and_one_that_waits_long_for_its_answer_is_not(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.WriteTimeout = 50 * time.Millisecond
		c.Fetch = func(ctx context.Context, _ ledger.Tenant, _ string) (ledger.Page, error) {
			select { // longer than the time for the body
			case <-ctx.Done():
				return ledger.Page{}, ctx.Err()
			case <-time.After(200 * time.Millisecond):
				return ledger.Page{URL: "https://a.example/"}, nil
			}
		}
	})
	decode[Page](w, w.do(w.ann, "POST", "/v1/fetch", bodies["fetchPage"]), 200)

	conn, err := net.Dial("tcp", w.srv.Listener.Addr().String())
	w.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", w.ann)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 400 ") {
		t.Errorf("%q %v", line, err)
	}
}
