package fleettest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/client"
	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

// leaseTTL is short, so that a takeover can be waited for.
const leaseTTL = 6 * time.Second

// fleet is a simulated web and everything that crawls it.
type fleet struct {
	t       *testing.T
	redis   *testenv.Redis
	pg      *testenv.Server // only where a test restarts it
	db      string
	lines   *lines // nil: straight to the stores
	farm    *webfarm.Farm
	pulse   *pulse
	servers []*server
	workers []*process
	key     string // the operator's
	alone   bool   // on the embedded stores: what a fleet is compared with
	dirs    int
}

// server is one run of tiptoe serve.
type server struct {
	*process
	base string
}

// newFleet starts the stores and a web. The workers come by work and serve.
func newFleet(t *testing.T, own bool, c webfarm.Config) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: testenv.StartRedis(t)}
	if own {
		f.pg = testenv.PostgresServer(t)
		f.db = f.pg.Database(t)
	} else {
		f.db = testenv.Postgres(t)
	}
	if c.Placement == "" {
		c.Placement = webfarm.Addresses // each host a domain of its own
	}
	farm, err := webfarm.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	f.farm = farm
	f.pulse = startPulse(t)
	return f
}

func (f *fleet) backends() []string {
	f.dirs++
	args := []string{"--allow-private", "--data-dir", fmt.Sprintf("data%d", f.dirs)}
	if f.alone {
		return args
	}
	redis, db := f.redis.URL(), f.db
	if f.lines != nil {
		redis, db = f.lines.redisURL, f.lines.db
	}
	return append(args, "--redis-url", redis, "--database-url", db, "--lease-ttl", leaseTTL.String())
}

// work starts a worker.
func (f *fleet) work(args ...string) *process {
	f.t.Helper()
	p := launch(f.t, append(append([]string{"worker"}, f.backends()...), args...)...)
	f.workers = append(f.workers, p)
	return p
}

// serve starts a server and waits until it can be asked. Caps are out of the
// way unless args name them.
func (f *fleet) serve(args ...string) *server {
	f.t.Helper()
	all := append([]string{"serve", "--listen", "127.0.0.1:0", "--max-pages-per-crawl", "0", "--crawl-timeout-ms", "0",
		"--api-rate", "100000", "--api-burst", "100000"}, f.backends()...)
	s := &server{process: launch(f.t, append(all, args...)...)}
	f.servers = append(f.servers, s)
	f.until(time.Minute, "a server serves", func() (ok bool) {
		var key string
		s.base, key, ok = s.Serves()
		f.key = cmp.Or(key, f.key)
		return ok
	})
	return s
}

// until polls, which is all one can do to a process from outside.
func (f *fleet) until(limit time.Duration, what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

type fields map[string]any

// ask sends one request to a server and returns the status and the body.
func (f *fleet) ask(s *server, method, path string, body any) (int, string, error) {
	var r io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			f.t.Fatal(err)
		}
		r = strings.NewReader(string(text))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, r)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+f.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// post and get demand success; get reads the answer.
func (f *fleet) post(s *server, path string, body any) string {
	f.t.Helper()
	status, text, err := f.ask(s, "POST", path, body)
	if err != nil || status > 299 {
		f.t.Fatalf("%s: %d %s %v", path, status, text, err)
	}
	return text
}

func (f *fleet) get(s *server, path string, into any) {
	f.t.Helper()
	status, text, err := f.ask(s, "GET", path, nil)
	if err == nil {
		err = json.Unmarshal([]byte(text), into)
	}
	if err != nil || status > 299 {
		f.t.Fatalf("%s: %d %s %v", path, status, text, err)
	}
}

// tenant makes one and returns a key of it.
func (f *fleet) tenant(s *server, id, plan string) (key string) {
	f.t.Helper()
	f.post(s, "/v1/tenants", fields{"id": id, "plan": plan})
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(f.post(s, "/v1/tenants/"+id+"/keys", fields{})), &k); err != nil {
		f.t.Fatal(err)
	}
	return k.Key
}

// order places a job on the whole farm, or on what more says.
func (f *fleet) order(s *server, more fields) (j client.Job) {
	f.t.Helper()
	o := fields{"urls": f.farm.Seeds(), "profile": "polite", "scope": "host", "seeding": "none"}
	for k, v := range more {
		o[k] = v
	}
	if err := json.Unmarshal([]byte(f.post(s, "/v1/jobs", o)), &j); err != nil {
		f.t.Fatal(err)
	}
	return j
}

// job looks at a job; ok is false while the server cannot say.
func (f *fleet) job(s *server, id string) (j client.Job, ok bool) {
	status, body, err := f.ask(s, "GET", "/v1/jobs/"+id, nil)
	if err != nil || status != http.StatusOK {
		return j, false
	}
	return j, json.Unmarshal([]byte(body), &j) == nil
}

func errorOf(j client.Job) string {
	if j.Error == nil {
		return ""
	}
	return *j.Error
}

// ended waits for the end of a job.
func (f *fleet) ended(s *server, id string, within time.Duration) (j client.Job) {
	f.t.Helper()
	f.until(within, "job "+id+" has ended", func() bool {
		var ok bool
		j, ok = f.job(s, id)
		return ok && j.Ended != nil
	})
	return j
}

// served waits until the farm has served so many pages.
func (f *fleet) served(n int64, within time.Duration) {
	f.t.Helper()
	f.until(within, fmt.Sprintf("%d pages were served", n), func() bool { return f.farm.Books().Pages >= n })
}

// query reads rows of the ledger.
func query[T any](f *fleet, sql string, args ...any) []T {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return list
}

type one[T any] struct{ V T }

func number(f *fleet, sql string, args ...any) int64 {
	f.t.Helper()
	return query[one[int64]](f, sql, args...)[0].V
}

// rows counts the pages that a crawl has.
func (f *fleet) rows(crawl int64) int64 {
	f.t.Helper()
	return number(f, "SELECT count(*) FROM pages WHERE kind = 'page' AND outcome = 'ok' AND crawl_id = $1", crawl)
}

// pageRequests are those that the farm saw, whatever became of them.
func (f *fleet) pageRequests() int64 {
	b := f.farm.Books()
	return b.Requests - b.Robots
}

// workersIn counts the workers that have a place in Redis' list.
func (f *fleet) workersIn() int {
	n, err := f.redis.Do("ZCARD", redisKey("b"))
	if err != nil {
		return 0
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		f.t.Fatal(err)
	}
	return count
}

// complete demands that the farm's list of pages is what the first crawl has
// in the ledger.
func (f *fleet) complete() {
	f.t.Helper()
	var want []string
	for u := range f.farm.URLs() {
		want = append(want, u)
	}
	var got []string
	for _, r := range query[one[string]](f, "SELECT url FROM pages WHERE crawl_id = 1 AND kind = 'page' AND outcome = 'ok'") {
		got = append(got, r.V)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		lost := 0
		for _, u := range want {
			if _, ok := slices.BinarySearch(got, u); !ok {
				if lost++; lost <= 5 {
					f.t.Errorf("lost: %s", u)
				}
			}
		}
		f.t.Errorf("the farm has %d pages, the ledger %d; %d are lost", len(want), len(got), lost)
	}
}

// gapRow is a request that came too early after the one before it.
type gapRow struct {
	Group     string
	Gap, Owed int64
	Before    int64
	Permit    int64
}

// gaps demands that no request in the ledger came before what was owed, and
// returns the smallest gap.
func (f *fleet) gaps() time.Duration {
	f.t.Helper()
	const pairs = `SELECT pace_group, started_us - lag(started_us) OVER w AS gap, gap_owed_us, lag(permit) OVER w AS before, permit
		FROM requests WHERE started_us IS NOT NULL WINDOW w AS (PARTITION BY pace_group ORDER BY started_us)`
	for _, r := range query[gapRow](f, "SELECT * FROM ("+pairs+") p WHERE gap < gap_owed_us LIMIT 5") {
		f.t.Errorf("%s: %d µs after the request before (workers %d and %d), %d were owed", r.Group, r.Gap, r.Before&4095, r.Permit&4095, r.Owed)
	}
	return time.Duration(number(f, "SELECT coalesce(min(gap), 0) FROM ("+pairs+") p")) * time.Microsecond
}

// inFlight demands that no group had more requests in flight than its cap. A
// worker that was frozen sees the end of its requests only when it wakes; those
// ended for the host long before, whose books count them too.
func (f *fleet) inFlight(limit int) {
	f.t.Helper()
	if b := f.farm.Books(); b.MaxInFlight > limit {
		f.t.Errorf("%d requests in flight at one host, the cap is %d", b.MaxInFlight, limit)
	}
	over := number(f, `WITH r AS (SELECT pace_group, started_us, ended_us FROM requests WHERE ended_us - started_us < $2),
		e AS (SELECT pace_group, started_us AS at, 1 AS step FROM r UNION ALL SELECT pace_group, ended_us, -1 FROM r)
		SELECT count(*) FROM (SELECT step, sum(step) OVER (PARTITION BY pace_group ORDER BY at, step ROWS UNBOUNDED PRECEDING) AS n FROM e) s
		WHERE step = 1 AND n > $1`, int64(limit), (leaseTTL / 2).Microseconds())
	if over > 0 {
		f.t.Errorf("%d requests began above the cap of %d", over, limit)
	}
}

// redisKey is a key of the first shard, where the fleet's own lists are.
func redisKey(kind string) string { return "tiptoe:{s0}:" + kind }
