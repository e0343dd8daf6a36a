package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// web is a network in memory: the engine's fetch.Doer, with its own books. It
// lives in a bubble of virtual time, whose end also proves that no goroutine
// was left behind.
type web struct {
	t     *testing.T
	mu    sync.Mutex
	sites map[string]func(h *hit) reply
	hits  []*hit
	logs  bytes.Buffer
	dial  func(h *hit) time.Duration // until the connection is ready
	books *books
	store frontier.Store
	wrap  func(frontier.Store) frontier.Store // what the engine sees of it
	cfg   Config                              // overrides
	fs    *vfs.MemFS
}

// hit is one request as the network saw it.
type hit struct {
	url     string
	nth     int
	at      time.Time
	header  http.Header
	private bool // the request may connect to private addresses
}

// reply is an answer; the zero value is an empty 200 from a public address.
type reply struct {
	status  int
	header  map[string]string
	body    string
	fail    outcome.Outcome
	took    time.Duration // 10 ms if zero
	private bool
}

func page(body string) func(*hit) reply {
	return func(*hit) reply { return reply{body: body} }
}

func newWeb(t *testing.T) *web {
	return &web{t: t, sites: map[string]func(*hit) reply{}, books: newBooks(), fs: vfs.NewMem()}
}

// Do answers from the sites; what is not there is 404.
func (w *web) Do(ctx context.Context, req *fetch.Request) (*fetch.Response, error) {
	h := &hit{url: req.URL.String(), at: time.Now(), header: req.Header, private: req.AllowPrivate, nth: 1}
	w.mu.Lock()
	for _, o := range w.hits {
		if o.url == h.url {
			h.nth++
		}
	}
	w.hits = append(w.hits, h)
	w.mu.Unlock()
	if w.dial != nil {
		time.Sleep(w.dial(h))
		h.at = time.Now()
	}
	if req.Gate != nil && !req.Gate() {
		w.mu.Lock()
		w.hits = slices.DeleteFunc(w.hits, func(o *hit) bool { return o == h })
		w.mu.Unlock()
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: errors.New("held back")}
	}
	w.mu.Lock()
	serve := w.sites[h.url]
	w.mu.Unlock()
	r := reply{status: 404}
	if serve != nil {
		r = serve(h)
	}
	start := time.Now()
	if req.OnWire != nil {
		req.OnWire(start)
	}
	if r.took == 0 {
		r.took = 10 * time.Millisecond
	}
	timer := time.NewTimer(r.took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: ctx.Err()}
	}
	if r.fail != outcome.Pending {
		return nil, &fetch.Error{Outcome: r.fail, Op: "request", Err: errors.New("simulated"), Timing: fetch.Timing{Wire: start}}
	}
	if r.status == 0 {
		r.status = 200
	}
	hdr := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for k, v := range r.header {
		hdr.Set(k, v)
	}
	resp := &fetch.Response{Status: r.status, Header: hdr, Private: r.private, Body: strings.NewReader(r.body), ContentLength: -1}
	if int64(len(r.body)) > req.MaxBody {
		resp.Body = io.MultiReader(strings.NewReader(r.body[:req.MaxBody]), &failingReader{&fetch.Error{Outcome: outcome.TooLarge, Op: "body", Err: errors.New("too long")}})
	}
	resp.SetTiming(fetch.Timing{Start: start, Wire: start, TTFB: r.took, Total: r.took}, int64(len(r.body)), nil)
	return resp, nil
}

type failingReader struct{ err error }

func (f *failingReader) Read([]byte) (int, error) { return 0, f.err }

func (w *web) requests(url string) (out []*hit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hits {
		if h.url == url {
			out = append(out, h)
		}
	}
	return out
}

// log is where the engine's log goes; slog serialises its writes.
func (w *web) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func plainSpec(seeds ...string) Spec {
	return Spec{Seeds: seeds, UserAgent: "tiptoe/1.0", DelayMin: 100 * time.Millisecond, DelayMax: 100 * time.Millisecond, PerHost: 2,
		MaxRetries: 3, Depth: -1, Scope: "domain", RobotsPolicy: "rfc9309", RelNofollow: "follow",
		MaxBody: 1 << 20, Timeout: 30 * time.Second, MaxRedirects: 10}
}

// engine builds one over the web; what the test left in w.cfg wins.
func (w *web) engine() *Engine {
	w.t.Helper()
	store, err := pebblestore.Open("frontier", pebblestore.Options{FS: w.fs})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = store
	cfg := w.cfg
	cfg.Store, cfg.Log = store, w.log()
	if w.wrap != nil {
		cfg.Store = w.wrap(store)
	}
	if cfg.Fetcher == nil {
		cfg.Fetcher = w
	}
	if cfg.Ledger == nil {
		cfg.Ledger = w.books
	}
	cfg.Now = func() time.Time { return time.Now().UTC() }
	cfg.Rand = func() float64 { return 0.5 }
	if cfg.Workers == 0 {
		cfg.Workers = 16
	}
	return New(cfg)
}

// crawl runs a crawl to its end. during, if given, is called when it runs.
func (w *web) crawl(spec Spec, during ...func(*Run)) (Summary, error) {
	w.t.Helper()
	e := w.engine()
	defer w.store.Close()
	return w.start(e, spec, during...)
}

func (w *web) start(e *Engine, spec Spec, during ...func(*Run)) (Summary, error) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r, err := e.Start(ctx, spec, Hooks{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.drive(ctx, cancel, e, r, during...)
}

// drive does what the command does: engine beside supervisor.
func (w *web) drive(ctx context.Context, cancel context.CancelCauseFunc, e *Engine, r *Run, during ...func(*Run)) (Summary, error) {
	ended := make(chan error, 1)
	go func() {
		err := e.Run(ctx)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	for _, f := range during {
		f(r)
	}
	sum, err := r.Supervise(ctx)
	cancel(nil)
	if eerr := <-ended; eerr != nil {
		err = eerr
	}
	return sum, err
}

// in runs a test in virtual time.
func in(t *testing.T, f func(t *testing.T, w *web)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWeb(t)) })
}

// want demands a row with an outcome and returns it.
func (w *web) want(url string, o outcome.Outcome) ledger.Page {
	w.t.Helper()
	p, ok := w.books.pages[weburl.FromCanonical(url).Fingerprint()]
	if !ok {
		w.t.Fatalf("%s has no row; rows: %s", url, w.books.list())
	}
	if p.Outcome != o {
		w.t.Fatalf("%s ended %s (%s), want %s", url, p.Outcome, p.Error, o)
	}
	return p
}

// books is a ledger in memory that can be slow or fail.
type books struct {
	mu       sync.Mutex
	crawls   map[int64]ledger.Crawl
	pages    map[weburl.Fingerprint]ledger.Page
	evidence []ledger.Evidence
	requests map[uint64]ledger.Request
	domains  map[string]ledger.Domain
	fail     func(b *ledger.Batch) error
	slow     func(pages int) time.Duration
	commits  int
}

func newBooks() *books {
	return &books{crawls: map[int64]ledger.Crawl{}, pages: map[weburl.Fingerprint]ledger.Page{},
		requests: map[uint64]ledger.Request{}, domains: map[string]ledger.Domain{}}
}

func (b *books) CreateCrawl(_ context.Context, c *ledger.Crawl) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.ID = int64(len(b.crawls) + 1)
	b.crawls[c.ID] = *c
	return c.ID, nil
}

func (b *books) UpdateCrawl(_ context.Context, c *ledger.Crawl) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.crawls[c.ID] = *c
	return nil
}

func (b *books) Commit(_ context.Context, batch *ledger.Batch) error {
	if b.slow != nil {
		time.Sleep(b.slow(len(batch.Pages)))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		if err := b.fail(batch); err != nil {
			return err
		}
	}
	b.commits++
	for _, p := range batch.Pages {
		b.pages[p.FP] = p
	}
	for _, r := range batch.Requests {
		b.requests[r.Permit] = r
	}
	for _, d := range batch.Domains {
		b.domains[d.Host] = d
	}
	for _, c := range batch.Crawls {
		b.crawls[c.ID] = c
	}
	b.evidence = append(b.evidence, batch.Evidence...)
	return nil
}

func (b *books) PageCounts(context.Context, int64) (map[outcome.Outcome]int64, error) {
	m := map[outcome.Outcome]int64{}
	for _, p := range b.pages {
		if p.Kind == "page" {
			m[p.Outcome]++
		}
	}
	return m, nil
}

func (b *books) Domain(_ context.Context, host string) (ledger.Domain, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.domains[host]
	return d, ok, nil
}

func (b *books) list() string {
	var out []string
	for _, p := range b.pages {
		out = append(out, fmt.Sprintf("%s %s", p.URL, p.Outcome))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
