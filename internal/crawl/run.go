package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/robots"
	"tiptoe/internal/scope"
	"tiptoe/internal/weburl"
)

// Run is one crawl while it is alive.
type Run struct {
	ID     int64
	Spec   Spec
	Paid   int64 // pages that had a row when it was opened; only who supervises it counts them
	Before Tally // in a fleet: what all workers had counted when it was opened

	e       *Engine
	fc      *frontier.Crawl
	ctx     context.Context // of its requests; ends when the grace is over
	cancel  context.CancelFunc
	header  http.Header
	product string
	policy  robots.Policy
	rules   *scope.Rules

	overrides  *robots.Overrides
	pageBudget limits.Budget
	timeBudget limits.Budget

	tracker tracker
	started time.Time
	used    atomic.Int64 // pages taken from the budget

	allowance atomic.Int64           // in a fleet: pages this worker may still take
	shared    atomic.Pointer[Shared] // in a fleet: what all workers report
	slotRound atomic.Int64           // in a fleet: the division that this worker's slots are from
	watched   time.Time              // in a fleet: since when it is supervised, by the one who does
	yielding  atomic.Bool            // in a fleet: another one supervises it
	leaving   time.Time              // in a fleet: when Leave was first called
	left      bool                   // in a fleet: Leave has written this worker's part down

	hooks     Hooks
	failures  limits.Failures
	throttles limits.Throttles

	repeatMu sync.Mutex
	repeats  map[weburl.Fingerprint]outcome.Outcome

	mu        sync.Mutex
	seedHosts map[string]bool
	public    map[string]bool // hosts that answered from a public address
	origins   map[string]bool // origins whose sitemaps were offered
	crawl     ledger.Crawl    // the row, with its counters
	classes   [6]int64
	outcomes  map[outcome.Outcome]int64
	rate      rate
	clamped   map[string]bool // hosts whose Crawl-delay was too long and said to be

	poke chan struct{}
	stop chan stopRequest
}

type stopRequest struct {
	reason string
	status ledger.Status
	grace  time.Duration
	budget string // the budget that is spent; empty if another reason ends it
	now    bool   // what is in flight gets no grace
	yield  bool   // another process supervises it now
}

// Start opens a new crawl in ledger and frontier and queues its seeds.
func (e *Engine) Start(ctx context.Context, spec Spec, hooks Hooks) (*Run, error) {
	if len(spec.Seeds) == 0 {
		return nil, errors.New("no seeds")
	}
	stored, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	now := e.cfg.Now()
	row := ledger.Crawl{Seeds: spec.Seeds, Spec: stored, Status: ledger.Running, Started: now, Updated: now}
	if row.ID, err = e.cfg.Ledger.CreateCrawl(ctx, &row); err != nil {
		return nil, fmt.Errorf("create crawl: %w", err)
	}
	r, err := e.newRun(ctx, row, spec, hooks)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	err = e.patiently(soon, "open the crawl", func() error { return e.attach(soon, r) })
	if err == nil && e.cfg.Fleet != nil {
		e.cfg.Fleet.Opened(r)
	}
	if err == nil {
		err = e.patiently(soon, "queue seeds", func() error { return e.queueSeeds(soon, r) })
	}
	if err != nil {
		e.abandon(r)
		if e.cfg.Fleet != nil {
			e.cfg.Fleet.Abandoned(r.ID)
		}
		return nil, err
	}
	return r, nil
}

// openWithin is how long a store may be away when a crawl is opened.
const openWithin = 2 * time.Minute

func (e *Engine) queueSeeds(ctx context.Context, r *Run) error {
	var b frontier.Batch
	for _, s := range r.Spec.Seeds {
		u := weburl.FromCanonical(s)
		b.Add = append(b.Add, frontier.Entry{
			Crawl: frontier.CrawlID(r.ID), Group: e.groupNow(u.HostKey()), Prio: prioHome,
			Kind: frontier.KindPage, Via: frontier.ViaSeed, URL: s, TrustPrivate: !r.Spec.GuardSeeds,
		})
	}
	b.Add = append(b.Add, r.sourceSeeds()...)
	e.groupAll(b.Add)
	if _, err := e.sched.Commit(ctx, &b, e.cfg.Now()); err != nil {
		return fmt.Errorf("queue seeds: %w", err)
	}
	return nil
}

// Resume opens a crawl that an earlier process left unfinished.
func (e *Engine) Resume(ctx context.Context, row ledger.Crawl, override func(*Spec), hooks Hooks) (_ *Run, err error) {
	var spec Spec
	if err := json.Unmarshal(row.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
	}
	if override != nil {
		override(&spec)
	}
	if e.cfg.Fleet != nil { // it may work for the crawl already, as one of many
		if err := e.cfg.Fleet.Supervising(ctx, row.ID); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				e.cfg.Fleet.Abandoned(row.ID)
			}
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var counts map[outcome.Outcome]int64
	there := true
	err = e.patiently(ctx, "look for the crawl", func() (err error) {
		if counts, err = e.cfg.Ledger.PageCounts(ctx, row.ID); err == nil && e.cfg.Fleet != nil && len(counts) > 0 {
			there, err = e.inFrontier(ctx, row.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, ErrFrontierGone
	}
	// The rows are the truth; of the stored counters only those that no row
	// holds are kept.
	old := row.Counters
	row.Counters = ledger.Counters{Requests: old.Requests, HTTP429: old.HTTP429, Retries: old.Retries, Bytes: old.Bytes}
	for o, n := range counts {
		tally(&row.Counters, o, n)
	}
	before := row.Counters
	if e.cfg.Fleet != nil {
		row.Counters = ledger.Counters{} // each worker counts its own part
	}
	row.Status, row.Reason, row.Ended, row.Updated = ledger.Running, "", time.Time{}, e.cfg.Now()
	if row.Spec, err = json.Marshal(spec); err != nil {
		return nil, err
	}
	r, err := e.newRun(ctx, row, spec, hooks)
	if err != nil {
		return nil, err
	}
	// All that a permit depends on comes before the crawl is the scheduler's:
	// the engine may be running.
	if e.cfg.Fleet == nil {
		maps.Copy(r.outcomes, counts)
	}
	r.used.Store(row.Counters.Processed)
	r.Paid = before.Processed
	if e.cfg.Fleet != nil {
		r.Before = Tally{before, counts}
	}
	if err := r.findRepeats(ctx); err != nil {
		return nil, err
	}
	update := func() error {
		whole := row
		if e.cfg.Fleet != nil {
			whole.Counters, whole.Worker = before, e.cfg.Fleet.Worker()
		}
		err := e.cfg.Ledger.UpdateCrawl(ctx, &whole)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.crawl.Epoch = whole.Epoch
		return err
	}
	if e.cfg.Fleet != nil { // before anybody can join it: workers go by the settings of the row
		if err := e.patiently(ctx, "write the crawl's settings", update); err != nil {
			return nil, err
		}
	}
	if err := e.patiently(ctx, "open the crawl", func() error { return e.attach(ctx, r) }); err != nil {
		e.abandon(r)
		return nil, err
	}
	if e.cfg.Fleet != nil {
		e.cfg.Fleet.Opened(r)
	}
	if e.cfg.Fleet == nil && len(counts) > 0 && r.fc.Pending() == 0 && !e.cfg.Store.Seen(r.fc.ID, weburl.FromCanonical(spec.Seeds[0]).Fingerprint()) {
		e.abandon(r)
		return nil, ErrFrontierGone
	}
	// Without a single row it may have been killed before its seeds were
	// queued; those that were are not queued again.
	if len(counts) == 0 {
		if err := e.patiently(ctx, "queue seeds", func() error { return e.queueSeeds(ctx, r) }); err != nil {
			e.abandon(r)
			return nil, err
		}
	}
	if e.cfg.Fleet == nil {
		return r, update()
	}
	return r, nil
}

// ErrFrontierGone says that a crawl has pages, but nobody knows what was still
// to be done: to call it complete would be a guess.
var ErrFrontierGone = errors.New("the crawl's frontier is gone, so what was left of it is not known; start it anew")

// abandon closes a crawl that cannot go on.
func (e *Engine) abandon(r *Run) {
	e.sched.Close(r.fc, e.cfg.Now())
	r.cancel()
	e.mu.Lock()
	delete(e.runs, r.fc.ID)
	e.mu.Unlock()
}

func (e *Engine) open(ctx context.Context, row ledger.Crawl, spec Spec, hooks Hooks) (*Run, error) {
	r, err := e.newRun(ctx, row, spec, hooks)
	if err != nil {
		return nil, err
	}
	if err := e.attach(ctx, r); err != nil {
		e.abandon(r)
		return nil, err
	}
	return r, nil
}

// attach gives the crawl to the scheduler.
func (e *Engine) attach(ctx context.Context, r *Run) error {
	e.mu.Lock()
	e.runs[r.fc.ID] = r
	e.mu.Unlock()
	return e.sched.Open(ctx, r.fc, e.cfg.Now())
}

func (e *Engine) newRun(ctx context.Context, row ledger.Crawl, spec Spec, hooks Hooks) (*Run, error) {
	policy, err := robots.ParsePolicy(spec.RobotsPolicy)
	if err != nil {
		return nil, err
	}
	r := &Run{
		ID: row.ID, Spec: spec, e: e, policy: policy, product: robots.ProductToken(spec.UserAgent),
		started: e.cfg.Now(), hooks: hooks, crawl: row,
		failures: limits.Failures{Threshold: spec.FailAfter}, throttles: limits.Throttles{After: spec.CancelAfter429s},
		header:    http.Header{},
		seedHosts: make(map[string]bool), public: make(map[string]bool), origins: make(map[string]bool),
		outcomes: make(map[outcome.Outcome]int64),
		poke:     make(chan struct{}, 1), stop: make(chan stopRequest, 4),
	}
	for k, vs := range spec.Headers {
		for _, v := range vs {
			r.header.Add(k, v)
		}
	}
	r.header.Set("User-Agent", spec.UserAgent)
	if e.cfg.Fleet != nil {
		r.crawl.Worker = e.cfg.Fleet.Worker()
	}
	for _, s := range spec.Seeds {
		r.seedHosts[weburl.FromCanonical(s).HostKey()] = true
	}
	if err := r.openScope(); err != nil {
		return nil, err
	}
	if r.overrides, err = spec.RobotsRules.Parse(); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.fc = &frontier.Crawl{
		ID: frontier.CrawlID(row.ID), IgnoreRobots: spec.IgnoreRobots,
		Rules: politeness.Rules{DelayMin: spec.DelayMin, DelayMax: spec.DelayMax, PerHost: spec.PerHost,
			Adaptive: spec.Adaptive, LatencyFactor: spec.LatencyFactor, MaxRetries: spec.MaxRetries},
		Decide: r.decide, Overrule: r.overrule, Reserve: r.reserve, Paid: r.isRepeat, CountOnly: spec.CountOnly, Share: spec.Share,
	}
	switch {
	case spec.Concurrency > 0 && e.cfg.Fleet != nil:
		r.fc.Slots = frontier.NewSlots(0) // the supervisor divides them
	case spec.Concurrency > 0:
		r.fc.Slots = frontier.NewSlots(spec.Concurrency)
	}
	return r, nil
}

// reserve takes one page from the budget: before the permit, never overshot.
func (r *Run) reserve() bool {
	if r.e.cfg.Fleet != nil && r.Spec.MaxURLs > 0 {
		if r.Unused(1) == 0 {
			return false // until the fleet allows more
		}
		r.used.Add(1)
		return true
	}
	if r.Spec.MaxURLs <= 0 {
		r.used.Add(1)
		return true
	}
	for {
		n := r.used.Load()
		if n >= r.Spec.MaxURLs {
			return false
		}
		if r.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// budgetLeft is how many pages may still be fetched.
func (r *Run) budgetLeft() int64 {
	if r.Spec.MaxURLs <= 0 {
		return 1 << 62
	}
	if r.e.cfg.Fleet != nil {
		return r.Spec.MaxURLs
	}
	return max(r.Spec.MaxURLs-r.used.Load(), 1)
}

// decide judges a URL by a robots.txt copy. It runs under a shard's lock.
func (r *Run) decide(c *frontier.RobotsCopy, url string) frontier.Decision {
	key := r.product + " " + r.Spec.RobotsPolicy
	m, ok := c.Compiled[key].(*robots.Matcher)
	conf := 1.0
	d := frontier.Decision{Copy: c, FetchedAt: c.FetchedAt, Outcome: outcome.Robots}
	v := robots.Availability(c.Status, c.Status == 0, r.policy)
	if v.LowConfidence {
		conf = 0.3
	}
	if !ok {
		switch {
		case c.File != nil:
			m = c.File.For(r.product, r.policy)
		case v.Access == robots.DenyAll:
			m = robots.Fixed(false, "robots.txt unreachable: "+c.Error)
		case c.Unreachable:
			m = robots.Fixed(true, "robots.txt unreachable, policy open: "+c.Error)
		default:
			m = robots.Fixed(true, fmt.Sprintf("no robots.txt (HTTP %d)", c.Status))
		}
		if c.Compiled == nil {
			c.Compiled = make(map[string]any)
		}
		c.Compiled[key] = m
	}
	a := m.Check(weburl.FromCanonical(url).RequestURI())
	d.Allowed, d.Rule, d.Line, d.Confidence = a.Allowed, a.Rule, a.Line, conf
	d.CrawlDelay, _ = m.CrawlDelay()
	if o, ok := r.overrule(url); ok {
		d.Allowed, d.Rule, d.Line, d.Confidence = o.Allowed, o.Rule, 0, 1
		return d
	}
	if c.File == nil && c.Unreachable {
		d.Unreachable = true
		if !a.Allowed {
			d.Error = a.Rule
			if c.Status == 0 {
				d.Outcome = c.Failure // the host itself could not be reached
			}
		}
	}
	return d
}

// isSeedHost reports whether a person who may reach our own network typed the
// host; one who orders over the API may not.
func (r *Run) isSeedHost(host string) bool {
	return r.seedHosts[host] && !r.Spec.GuardSeeds
}

// A host that once answered from a public address is not trusted with a
// private one afterwards, even if the user typed its name: names rebind.
func (r *Run) isPublic(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.public[host]
}

func (r *Run) notePublic(host string) {
	if !r.seedHosts[host] {
		return
	}
	r.mu.Lock()
	r.public[host] = true
	r.mu.Unlock()
}

// wantsSitemaps reports, once per origin, whether its sitemaps are to be read:
// those of hosts in scope, or with scope any, of the seeds' hosts.
func (r *Run) wantsSitemaps(origin string, u weburl.URL) bool {
	if !r.Spec.seeds("sitemap") || r.Spec.Depth == 0 {
		return false
	}
	if r.Spec.Scope == "any" && !r.seedHosts[u.HostKey()] {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.origins[origin] {
		return false
	}
	r.origins[origin] = true
	return true
}

// page begins the row of a URL's end.
func (r *Run) page(en *frontier.Entry, at time.Time, d frontier.Decision) *ledger.Page {
	u := weburl.FromCanonical(en.URL)
	return &ledger.Page{
		Crawl: r.ID, URL: en.URL, FP: u.Fingerprint(), Host: u.HostKey(), Kind: en.Kind.String(), Via: en.Via.String(),
		FoundOn: en.FoundOn, Depth: int(en.Depth), Tries: int(en.Tries), FetchedAt: at,
		Robots: ledger.RobotsDecision{Decided: true, Allowed: d.Allowed, Rule: d.Rule, Line: d.Line,
			CrawlDelay: d.CrawlDelay, FetchedAt: d.FetchedAt, Confidence: d.Confidence, Ignored: d.Ignored},
	}
}

// skip writes down a URL that is not fetched because of a rule of ours.
func (r *Run) skip(rec *Record, u weburl.URL, from *frontier.Entry, via frontier.Via, depth int, o outcome.Outcome, why string, at time.Time) {
	fp := u.Fingerprint()
	rec.pages = append(rec.pages, ledger.Page{
		Crawl: r.ID, URL: u.String(), FP: fp, Host: u.HostKey(), Kind: "page", Via: via.String(),
		FoundOn: from.URL, Depth: depth, Outcome: o, Error: why, FetchedAt: at,
	})
	rec.evidence = append(rec.evidence, ledger.Evidence{
		Crawl: r.ID, URL: u.String(), FP: fp, Type: o.String(), Confidence: 1, At: at,
		Content: jsonText(map[string]any{"rule": why}), Metadata: jsonText(map[string]any{"url": u.String(), "foundOn": from.URL}),
	})
	tally(&rec.count, o, 1)
	// A URL that is too deep here may be found less deep elsewhere; every
	// other refusal is about the URL itself and holds for good.
	if r.Spec.Depth < 0 || depth <= r.Spec.Depth {
		rec.marks = append(rec.marks, frontier.Mark{Crawl: frontier.CrawlID(r.ID), FP: fp, Host: u.HostKey()})
	}
}

func (r *Run) evidence(en *frontier.Entry, typ string, conf float64, at time.Time, content map[string]any) ledger.Evidence {
	return ledger.Evidence{Crawl: r.ID, URL: en.URL, FP: en.Fingerprint(), Type: typ, Confidence: conf, At: at,
		Content: jsonText(content), Metadata: jsonText(map[string]any{"url": en.URL})}
}

// throttled keeps what a server that asked us to slow down asked for.
func (r *Run) throttled(en *frontier.Entry, h *Hop) ledger.Evidence {
	return r.evidence(en, "throttled", 1, h.Ended, map[string]any{
		"status": h.Status, "retryAfter": h.Header.Get("Retry-After"), "try": en.Tries + 1})
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}
