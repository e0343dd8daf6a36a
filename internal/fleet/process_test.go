package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/fleet"
	"tiptoe/internal/fleetsim"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

const ttl = 12 * time.Second

// fixture is a fleet of whole processes (engine and manager with all of their
// goroutines) over one store in memory, in virtual time.
type fixture struct {
	*testing.T
	join  func(line func(op string, effect func()) error) *fleetsim.Member
	books *fleetsim.Books
	web   *web
	procs []*process
	room  int          // hosts that those have room for that are started from now on; 0: as many as there are
	ahead atomic.Int64 // how far the clock on the wall was set, or ran while the machine was suspended
}

func (f *fixture) now() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }

func inVirtualTime(t *testing.T, test func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, join: fleetsim.Shared(2 * time.Second), books: fleetsim.NewBooks(), web: &web{hits: map[string]int{}, last: map[string]hit{}}}
		defer func() {
			for _, p := range f.procs {
				p.cut.Store(false)
				p.unread.Store(false)
				p.stop()
			}
		}()
		test(f)
	})
}

var errAway = errors.New("the store is away")

// process is one worker.
type process struct {
	f       *fixture
	name    string
	member  *fleetsim.Member
	engine  *crawl.Engine
	manager *fleet.Manager
	cut     atomic.Bool  // from the store
	flaky   atomic.Bool  // one call in ten is lost, or its reply
	unread  atomic.Bool  // the ledger hangs
	half    atomic.Bool  // what leases bring comes beside an error
	far     atomic.Bool  // the board takes some time
	renewed atomic.Int64 // when it last renewed its leases
	longest atomic.Int64 // it went without
	leased  atomic.Int64

	stopEngine, stopManager context.CancelFunc
	engineDone, done        chan struct{}
}

func (f *fixture) start(name string) *process {
	p := &process{f: f, name: name, engineDone: make(chan struct{}), done: make(chan struct{})}
	p.member = f.join(p.line)
	log := slog.New(slog.DiscardHandler)
	p.manager = fleet.New(fleet.Config{Board: board{p.member, p}, Ledger: desk{f.books, p}, Log: log, Now: f.now, Worker: name, Host: "here", TTL: ttl})
	p.engine = crawl.New(crawl.Config{Store: p.member, Ledger: desk{f.books, p}, Fetcher: p, Log: log, Now: time.Now, Rand: rand.Float64,
		Workers: 64, ReadyHosts: f.room, Fleet: p.manager})
	p.manager.Bind(p.engine)
	engine, stopEngine := context.WithCancel(context.Background())
	manager, stopManager := context.WithCancel(context.Background())
	p.stopEngine, p.stopManager = stopEngine, stopManager
	go func() {
		defer close(p.engineDone)
		if err := p.engine.Run(engine); err != nil {
			f.Errorf("%s: %v", name, err)
		}
	}()
	go func() {
		defer close(p.done)
		if err := p.manager.Run(manager); err != nil && !errors.Is(err, errAway) {
			f.Errorf("%s hands back: %v", name, err)
		}
	}()
	f.procs = append(f.procs, p)
	return p
}

// stop is what the program does when it is told to: no more requests, those in
// flight end, what they brought is written, and the hosts are handed back.
func (p *process) stop() {
	s := p.engine.Scheduler()
	p.manager.Leaving()
	for range 100 {
		if s.InFlight() == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.stopEngine()
	<-p.engineDone
	p.stopManager()
	<-p.done
}

// line takes no time: who waits for a lock does not let virtual time pass, and
// calls are made under locks. Package fleetsim has slow ones.
func (p *process) line(_ string, effect func()) error {
	lost := func() bool { return p.cut.Load() || p.flaky.Load() && rand.IntN(20) == 0 }
	if lost() {
		return errAway
	}
	effect()
	if lost() {
		return errAway
	}
	return nil
}

// desk is a process's line to the ledger.
type desk struct {
	*fleetsim.Books
	p *process
}

func (d desk) Commit(ctx context.Context, b *ledger.Batch) error {
	for d.p.unread.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return d.Books.Commit(ctx, b)
}

// board is one of several stores, of which some do not answer.
type board struct {
	*fleetsim.Member
	p *process
}

func (b board) Acquire(ctx context.Context, worker string, ttl time.Duration, most int, prefers func(string) bool) ([]frontier.Lease, error) {
	leases, err := b.Member.Acquire(ctx, worker, ttl, most, prefers)
	b.p.leased.Add(int64(len(leases)))
	return leases, b.beside(err)
}

func (b board) Renew(ctx context.Context, worker string, ttl time.Duration) (lost []string, changed []frontier.Lease, err error) {
	now := time.Now().UnixNano()
	if last := b.p.renewed.Swap(now); last != 0 {
		b.p.longest.Store(max(b.p.longest.Load(), now-last))
	}
	lost, changed, err = b.Member.Renew(ctx, worker, ttl)
	if len(lost)+len(changed) > 0 {
		err = b.beside(err)
	}
	return lost, changed, err
}

func (b board) Crawls(ctx context.Context) ([]frontier.Announced, error) {
	if b.p.far.Load() {
		time.Sleep(5 * time.Millisecond)
	}
	return b.Member.Crawls(ctx)
}

func (b board) beside(err error) error {
	if b.p.half.Load() {
		return errors.Join(err, errAway)
	}
	return err
}

func (p *process) hosts() map[string]bool {
	held := map[string]bool{}
	for _, l := range p.engine.Scheduler().Held() {
		held[l.Group] = true
	}
	return held
}

// spec is a crawl of so many hosts with so many pages each.
func (f *fixture) spec(hosts, pages int) crawl.Spec {
	f.web.pages = pages
	spec := crawl.Spec{UserAgent: "tiptoe/1.0", DelayMin: time.Second, DelayMax: time.Second, PerHost: 1, MaxRetries: 3,
		Depth: -1, Scope: "any", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxRedirects: 5, IgnoreRobots: true}
	for i := range hosts {
		spec.Seeds = append(spec.Seeds, fmt.Sprintf("http://www.site-%d.example/", i))
	}
	return spec
}

// crawl begins a crawl and returns how it ends.
func (p *process) crawl(spec crawl.Spec) (*crawl.Run, func() crawl.Summary) {
	p.f.Helper()
	r, err := p.engine.Start(context.Background(), spec, crawl.Hooks{})
	if err != nil {
		p.f.Fatal(err)
	}
	return r, p.supervise(r)
}

// takeUp opens a crawl that was begun before, to supervise it.
func (p *process) takeUp(id int64) *crawl.Run {
	p.f.Helper()
	row, err := p.f.books.Crawl(p.f.Context(), id)
	if err != nil {
		p.f.Fatal(err)
	}
	r, err := p.engine.Resume(p.f.Context(), row, nil, crawl.Hooks{})
	if err != nil {
		p.f.Fatal(err)
	}
	return r
}

func (p *process) supervise(r *crawl.Run) func() crawl.Summary {
	end := make(chan crawl.Summary, 1)
	go func() {
		sum, err := r.Supervise(context.Background())
		if err != nil {
			p.f.Errorf("%s supervises: %v", p.name, err)
		}
		end <- sum
	}()
	return func() crawl.Summary { return <-end }
}

// web is what the processes fetch from: chains of pages.
type web struct {
	pages int
	down  string        // a host that refuses connections
	took  time.Duration // by an answer; 100 ms if less

	flying, most atomic.Int64 // requests under way

	mu   sync.Mutex
	hits map[string]int // by URL
	last map[string]hit // by host
	bad  []string
}

type hit struct {
	at time.Time
	by string
}

// Do implements fetch.Doer.
func (p *process) Do(ctx context.Context, req *fetch.Request) (*fetch.Response, error) {
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	if !req.Gate() {
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: errors.New("called off")}
	}
	started := time.Now()
	req.OnWire(started)
	if req.URL.Hostname() == p.f.web.down {
		return nil, &fetch.Error{Outcome: outcome.Connect, Op: "dial", Err: errors.New("refused")}
	}
	p.f.web.note(req.URL.HostKey(), req.URL.String(), hit{started, p.name})
	n := p.f.web.flying.Add(1)
	defer p.f.web.flying.Add(-1)
	p.f.web.most.Store(max(p.f.web.most.Load(), n)) // one goroutine runs at a time, nearly
	select {
	case <-time.After(max(p.f.web.took, 100*time.Millisecond)):
	case <-ctx.Done():
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: ctx.Err()}
	}
	var body strings.Builder
	if n := len(req.URL.Path()) - 1; n+1 < p.f.web.pages {
		fmt.Fprintf(&body, `<a href="/%s">next</a>`, strings.Repeat("a", n+1))
	}
	resp := &fetch.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body.String()))}
	resp.SetTiming(fetch.Timing{Start: started, Wire: started, Total: time.Since(started)}, int64(body.Len()), nil)
	return resp, nil
}

func (w *web) note(host, url string, h hit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[url]++
	if last, ok := w.last[host]; ok && h.at.Sub(last.at) < time.Second {
		w.bad = append(w.bad, fmt.Sprintf("%s asks for %s %s after %s did", h.by, url, h.at.Sub(last.at), last.by))
	}
	w.last[host] = h
}

// seen sums up: pages that were asked for, those asked for again, and breaches
// of the pace.
func (w *web) seen() (pages, again int, bad []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.hits {
		pages++
		again += n - 1
	}
	return pages, again, w.bad
}

func (f *fixture) pages() int {
	n, _, _ := f.web.seen()
	return n
}

func (w *web) lastBy(host string) hit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[host]
}

// all demands that every page was read, each once but for some.
func (f *fixture) all(pages, again int) {
	f.Helper()
	n, twice, bad := f.web.seen()
	if n != pages || twice > again || len(bad) > 0 {
		f.Errorf("%d pages were asked for, want %d; %d again, at most %d; the pace was broken: %v", n, pages, twice, again, bad)
	}
}
