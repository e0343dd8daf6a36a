package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/limits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the real service over a real SQLite ledger, a real frontier and a
// real engine, with a network in memory, in a bubble of virtual time. The end
// of the bubble proves that Run left no goroutine behind.
type world struct {
	t     *testing.T
	dir   string
	fs    *vfs.MemFS
	net   *network
	fetch fetch.Doer // the network, unless a test wants another
	opts  options

	db     *sqlite.Ledger
	front  *pebblestore.Store
	engine *crawl.Engine
	svc    *Service
	cfg    Config // of svc
	store  Store  // what the service sees: db, unless a test wraps it

	logs *logbook
	post *postbox
	set  *settings

	stopService, stopEngine context.CancelFunc
	service, running        chan error
}

// options a test may choose before open.
type options struct {
	workers int
	wrap    func(Store) Store
	builder func(Builder) Builder
	books   func(*sqlite.Ledger) crawl.Ledger // what the engine writes to, if not the ledger itself
	idle    bool                              // do not run the service
	shared  bool                              // other services run jobs of the same store
	window  Window                            // where they show each other what they drive
}

// settings are the operator's, as a config file would hold them.
type settings struct {
	mu       sync.Mutex
	caps     limits.Safety
	plans    []limits.Plan
	fail     int
	cancel   int
	shift    time.Duration // of the clock on the wall
	broken   error
	delay    time.Duration
	perHost  int
	forgiven bool // orders are not clamped by a default of pages
}

var defaultCaps = limits.Safety{MaxPages: limits.DefaultMaxPages, MaxCrawls: limits.DefaultMaxCrawls, Timeout: limits.DefaultTimeout}

// in runs a test in a world of its own, in virtual time.
func in(t *testing.T, f func(t *testing.T, w *world)) { inWith(t, options{}, f) }

func inWith(t *testing.T, o options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctestWorld(t, func(w *world) { w.opts = o }, f)
}

func synctestWorld(t *testing.T, prepare func(*world), f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: t.TempDir(), fs: vfs.NewCrashableMem(), net: newNetwork(),
			logs: new(logbook), post: new(postbox),
			set: &settings{caps: defaultCaps, fail: limits.FailureThreshold, delay: 100 * time.Millisecond, perHost: 2,
				plans: []limits.Plan{{Name: "none", Schedules: 100}, {Name: "quota", Quota: 100, Schedules: 2}}}}
		w.fetch = w.net
		prepare(w)
		w.open()
		defer w.close()
		w.tenant("a", "none", 1)
		f(t, w)
	})
}

func (w *world) now() time.Time {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	return time.Now().UTC().Add(w.set.shift)
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.front, err = pebblestore.Open("frontier", pebblestore.Options{FS: w.fs}); err != nil {
		w.t.Fatal(err)
	}
	if w.db, err = sqlite.Open(filepath.Join(w.dir, "ledger.db")); err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	workers := w.opts.workers
	if workers == 0 {
		workers = 16
	}
	var books crawl.Ledger = w.db
	if w.opts.books != nil {
		books = w.opts.books(w.db)
	}
	w.engine = crawl.New(crawl.Config{Store: w.front, Ledger: books, Fetcher: w.fetch, Log: log, Now: w.now,
		Rand: func() float64 { return 0.5 }, Workers: workers})
	w.store = w.db
	if w.opts.wrap != nil {
		w.store = w.opts.wrap(w.db)
	}
	var b Builder = w.set
	if w.opts.builder != nil {
		b = w.opts.builder(b)
	}
	w.cfg = Config{Store: w.store, Crawls: w.db, Engine: w.engine, Builder: b, Log: log, Now: w.now, Settings: w.set.read,
		Drop: func(ctx context.Context, c int64) error { return w.front.DropCrawl(ctx, frontier.CrawlID(c)) },
		Post: w.post.send, Meter: w.post, Shared: w.opts.shared, Window: w.opts.window}
	if w.svc, err = New(w.cfg); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.stopEngine, w.running = cancel, make(chan error, 1)
	go func() { w.running <- w.engine.Run(ctx) }()
	if !w.opts.idle {
		w.serve()
	}
}

func (w *world) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stopService, w.service = cancel, make(chan error, 1)
	go func() { w.service <- w.svc.Run(ctx) }()
}

// close stops as the program does: jobs, engine, files.
func (w *world) close() {
	if w.stopService != nil {
		w.stopService()
		if err := <-w.service; err != nil {
			w.t.Error(err)
		}
		w.stopService = nil
	}
	w.stopEngine()
	if err := <-w.running; err != nil {
		w.t.Error(err)
	}
	if err := errors.Join(w.front.Close(), w.db.Close()); err != nil {
		w.t.Error(err)
	}
}

// restart stops in good order and starts again over the same files.
func (w *world) restart() {
	w.t.Helper()
	w.close()
	w.open()
}

// kill is kill -9 and a new start: the files of this very instant are all that
// the next process gets. The old process ends elsewhere, on files of its own.
func (w *world) kill() {
	w.t.Helper()
	synctest.Wait() // no system call is half done
	fs := w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	dir := w.t.TempDir()
	files, err := filepath.Glob(filepath.Join(w.dir, "ledger.db*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "-shm") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.close()
	w.fs, w.dir = fs, dir
	w.open()
}

func (w *world) tenant(id, plan string, weight int) ledger.Tenant {
	w.t.Helper()
	t := ledger.Tenant{ID: id, Name: id, Plan: plan, Weight: weight, WebhookSecret: "secret of " + id, Created: w.now()}
	if err := w.db.CreateTenant(context.Background(), t); err != nil {
		w.t.Fatal(err)
	}
	return t
}

// order places an order for a tenant and demands that it is taken.
func (w *world) order(tenant string, r Request) ledger.Job {
	w.t.Helper()
	j, existed, err := w.try(tenant, r, "")
	if err != nil || existed {
		w.t.Fatal(existed, err)
	}
	return j
}

func (w *world) try(tenant string, r Request, idempotency string) (ledger.Job, bool, error) {
	w.t.Helper()
	ten, err := w.db.Tenant(context.Background(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.svc.Submit(context.Background(), ten, r, idempotency)
}

func (w *world) job(id string) ledger.Job {
	w.t.Helper()
	j, err := w.db.Job(context.Background(), "", id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// until waits for a job to be in one of the statuses.
func (w *world) until(id string, statuses ...ledger.Status) ledger.Job {
	w.t.Helper()
	changed, stop := w.svc.Watch(id)
	defer stop()
	give := time.After(2 * time.Hour)
	for {
		if j := w.job(id); slices.Contains(statuses, j.Status) {
			return j
		}
		select {
		case <-changed:
		case <-time.After(time.Minute): // somebody else may have moved it
		case <-give:
			w.t.Fatalf("%s, not %s\n%s", show(w.job(id)), statuses, w.logs.tail())
		}
	}
}

func (w *world) end(id string) ledger.Job {
	w.t.Helper()
	return w.until(id, ledger.Completed, ledger.Partial, ledger.Failed, ledger.Cancelled)
}

func (w *world) usage(tenant string, used, reserved int64) {
	w.t.Helper()
	u, err := w.db.Usage(context.Background(), tenant, ledger.Month(w.now()))
	if err != nil || u.Used != used || u.Reserved != reserved {
		w.t.Errorf("usage of %s: %d used, %d reserved (%v), want %d and %d", tenant, u.Used, u.Reserved, err, used, reserved)
	}
}

// event is what people who watch see.
type event struct {
	Type    string
	Status  ledger.Status
	Error   string
	Message string
	Host    string
}

func (w *world) events(id string, kind string) (list []event) {
	w.t.Helper()
	all, err := w.db.Events(context.Background(), id, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all {
		ev := event{Type: e.Type}
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			w.t.Fatal(err)
		}
		if kind == "" || e.Type == kind {
			list = append(list, ev)
		}
	}
	return list
}

// rows counts a job's pages that cost something, by the ledger.
func (w *world) rows(j ledger.Job) (n int64) {
	w.t.Helper()
	c, err := w.db.PageCounts(context.Background(), j.Crawl)
	if err != nil {
		w.t.Fatal(err)
	}
	for o, k := range c {
		if o.Fact().Name != "robots" && o.Fact().Name != "scope" {
			n += k
		}
	}
	return n
}

func (s *settings) read() (limits.Safety, []limits.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps, slices.Clone(s.plans), s.broken
}

func (s *settings) change(f func(s *settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// Ask and Spec build plain crawls: the profile is the test's.
func (s *settings) Ask(r *Request) (limits.Ask, error) {
	a := limits.Ask{Pages: limits.DefaultMaxPages, PagesByProfile: true, PerHost: s.perHost}
	if s.forgiven {
		a.Pages = 0
	}
	if r.Pages != nil {
		a.Pages, a.PagesByProfile = *r.Pages, false
	}
	if r.Seconds != nil {
		a.Time = time.Duration(*r.Seconds * float64(time.Second))
	}
	if r.PerHost != nil {
		a.PerHost = *r.PerHost
	}
	return a, nil
}

func (s *settings) Spec(r *Request, seeds []string, e *limits.Effective) (crawl.Spec, error) {
	if slices.Contains(r.Include, "re:(") {
		return crawl.Spec{}, &BadRequest{"include", "not a regular expression"}
	}
	delay := s.delay
	if r.DelayMS != nil {
		delay = time.Duration(*r.DelayMS) * time.Millisecond
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return crawl.Spec{Seeds: seeds, UserAgent: "tiptoe/1.0", DelayMin: delay, DelayMax: delay, PerHost: e.PerHost, MaxRetries: 3, Depth: -1,
		Scope: "host", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxBody: 1 << 20, Timeout: 30 * time.Second, MaxRedirects: 10,
		MaxURLs: e.Pages, Duration: e.Time(), PageStop: e.PageStop, TimeStop: e.TimeStop, FailAfter: s.fail, CancelAfter429s: s.cancel}, nil
}

// logbook is a log that can be searched while it is written.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tail is the end of the log, for tests that fail.
func (l *logbook) tail() string {
	s := l.String()
	return s[max(0, len(s)-3000):]
}

// has reports whether one line holds all parts.
func (l *logbook) has(parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return true
		}
	}
	return false
}

// postbox is where webhooks arrive, and the meter of the service.
type postbox struct {
	to      func(context.Context, string, http.Header, []byte) (int, error) // nil: it stays here
	mu      sync.Mutex
	answer  func(n int) (int, error) // of the nth message; nil: 200
	mail    []letter
	metered map[string]int
}

type letter struct {
	url    string
	header http.Header
	body   string
	at     time.Time
}

func (p *postbox) send(ctx context.Context, url string, header http.Header, body []byte) (int, error) {
	if p.to != nil {
		return p.to(ctx, url, header, body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mail = append(p.mail, letter{url, header, string(body), time.Now()})
	if p.answer == nil {
		return http.StatusOK, nil
	}
	return p.answer(len(p.mail))
}

func (p *postbox) letters() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mail)
}

func (p *postbox) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metered == nil {
		p.metered = map[string]int{}
	}
	p.metered[name]++
}

func (p *postbox) counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.metered)
}

func (p *postbox) JobGranted(time.Duration)   { p.count("granted") }
func (p *postbox) JobEnded(s ledger.Status)   { p.count(string(s)) }
func (p *postbox) QuotaRefused()              { p.count("refused") }
func (p *postbox) Attempted(result Delivered) { p.count(string(result)) }

func ptr[T any](v T) *T { return &v }

// show is a job as a failed test prints it.
func show(j ledger.Job) string {
	success := "unknown"
	if j.Success != nil {
		success = fmt.Sprint(*j.Success)
	}
	return fmt.Sprintf("job %d is %s %q, success %s, spent %d, reserved %d, ran %s", j.Seq, j.Status, j.Error, success, j.Spent, j.Reserved, j.Ran)
}
