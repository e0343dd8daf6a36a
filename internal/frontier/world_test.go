package frontier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/robots"
	"tiptoe/internal/weburl"
)

// world drives a scheduler in virtual time as the engine does: a shard is asked
// only when it was woken, when the time that it named has come, or when it has
// just handed something out. So a wake-up that is missing is a stall, and a
// stall fails the test.
type world struct {
	t      *testing.T
	s      *Scheduler
	store  *memStore
	now    time.Time
	start  time.Time
	shards []sleeper
	events []event
	seq    int
	calls  int // of Next

	serve    func(h *hit) reply
	workers  int           // permits at once; 0 is no bound
	inStep   bool          // workers come free all together, as after a commit
	full     bool          // inStep: and have not since all were taken
	wire     time.Duration // from the grant to the request's start
	commitIn time.Duration // from the answer to its commit

	hits     []*hit
	refused  map[string]Decision
	allowed  map[string]Decision
	done     map[string]int
	inFlight map[string]int
	granted  int
	released int
	verdicts []politeness.Verdict
}

type sleeper struct {
	asleep bool
	token  bool // waits for a worker
	until  time.Time
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

// hit is one request as its host sees it.
type hit struct {
	crawl  CrawlID
	group  string
	url    string
	robots bool
	at     time.Time
	nth    int // of this URL, from 1
	permit *Permit
}

func (h *hit) path() string { return weburl.FromCanonical(h.url).Path() }

// reply is what a host answers; the zero value is 200 after 10 ms.
type reply struct {
	status     int
	failure    outcome.Outcome
	took       time.Duration
	retryAfter time.Duration
	location   string
	body       string   // of a robots.txt
	links      []string // of a page
}

func newWorld(t *testing.T, opt Options) *world {
	t.Helper()
	w := &world{t: t, store: newMemStore(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		serve:   func(*hit) reply { return reply{} },
		refused: map[string]Decision{}, allowed: map[string]Decision{}, done: map[string]int{}, inFlight: map[string]int{}}
	w.start = w.now
	w.open(opt)
	return w
}

// open gives the world a (new) scheduler over its store.
func (w *world) open(opt Options) {
	rnd := rand.New(rand.NewPCG(1, 2))
	opt.Rand, opt.Now = rnd.Float64, func() time.Time { return w.now }
	w.s = New(w.store, opt)
	w.shards = make([]sleeper, w.s.Shards())
	w.events = nil
}

func (w *world) crawl(id CrawlID, set ...func(*Crawl)) *Crawl {
	w.t.Helper()
	c := &Crawl{ID: id, Rules: politeness.Rules{DelayMin: time.Second, DelayMax: time.Second, PerHost: 2, MaxRetries: 3}}
	c.Decide = decideBy(robots.RFC9309)
	for _, f := range set {
		f(c)
	}
	if err := w.s.Open(context.Background(), c, w.now); err != nil {
		w.t.Fatal(err)
	}
	w.check()
	return c
}

func pace(d time.Duration) func(*Crawl) {
	return func(c *Crawl) { c.Rules.DelayMin, c.Rules.DelayMax = d, d }
}

// decideBy judges as package crawl does, without its evidence.
func decideBy(p robots.Policy) func(*RobotsCopy, string) Decision {
	return func(c *RobotsCopy, url string) Decision {
		d := Decision{Allowed: true, Copy: c, Confidence: 1, Outcome: outcome.Robots, Unreachable: c.Unreachable}
		if c.File == nil {
			v := robots.Availability(c.Status, c.Status == 0, p)
			d.Allowed = v.Access != robots.DenyAll
			if v.LowConfidence {
				d.Confidence = 0.3
			}
			return d
		}
		m := c.File.For("tiptoe", p)
		a := m.Check(weburl.FromCanonical(url).RequestURI())
		d.Allowed, d.Rule, d.Line = a.Allowed, a.Rule, a.Line
		d.CrawlDelay, _ = m.CrawlDelay()
		return d
	}
}

func entry(c CrawlID, url string, prio uint8) Entry {
	return Entry{Crawl: c, Group: weburl.FromCanonical(url).HostKey(), URL: url, Prio: prio}
}

func (w *world) add(c *Crawl, urls ...string) {
	w.t.Helper()
	var b Batch
	for _, u := range urls {
		b.Add = append(b.Add, entry(c.ID, u, 0))
	}
	w.commit(&b)
}

func (w *world) commit(b *Batch) {
	w.t.Helper()
	if _, err := w.s.Commit(context.Background(), b, w.now); err != nil {
		w.t.Fatal(err)
	}
	w.check()
}

// check holds the scheduler's invariants, and permits = in flight + released.
func (w *world) check() {
	w.t.Helper()
	if err := w.s.Check(); err != nil {
		w.t.Fatalf("%s after the start: %v", w.now.Sub(w.start), err)
	}
	if n := w.s.InFlight(); int(n) != w.granted-w.released {
		w.t.Fatalf("%d permits granted, %d released, but %d in flight", w.granted, w.released, n)
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	e := event{w.now.Add(d), w.seq, do}
	i, _ := slices.BinarySearchFunc(w.events, e, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.seq - b.seq
	})
	w.events = slices.Insert(w.events, i, e)
}

// pump asks every shard that has a reason to be asked.
func (w *world) pump() {
	for again := true; again; {
		again = false
		for i := range w.shards {
			sl := &w.shards[i]
			select {
			case <-w.s.Wake(i):
				sl.asleep = false
			default:
			}
			if sl.token = sl.token && w.busy(); sl.token {
				continue
			}
			if sl.asleep && (sl.until.IsZero() || sl.until.After(w.now)) {
				continue
			}
			sl.asleep = false
			for range 100_000 {
				if w.busy() {
					*sl = sleeper{token: true}
					break
				}
				w.calls++
				work, at := w.s.Next(i, w.now)
				w.check0(work)
				if work.Kind == Nothing {
					*sl = sleeper{asleep: true, until: at}
					break
				}
				again = true
				w.begin(work)
			}
			if !sl.asleep && !sl.token {
				w.t.Fatal("Next hands out work without end")
			}
		}
	}
}

func (w *world) busy() bool {
	n := w.granted - w.released
	if w.inStep {
		w.full = n >= w.workers || w.full && n > 0
		return w.full
	}
	return w.workers > 0 && n >= w.workers
}

// check0 counts a grant before the invariants are looked at.
func (w *world) check0(work Work) {
	if work.Permit != nil {
		w.granted++
	}
	w.check()
}

func (w *world) begin(work Work) {
	switch work.Kind {
	case Load:
		if err := w.s.Load(context.Background(), work, func() time.Time { return w.now }); err != nil {
			w.t.Fatal(err)
		}
		w.check()
	case Refuse:
		w.refused[work.Entry.URL] = work.Decision
		w.after(w.commitIn, func() { w.end(work.Entry) })
	default:
		if work.Kind == Fetch {
			w.allowed[work.Entry.URL] = work.Decision
		}
		w.after(w.wire, func() { w.request(work) })
	}
}

func (w *world) request(work Work) {
	h := &hit{crawl: work.Permit.Crawl.ID, group: work.Permit.Group, robots: work.Kind == Robots, at: w.now, nth: 1, permit: work.Permit}
	h.url = work.Entry.URL
	if h.robots {
		h.url = work.Task.URL
	}
	for _, old := range w.hits {
		if old.url == h.url && old.crawl == h.crawl {
			h.nth++
		}
	}
	w.s.OnWire(work.Permit, w.now)
	w.check()
	w.hits = append(w.hits, h)
	w.inFlight[h.group]++
	if n := w.inFlight[h.group]; n > work.Permit.Cap {
		w.t.Fatalf("%s: %d in flight, cap %d", h.url, n, work.Permit.Cap)
	}
	r := w.serve(h)
	if r.took == 0 {
		r.took = 10 * time.Millisecond
	}
	if r.status == 0 && r.failure == 0 {
		r.status = 200
	}
	w.after(r.took, func() { w.answer(work, h, r) })
}

func (w *world) answer(work Work, h *hit, r reply) {
	w.inFlight[h.group]--
	a := politeness.Answer{Status: r.status, Started: h.at, Latency: r.took, Outcome: r.failure, Tries: int(work.Entry.Tries) + 1}
	if r.retryAfter > 0 {
		a.RetryAfter = w.now.Add(r.retryAfter)
	}
	if r.failure == 0 {
		a.Outcome = outcome.FromStatus(r.status, r.retryAfter > 0)
	}
	v := w.s.Release(work.Permit, w.now, a)
	w.released++
	w.verdicts = append(w.verdicts, v)
	w.check()
	if again := w.s.Release(work.Permit, w.now, a); again != (politeness.Verdict{}) {
		w.t.Fatal("a second Release did something")
	}
	w.check()
	if h.robots {
		w.robotsAnswer(work.Task, h, r, a.Outcome)
		return
	}
	w.after(w.commitIn, func() {
		if v.Retry {
			e := work.Entry
			e.Tries++
			e.NotBefore = v.NotBefore
			w.commit(&Batch{Update: []Entry{e}})
			return
		}
		for _, l := range r.links {
			w.commit(&Batch{Add: []Entry{entry(h.crawl, l, 1)}})
		}
		w.end(work.Entry)
	})
}

func (w *world) robotsAnswer(t RobotsTask, h *hit, r reply, o outcome.Outcome) {
	if r.location != "" {
		t.URL, t.Hops = r.location, t.Hops+1
		t.Group = weburl.FromCanonical(t.URL).HostKey()
		w.s.RobotsHop(t, w.now)
		w.check()
		return
	}
	c := &RobotsCopy{Origin: t.Origin, Status: r.status, FetchedAt: w.now, Expires: w.now.Add(24 * time.Hour)}
	if o == outcome.OK {
		c.Body = []byte(r.body)
		c.File = robots.Parse(c.Body)
	} else if robots.Availability(r.status, r.status == 0, robots.RFC9309).Retry {
		c.Unreachable, c.Failure, c.Error = true, o, o.String()
	}
	w.s.RobotsDone(t, c, h.at, w.now)
	w.check()
}

func (w *world) end(e Entry) {
	w.done[e.URL]++
	w.commit(&Batch{Ack: []Ref{e.Ref()}})
}

// step does what happens next, and reports false when nothing ever will.
func (w *world) step() bool {
	w.pump()
	var next time.Time
	for _, sl := range w.shards {
		if !sl.until.IsZero() && (next.IsZero() || sl.until.Before(next)) {
			next = sl.until
		}
	}
	if len(w.events) > 0 && (next.IsZero() || !w.events[0].at.After(next)) {
		ev := w.events[0]
		w.events = w.events[1:]
		w.now = ev.at
		ev.do()
		return true
	}
	if next.IsZero() {
		return false
	}
	w.now = next
	return true
}

// run goes on until nothing ever happens again.
func (w *world) run() {
	w.t.Helper()
	for n := 0; w.step(); n++ {
		if n > 200_000 {
			w.t.Fatal("no end")
		}
	}
}

// runFor goes on for so long.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	over := false
	w.after(d, func() { over = true })
	for !over && w.step() {
	}
	w.now = end
	w.pump()
}

// finish runs to the end and demands that these crawls reached it.
func (w *world) finish(cs ...*Crawl) {
	w.t.Helper()
	w.run()
	for _, c := range cs {
		if !c.Exhausted() || c.Pending() != 0 || w.store.left(c.ID) != 0 {
			w.t.Fatalf("crawl %d stalled: pending %d, parked %d, taken %d, %d in the store\n%s",
				c.ID, c.Pending(), c.Parked(), c.Taken(), w.store.left(c.ID), w.states())
		}
	}
	for u, n := range w.done {
		if n != 1 {
			w.t.Fatalf("%s ended %d times", u, n)
		}
	}
}

func (w *world) states() string {
	var b strings.Builder
	for _, sh := range w.s.shards {
		fmt.Fprintf(&b, "active %d dormant %d slots %d lanes %d\n", sh.active, sh.dormant, len(sh.slots), len(sh.lanes))
		for _, g := range sh.groups {
			if g.state != idle {
				fmt.Fprintf(&b, "  %s %s\n", g.key, g.state)
			}
		}
	}
	return b.String()
}

// pages are the hits that were not for robots.txt.
func (w *world) pages(group string) (out []*hit) {
	for _, h := range w.hits {
		if !h.robots && (group == "" || h.group == group) {
			out = append(out, h)
		}
	}
	return out
}

func (w *world) all(group string) (out []*hit) {
	for _, h := range w.hits {
		if h.group == group {
			out = append(out, h)
		}
	}
	return out
}

// mustKeep demands a gap between all starts on a host.
func (w *world) mustKeep(group string, gap time.Duration) {
	w.t.Helper()
	hs := w.all(group)
	if len(hs) < 2 {
		w.t.Fatalf("%s had %d requests; that proves nothing", group, len(hs))
	}
	for i := 1; i < len(hs); i++ {
		if d := hs[i].at.Sub(hs[i-1].at); d < gap {
			w.t.Fatalf("%s came %s after %s, %s owed", hs[i].url, d, hs[i-1].url, gap)
		}
	}
}

func urls(host string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("https://%s/%d", host, i))
	}
	return out
}
