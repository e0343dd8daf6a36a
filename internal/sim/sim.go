// Package sim answers: does the whole crawl hold its promises, for a day, on a
// thousand hosts, through a crash? In seconds, and the same every time.
//
// It drives the real engine, scheduler, policies and Pebble store, one event
// at a time, under a virtual clock and seeded randomness. Only three things are
// simulated: the network (a world of hosts with their own behaviour and their
// own books), the passing of time, and the ledger's disk. There are no
// goroutines of its own, so a seed gives one trace; the trace's hash is part of
// the result.
//
// On every event it checks, from the hosts' books and not from the crawler's:
// no host has more in flight than its cap; no two requests to a host start
// closer than the gap owed (base delay, Crawl-delay, Retry-After); no URL is in
// two states; nothing closed by robots.txt is requested, and no page before its
// host's robots.txt; permits granted = in flight + released. At the end: every
// link of every fetched page has an end of its own, nothing is left in the
// frontier, and the crawl ended exactly when that was so.
//
// A crash drops the engine and everything in memory, at an event or between
// the ledger's commit and the frontier's, takes the disk as a power cut would
// leave it, and goes on with a new engine.
package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// Config of a simulation.
type Config struct {
	Seed         uint64
	Hosts        int
	PagesPerHost int
	Workers      int
	Crashes      []int // after so many requests
	CheckEvery   int   // events between looks at every group; 0: 1000

	// Plan adds hosts with a behaviour of their own to the Hosts drawn by
	// the seed; the result keeps their books.
	Plan []Plan
}

// Result of a simulation that broke no promise.
type Result struct {
	Requests int
	Pages    int
	Outcomes map[outcome.Outcome]int
	Repeated int // requests beyond what the crawl needed, because of crashes
	Trace    uint64
	Elapsed  time.Duration // virtual
	Events   int
	Arrivals map[string][]Arrival // at each host of the Plan
}

// The settings every simulated crawl runs with.
const (
	delayMin = 200 * time.Millisecond
	delayMax = 500 * time.Millisecond
	perHost  = 2
	wireTime = 2 * time.Millisecond // from the grant to the request's arrival
	commitIn = 20 * time.Millisecond
)

type event struct {
	at   time.Time
	seq  int
	what func() error
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; n := len(o) - 1; v := o[n]; *e = o[:n]; return v }

type sim struct {
	c      Config
	world  *world
	now    time.Time
	start  time.Time
	events events
	seq    int
	count  int
	trace  hash.Hash64
	rnd    *rand.Rand

	fs     *vfs.MemFS
	store  frontier.Store
	books  *books
	engine *crawl.Engine
	run    *crawl.Run

	inHand   int
	out      []*crawl.Record
	wake     [2]time.Time      // pending timer of each shard
	life     int               // events of an earlier life are void
	state    map[string]string // URL to what happens to it
	requests int
	repeated int
	served   map[uint64]bool
	crashes  []int
	failNext bool
}

// Run simulates one crawl from its seeds to its end.
func Run(c Config) (*Result, error) {
	if c.CheckEvery == 0 {
		c.CheckEvery = 1000
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &sim{c: c, world: newWorld(c, start), rnd: rand.New(rand.NewPCG(c.Seed, 3)), trace: fnv.New64a(),
		now: start, start: start, books: newBooks(), fs: vfs.NewCrashableMem(),
		state: map[string]string{}, served: map[uint64]bool{}, crashes: c.Crashes}
	if err := s.open(false); err != nil {
		return nil, err
	}
	defer func() { s.store.Close() }()
	for {
		if err := s.pump(); err != nil {
			return nil, s.wrap(err)
		}
		if len(s.events) == 0 {
			break
		}
		ev := heap.Pop(&s.events).(event)
		s.now = ev.at
		s.count++
		if err := ev.what(); err != nil {
			return nil, s.wrap(err)
		}
		if s.count%s.c.CheckEvery == 0 {
			if err := s.engine.Scheduler().Check(); err != nil {
				return nil, s.wrap(err)
			}
		}
	}
	return s.result()
}

func (s *sim) wrap(err error) error {
	return fmt.Errorf("seed %d, event %d, %s after the start: %w", s.c.Seed, s.count, s.now.Sub(s.start), err)
}

func (s *sim) at(t time.Time, f func() error) {
	life := s.life
	s.seq++
	heap.Push(&s.events, event{t, s.seq, func() error {
		if life != s.life {
			return nil
		}
		return f()
	}})
}

func (s *sim) open(resume bool) error {
	store, err := pebblestore.Open("frontier", pebblestore.Options{FS: s.fs})
	if err != nil {
		return err
	}
	s.store = store
	cfg := crawl.Config{
		Store: &failing{Store: store, s: s}, Ledger: s.books, Fetcher: nil,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return s.now }, Rand: s.rnd.Float64, Workers: s.c.Workers, Shards: len(s.wake),
	}
	ctx := context.Background()
	if resume {
		cfg.RestartedAt = s.now
		cfg.RestartRules = politeness.Rules{DelayMin: delayMin, DelayMax: delayMax}
	}
	s.engine = crawl.New(cfg)
	if resume {
		s.run, err = s.engine.Resume(ctx, s.books.crawls[1], nil, crawl.Hooks{})
		return err
	}
	spec := crawl.Spec{UserAgent: "tiptoe/1.0", DelayMin: delayMin, DelayMax: delayMax, PerHost: perHost, MaxRetries: 3,
		Depth: -1, Scope: "any", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxRedirects: 10}
	for _, n := range s.world.names {
		spec.Seeds = append(spec.Seeds, "http://"+n+"/")
	}
	s.run, err = s.engine.Start(ctx, spec, crawl.Hooks{})
	return err
}

// pump hands out everything that is due, as the dispatchers would.
func (s *sim) pump() error {
	sched := s.engine.Scheduler()
	for shard := range sched.Shards() {
		for s.inHand < s.c.Workers {
			w, at := sched.Next(shard, s.now)
			if w.Kind == frontier.Nothing {
				s.wakeAt(shard, at)
				break
			}
			if err := s.begin(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeAt is a shard's one timer.
func (s *sim) wakeAt(shard int, at time.Time) {
	if at.IsZero() || !s.wake[shard].IsZero() && !at.Before(s.wake[shard]) {
		return
	}
	s.wake[shard] = at
	s.at(at, func() error {
		if s.wake[shard].Equal(s.now) {
			s.wake[shard] = time.Time{}
		}
		return nil
	})
}

func (s *sim) begin(w frontier.Work) error {
	switch w.Kind {
	case frontier.Load:
		return s.engine.Scheduler().Load(context.Background(), w, func() time.Time { return s.now })
	case frontier.Refuse:
		s.inHand++
		s.note("refuse", w.Entry.URL)
		if err := s.move(w.Entry.URL, "", "refused"); err != nil {
			return err
		}
		s.record(s.engine.Refuse(&w))
		return nil
	}
	s.inHand++
	url := w.Entry.URL
	if w.Kind == frontier.Robots {
		url = w.Task.URL
	}
	s.at(s.now.Add(wireTime+time.Duration(s.rnd.IntN(3))*time.Millisecond), func() error { return s.wire(w, url) })
	return nil
}

// wire is the arrival of a request at its host.
func (s *sim) wire(w frontier.Work, url string) error {
	u := weburl.FromCanonical(url)
	h := s.world.hosts[u.Hostname()]
	robots := w.Kind == frontier.Robots
	if !s.engine.Scheduler().Confirm(w.Permit, s.now) {
		s.note("held back", url)
		s.record(s.engine.Answer(&w, &crawl.Hop{Started: s.now, Ended: s.now,
			Err: &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: errors.New("held back")}}))
		return nil
	}
	s.note("request", url)
	s.requests++
	s.engine.Scheduler().OnWire(w.Permit, s.now)
	if err := s.checkArrival(h, url, robots); err != nil {
		return err
	}
	started := s.now
	h.requests++
	h.last = s.now
	h.inFlight++
	ans := s.world.serve(h, url, s.now)
	if h.arrivals != nil {
		h.arrivals = append(h.arrivals, Arrival{At: s.now.Sub(s.start), Path: u.Path(), Status: ans.status})
	}
	if robots && ans.err == "" {
		h.robotsAt = s.now
	}
	took := h.latency/2 + time.Duration(s.rnd.Int64N(int64(h.latency)))
	s.at(s.now.Add(took), func() error { return s.arrive(w, h, url, started, ans) })
	return s.maybeCrash()
}

// checkArrival holds a request against the host's own books.
func (s *sim) checkArrival(h *host, url string, robots bool) error {
	if h.inFlight >= perHost {
		return fmt.Errorf("%s: %d in flight already, cap %d", url, h.inFlight, perHost)
	}
	owed := delayMin
	if h.delay > owed && !h.robotsAt.IsZero() && !robots {
		owed = h.delay
	}
	if gap := s.now.Sub(h.last); !h.last.IsZero() && gap < owed {
		return fmt.Errorf("%s: %s after the last request, %s owed", url, gap, owed)
	}
	if s.now.Before(h.blocked) {
		return fmt.Errorf("%s: requested %s before Retry-After ended", url, h.blocked.Sub(s.now))
	}
	if robots {
		return nil
	}
	if h.robotsAt.IsZero() {
		return fmt.Errorf("%s: requested before robots.txt", url)
	}
	if path := weburl.FromCanonical(url).Path(); h.closed && len(path) > 8 && path[:8] == "/closed/" {
		return fmt.Errorf("%s: closed by robots.txt", url)
	}
	return s.move(url, "", "in flight")
}

// move takes a URL from one state to the next; a URL is in one at a time.
func (s *sim) move(url, from, to string) error {
	if got := s.state[url]; got != from {
		return fmt.Errorf("%s: to be %s, but it is %q", url, to, got)
	}
	s.state[url] = to
	return nil
}

// arrive is the end of an answer.
func (s *sim) arrive(w frontier.Work, h *host, url string, started time.Time, a answer) error {
	h.inFlight--
	if t := started.Add(h.after); a.header.Get("Retry-After") != "" && t.After(h.blocked) {
		h.blocked = t
	}
	hop := &crawl.Hop{Started: started, Ended: s.now, Status: a.status, Header: a.header, Body: a.body,
		Size: int64(len(a.body)), WireSize: int64(len(a.body)), Timing: fetch.Timing{Wire: started, TTFB: s.now.Sub(started), Total: s.now.Sub(started)}}
	if a.err != "" {
		hop.Err = &fetch.Error{Outcome: outcome.Connect, Op: "connect", Err: errors.New(a.err)}
	}
	s.note("answer", fmt.Sprint(url, a.status, a.err))
	if w.Kind == frontier.Fetch {
		if err := s.move(url, "in flight", "uncommitted"); err != nil {
			return err
		}
	}
	s.record(s.engine.Answer(&w, hop))
	return nil
}

func (s *sim) record(r *crawl.Record) {
	s.out = append(s.out, r)
	if len(s.out) == 1 {
		s.at(s.now.Add(commitIn), s.commit)
	}
}

func (s *sim) commit() error {
	recs := s.out
	s.out = nil
	if err := s.engine.Commit(context.Background(), recs, false); err != nil {
		if s.failNext {
			return s.crash()
		}
		return err
	}
	s.inHand -= len(recs)
	for _, r := range recs {
		url, ended := r.End()
		switch {
		case url == "":
		case ended:
			s.state[url] = "done"
		default:
			s.state[url] = "" // waits for another try
		}
	}
	return nil
}

// maybeCrash crashes at the next planned request, every other time in the
// middle of a commit: after the ledger's, before the frontier's.
func (s *sim) maybeCrash() error {
	if len(s.crashes) == 0 || s.requests < s.crashes[0] {
		return nil
	}
	s.crashes = s.crashes[1:]
	if len(s.crashes)%2 == 0 {
		s.failNext = true
		return nil
	}
	return s.crash()
}

// crash loses everything but the disk.
func (s *sim) crash() error {
	s.note("crash", "")
	s.failNext = false
	s.life++
	old := s.store
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := old.Close(); err != nil {
		return err
	}
	s.inHand, s.out, s.wake = 0, nil, [2]time.Time{}
	for url, st := range s.state {
		if st == "in flight" || st == "uncommitted" || st == "refused" {
			s.state[url] = ""
			if st != "refused" {
				s.repeated++
			}
		}
	}
	for _, h := range s.world.hosts {
		h.inFlight = 0
		// A Retry-After that was in flight or not yet written is not known.
		h.blocked = time.Time{}
	}
	s.now = s.now.Add(50 * time.Millisecond)
	return s.open(true)
}

func (s *sim) note(what, url string) {
	fmt.Fprintf(s.trace, "%d %s %s\n", s.now.Sub(s.start), what, url)
}

// failing refuses the commit in whose middle the crash happens.
type failing struct {
	frontier.Store
	s *sim
}

func (f *failing) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if f.s.failNext && len(b.Ack) > 0 {
		return nil, errors.New("simulated crash")
	}
	return f.Store.Commit(ctx, b)
}

// result holds the end against the promises.
func (s *sim) result() (*Result, error) {
	sum, err := s.run.Supervise(context.Background())
	if err != nil {
		return nil, err
	}
	if sum.Status != ledger.Completed {
		return nil, fmt.Errorf("ended %s (%s) with %d queued and nothing left to wait for", sum.Status, sum.Reason, sum.Remaining)
	}
	res := &Result{Requests: s.requests, Pages: len(s.books.pages), Outcomes: map[outcome.Outcome]int{},
		Repeated: s.repeated, Trace: s.trace.Sum64(), Elapsed: s.now.Sub(s.start), Events: s.count}
	for _, p := range s.books.pages {
		res.Outcomes[p.Outcome]++
		if p.Outcome != outcome.OK {
			continue
		}
		for _, l := range p.Links {
			if !s.known(l) {
				return nil, fmt.Errorf("a link on %s was lost", p.URL)
			}
		}
	}
	if got, rows := sum.Counters.Processed, res.processed(); got != rows {
		return nil, fmt.Errorf("the summary counts %d processed, the ledger has %d", got, rows)
	}
	for _, p := range s.c.Plan {
		if res.Arrivals == nil {
			res.Arrivals = map[string][]Arrival{}
		}
		res.Arrivals[p.Name] = s.world.hosts[p.Name].arrivals
	}
	for url, st := range s.state {
		// A URL of a parked host waits for somebody who releases the host.
		if st == "" && s.books.pages[weburl.FromCanonical(url).Fingerprint()].Outcome == outcome.Parked {
			continue
		}
		if st != "done" {
			return nil, fmt.Errorf("%s is still %q at the end", url, st)
		}
	}
	return res, nil
}

// processed counts the URLs that reached an end with a request, or for want of
// a host.
func (r *Result) processed() int64 {
	n := r.Pages
	for _, o := range []outcome.Outcome{outcome.Robots, outcome.Scope, outcome.Trap, outcome.Budget, outcome.Parked} {
		n -= r.Outcomes[o]
	}
	return int64(n)
}

func (s *sim) known(lo uint64) bool {
	if len(s.served) == 0 {
		for fp := range s.books.pages {
			s.served[fp.Lo] = true
		}
	}
	return s.served[lo]
}
