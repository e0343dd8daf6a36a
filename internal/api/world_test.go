package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/postgres"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
	"tiptoe/internal/weburl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is what both ledgers are.
type database interface {
	job.Store
	job.Crawls
	Ledger
	Commit(ctx context.Context, b *ledger.Batch) error
	UpdateCrawl(ctx context.Context, c *ledger.Crawl) error
	SetDomain(ctx context.Context, d ledger.Domain) error
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, run func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) { run(t, newWorld(t, openSQLite(t), nil)) })
	t.Run("postgres", func(t *testing.T) {
		db, err := postgres.Open(t.Context(), testenv.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		run(t, newWorld(t, db, nil))
	})
}

func openSQLite(t testing.TB) *sqlite.Ledger {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// service is the real one, which runs nothing, with running jobs made up.
type service struct {
	*job.Service
	mu     sync.Mutex
	status map[string]crawl.Status
	points map[string][]job.Point
	watch  map[string]map[chan struct{}]bool
	reload error
	away   bool // another server drives the jobs, so nobody is poked
}

func (s *service) Live(_ context.Context, id string) (crawl.Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.status[id]
	return st, ok
}

func (s *service) Series(id string) ([]job.Point, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.points[id]
	return p, ok
}

func (s *service) Watch(id string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	if s.watch[id] == nil {
		s.watch[id] = map[chan struct{}]bool{}
	}
	s.watch[id][ch] = true
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watch[id], ch)
	}
}

func (s *service) Elsewhere(string) bool { return s.away }

func (s *service) poke(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.watch[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (s *service) watchers(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watch[id])
}

func (s *service) Reload(ctx context.Context) error {
	if s.reload != nil {
		return s.reload
	}
	return s.Service.Reload(ctx)
}

// builder asks for what an order says.
type builder struct{}

func (builder) Ask(r *job.Request) (limits.Ask, error) {
	a := limits.Ask{PerHost: 2}
	if r.Pages != nil {
		a.Pages = *r.Pages
	}
	return a, nil
}

func (builder) Spec(r *job.Request, _ []string, _ *limits.Effective) (crawl.Spec, error) {
	if strings.Contains(strings.Join(r.Exclude, ""), "re:(") {
		return crawl.Spec{}, &job.BadRequest{Field: "exclude", Text: "not a regular expression"}
	}
	return crawl.Spec{}, nil
}

// world is an API on a real database behind a real port, with two tenants.
type world struct {
	t   testing.TB
	db  database
	svc *service
	api *API
	srv *httptest.Server
	log *lockedBuffer

	op         string // the operator's key, of no tenant
	ann, annRO string // keys of tenant ann: read and write, read
	bob        string // key of tenant bob
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t testing.TB, db database, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, db: db, log: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	real, err := job.New(job.Config{Store: db, Crawls: db, Builder: builder{}, Log: log, Now: time.Now,
		Settings: func() (limits.Safety, []limits.Plan, error) {
			return limits.Safety{MaxPages: 50, MaxCrawls: 1, Timeout: time.Minute}, limits.ShippedPlans(), nil
		},
		Drop: func(context.Context, int64) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.svc = &service{Service: real, status: map[string]crawl.Status{}, points: map[string][]job.Point{}, watch: map[string]map[chan struct{}]bool{}}
	cfg := Config{Service: w.svc, Store: db, Ledger: db, Log: log, Version: "test", Loopback: true, RatePerSecond: 100_000, RateBurst: 100_000,
		Explain: func(_ context.Context, crawl int64, url string, _ bool) (any, error) {
			return map[string]any{"input": url, "crawl": map[string]any{"id": crawl}}, nil
		},
		Export: func(_ context.Context, out io.Writer, format string, _ int64) error {
			_, err := fmt.Fprintf(out, "an export as %s\n", format)
			return err
		},
		Fetch: func(_ context.Context, _ ledger.Tenant, url string) (ledger.Page, error) {
			if strings.Contains(url, "busy") {
				return ledger.Page{}, fmt.Errorf("fetch: %w", ErrNoSlot)
			}
			return ledger.Page{URL: url, Outcome: outcome.OK, Status: 200}, nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") }),
		Engine:  func() Engine { return Engine{Workers: 7, Layers: []Layer{{"workers", 1, 7}}} },
		Workers: func() Roster { return Roster{Self: "s", Workers: []frontier.Worker{{ID: "s"}}} },
	}
	if change != nil {
		change(&cfg)
	}
	w.api = New(cfg)
	w.srv = httptest.NewUnstartedServer(nil)
	w.srv.Config = w.api.Server()
	w.srv.Start()
	t.Cleanup(func() {
		w.api.Close()
		w.srv.Close()
		if t.Failed() {
			t.Log(w.log)
		}
	})
	for _, id := range []string{"ann", "bob"} {
		w.must(db.CreateTenant(w.ctx(), ledger.Tenant{ID: id, Name: strings.ToUpper(id), Plan: "enterprise", Weight: 1, Created: time.Now(), WebhookSecret: "secret of " + id}))
	}
	w.op = w.key("", ledger.ScopeOperator)
	w.ann = w.key("ann", ledger.ScopeRead, ledger.ScopeWrite)
	w.annRO = w.key("ann", ledger.ScopeRead)
	w.bob = w.key("bob", ledger.ScopeRead, ledger.ScopeWrite)
	return w
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) key(tenant string, scopes ...string) string {
	text, k := NewKey(tenant, "test", scopes, time.Now())
	w.must(w.db.CreateKey(w.ctx(), k))
	return text
}

// answer is a response that was read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. Words after the body are header names and values.
func (w *world) do(key, method, path, body string, header ...string) answer {
	w.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(w.ctx(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.srv.URL+path, in)
	w.must(err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.srv.Client().Do(r)
	w.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	w.must(err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// get expects 200 and decodes.
func get[T any](w *world, key, path string) (v T) {
	w.t.Helper()
	return decode[T](w, w.do(key, "GET", path, ""), 200)
}

func decode[T any](w *world, a answer, status int) (v T) {
	w.t.Helper()
	if a.status != status {
		w.t.Fatalf("status %d, not %d: %s", a.status, status, a.body)
	}
	w.must(json.Unmarshal([]byte(a.body), &v))
	return v
}

// refused expects a problem and returns its detail.
func (w *world) refused(a answer, status int) string {
	w.t.Helper()
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" {
		w.t.Fatalf("status %d (%s), not a problem with %d: %s", a.status, a.header.Get("Content-Type"), status, a.body)
	}
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	w.must(json.Unmarshal([]byte(a.body), &p))
	if p.Type != "about:blank" || p.Title == "" || p.Status != status || p.Detail == "" {
		w.t.Errorf("an incomplete problem: %s", a.body)
	}
	return p.Detail
}

// order places a job over the API.
func (w *world) order(key, url string) Job {
	w.t.Helper()
	return decode[Job](w, w.do(key, "POST", "/v1/jobs", `{"url":"`+url+`"}`), 201)
}

// begin makes a job of a tenant that runs, with its crawl.
func (w *world) begin(key, url string) (id string, crawlID int64) {
	w.t.Helper()
	id = w.order(key, url).ID
	crawlID, err := w.db.CreateCrawl(w.ctx(), &ledger.Crawl{Seeds: []string{url}, Status: ledger.Running, Started: time.Now()})
	w.must(err)
	w.step(id, ledger.Running, func(j *ledger.Job) { j.Crawl, j.Granted = crawlID, time.Now() })
	return id, crawlID
}

// step changes a job as the service would, with its event.
func (w *world) step(id string, to ledger.Status, fn func(*ledger.Job)) {
	w.t.Helper()
	_, err := w.db.UpdateJob(w.ctx(), "", id, func(j *ledger.Job) (ledger.JobChange, error) {
		j.Status, j.Updated = to, time.Now()
		if fn != nil {
			fn(j)
		}
		if to.Done() {
			yes := to == ledger.Completed
			j.Ended, j.Success = time.Now(), &yes
		}
		return ledger.JobChange{Events: []ledger.JobEvent{{Job: id, At: time.Now(), Type: "status", Data: fmt.Sprintf(`{"status":%q}`, to)}}}, nil
	})
	w.must(err)
	w.svc.poke(id)
}

// page is a page of a crawl that was fetched well.
func page(crawlID int64, url string) ledger.Page {
	u, err := weburl.Parse(url)
	if err != nil {
		panic(err)
	}
	return ledger.Page{Crawl: crawlID, URL: u.String(), FP: u.Fingerprint(), Host: u.HostKey(), Kind: "page", Via: "link", Tries: 1,
		Outcome: outcome.OK, Status: 200, ContentType: "text/html", Size: 1000, WireSize: 500, FetchedAt: time.Now(), Title: "a <b>title</b> & more",
		Timing: ledger.Timing{Total: 12345 * time.Microsecond, TTFB: 5 * time.Millisecond},
		Robots: ledger.RobotsDecision{Decided: true, Allowed: true, Rule: "Allow: /", Line: 3, Confidence: 1}}
}

func (w *world) commit(pages ...ledger.Page) {
	w.t.Helper()
	w.must(w.db.Commit(w.ctx(), &ledger.Batch{Pages: pages}))
}
