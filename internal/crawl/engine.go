// Package crawl answers: in which order do the steps happen?
//
// It is the only place that knows: permit, hop, release, digest, ledger, new
// links, acknowledgement. Everything it calls is either pure policy or one of
// two durable stores.
//
//	Next ─► hop ─► release ─► digest ─► commit
//	        (one   (clocks    (links,   (ledger, then links and
//	       request) move)      page)     acknowledgement together)
//
// A worker token is taken before Next is asked and given back when the URL's
// commit is durable. So at any instant at most Workers URLs are in flight or
// fetched and not yet written, and that is the most that kill -9 can repeat.
// The host's slot is another thing: it is free again at the end of the body.
//
// The steps are methods without goroutines (steps.go, digest.go, commit.go);
// run.go drives them with real goroutines and timers, package sim with a
// virtual clock. What a crash loses: nothing that was acknowledged, and
// nothing that was queued.
package crawl

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/extract"
	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

// Ledger is what a crawl needs of the durable record.
type Ledger interface {
	CreateCrawl(ctx context.Context, c *ledger.Crawl) (int64, error)
	UpdateCrawl(ctx context.Context, c *ledger.Crawl) error
	Commit(ctx context.Context, b *ledger.Batch) error
	PageCounts(ctx context.Context, crawl int64) (map[outcome.Outcome]int64, error)
	Domain(ctx context.Context, host string) (ledger.Domain, bool, error)
}

// Config of an Engine. Nothing in it is optional unless it says so.
type Config struct {
	Store   frontier.Store
	Ledger  Ledger
	Fetcher fetch.Doer
	Log     *slog.Logger
	Now     func() time.Time
	Rand    func() float64

	Workers      int // default 512
	Shards       int // default 1
	Parsers      int // default 128
	RobotSlots   int // default 64
	MemoryURLs   int
	ReadyHosts   int
	Governor     bool          // shrink permits when the store has too much to do
	SlowCommit   time.Duration // how much slower than its best a commit may be, default 500ms
	RestartedAt  time.Time
	RestartRules politeness.Rules
	HalfLife     time.Duration

	// GroupOf names the pace group of a host key; nil means the host itself.
	// It may wait for a name server when it is first asked for a host, and
	// must give the same answer ever after.
	GroupOf func(hostKey string) string

	// Fleet is set when other processes work on the same crawls.
	Fleet Fleet

	// Meter hears what metrics count; optional.
	Meter Meter

	// Lookups and Bodies are two layers of which only the store and the client
	// know; optional.
	Lookups, Bodies func() (used, limit int64)
}

// Meter hears what happens, from many goroutines; it must be quick.
type Meter interface {
	Committed(took time.Duration, records int)
	Requested(kind string, o outcome.Outcome, took time.Duration, wireBytes int64)
	PageDone(o outcome.Outcome)
	Throttled()
}

// Hooks are what the owner of one crawl wants to be told; all optional. They
// are called from the engine's goroutines and must be quick.
type Hooks struct {
	Page      func(PageEvent)   // after each page's commit, from one goroutine
	Committed func()            // after each commit with something of the crawl
	Warned    func(text string) // a part of a budget is used
	Throttled func(ThrottleEvent)
}

// ThrottleEvent is a change of what a host is believed to bear [OBS-1].
type ThrottleEvent struct {
	Host        string        `json:"host"`
	Delay       time.Duration `json:"-"`
	DelayMS     int64         `json:"delay_ms"`
	ErrorStreak int           `json:"error_streak"`
	Parked      bool          `json:"parked,omitempty"`
}

// Engine runs any number of crawls over one scheduler, so that they share
// host clocks.
type Engine struct {
	cfg    Config
	log    *slog.Logger
	sched  *frontier.Scheduler
	parse  chan struct{}
	tokens *tokens
	shares *frontier.Shares
	asks   bool // hosts are grouped by somebody who may have to be asked
	counts limits.Counters
	out    chan *Record
	bufs   sync.Pool
	scans  sync.Pool

	mu   sync.Mutex
	runs map[frontier.CrawlID]*Run

	governor    governor     // the committer's
	commitEWMA  atomic.Int64 // nanoseconds, what the governor sees
	commitBound atomic.Int64 // and allows
	uncommitted atomic.Int64

	domainsMu sync.Mutex
	domainsAt time.Time       // last time the ledger heard of the hosts' clocks
	domains   []ledger.Domain // for the next commit
	noted     chan struct{}   // fires when hosts that are given up have left some
}

// New builds an engine. Nothing runs before Run.
func New(cfg Config) *Engine {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&cfg.Workers, 512)
	def(&cfg.Shards, 1)
	def(&cfg.Parsers, 128)
	if cfg.SlowCommit <= 0 {
		cfg.SlowCommit = 500 * time.Millisecond
	}
	asks := cfg.GroupOf != nil
	if !asks {
		cfg.GroupOf = func(h string) string { return h }
	}
	e := &Engine{
		cfg: cfg, log: cfg.Log, asks: asks,
		parse:  make(chan struct{}, cfg.Parsers),
		tokens: newTokens(cfg.Workers), governor: governor{threshold: cfg.SlowCommit},
		shares: frontier.NewShares(cfg.Workers),
		// Each record has its token, so a send never waits.
		out:   make(chan *Record, cfg.Workers),
		runs:  make(map[frontier.CrawlID]*Run),
		noted: make(chan struct{}, 1),
	}
	e.bufs.New = func() any { b := make([]byte, 0, 64<<10); return &b }
	e.scans.New = func() any { return new(extract.Scanner) }
	var held func(string) bool
	var bits func() uint16
	var ahead func() (by, give time.Duration)
	if cfg.Fleet != nil {
		held, bits, ahead = cfg.Fleet.Held, cfg.Fleet.Bits, cfg.Fleet.Ahead
	}
	e.sched = frontier.New(cfg.Store, frontier.Options{
		Held: held, WorkerBits: bits, Ahead: ahead, Gone: e.gone,
		Shards: cfg.Shards, RobotSlots: cfg.RobotSlots, MemoryURLs: cfg.MemoryURLs,
		ReadyHosts: cfg.ReadyHosts, HalfLife: cfg.HalfLife, Rand: cfg.Rand, Now: cfg.Now,
		RestartedAt: cfg.RestartedAt, RestartRules: cfg.RestartRules,
		Knowledge: e.knowledge, Remembered: e.remembered,
	})
	return e
}

// Crawling reports whether there is a crawl in this process.
func (e *Engine) Crawling() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs) > 0
}

// Counters are what metrics read [OBS-2].
func (e *Engine) Counters() *limits.Counters { return &e.counts }

// Shares divides the workers among those who order crawls.
func (e *Engine) Shares() *frontier.Shares { return e.shares }

// Scheduler gives simulations and status views the scheduler itself.
func (e *Engine) Scheduler() *frontier.Scheduler { return e.sched }

func (e *Engine) run(id frontier.CrawlID) *Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[id]
}

func (e *Engine) allRuns() []*Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	rs := make([]*Run, 0, len(e.runs))
	for _, r := range e.runs {
		rs = append(rs, r)
	}
	return rs
}
