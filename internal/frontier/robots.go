package frontier

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/robots"
)

// How a robots.txt is asked for again when it could not be read, and for how
// long the answer "unreachable" stands.
const (
	robotsTries       = 4 // one and three retries
	unreachableFor    = 10 * time.Minute
	maxHeldPerOrigin  = 64
	robotsGoodFor     = 24 * time.Hour
	maxRobotsNote     = 512 << 10
	robotsNotePrefix  = "robots "
	clocksNoteName    = "clocks"
	defaultRobotSlots = 64
)

// RobotsCopy is what an origin's robots.txt said, or that it said nothing.
type RobotsCopy struct {
	Origin      string          `json:"origin"`
	Status      int             `json:"status"`          // HTTP status; 0 if there was no answer
	Unreachable bool            `json:"unreachable"`     // 5xx, 429 or no answer, after the retries
	Failure     outcome.Outcome `json:"failure"`         // what kind of unreachable
	Error       string          `json:"error,omitempty"` //
	Body        []byte          `json:"body,omitempty"`  // only for 2xx
	FetchedAt   time.Time       `json:"fetched_at"`      //
	Expires     time.Time       `json:"expires"`
	File        *robots.File    `json:"-"`

	// Compiled caches what Decide derives; it is only touched under the lock
	// of the shard that owns the copy.
	Compiled map[string]any `json:"-"`
}

// Decision is a robots answer about one URL: the evidence of SPEC §6.
type Decision struct {
	Allowed     bool
	Rule        string
	Line        int
	CrawlDelay  time.Duration
	FetchedAt   time.Time
	Confidence  float64
	Ignored     bool
	Unreachable bool
	Copy        *RobotsCopy     // what decided; nil if robots were ignored
	Outcome     outcome.Outcome // for a refusal: Robots, or why the host could not be asked
	Error       string
}

// RobotsTask is one hop towards an origin's robots.txt.
type RobotsTask struct {
	Origin       string // whose rules they are
	Owner        string // the group that waits for them
	URL          string // where to look now
	Group        string // the group that is asked
	Hops         int
	TrustPrivate bool
	Crawl        *Crawl
}

type originState uint8

const (
	originUnknown originState = iota // nothing in memory; the store may have a copy
	originMissing                    // the store has none either, or it expired
	originFetching
	originKnown
)

// origin is what a group knows of one scheme://host[:port] in it.
type origin struct {
	name  string
	state originState
	copy  *RobotsCopy
	last  *RobotsCopy // last one that was read whole, for when it cannot be read
	tries int
	wait  time.Time // not before, after a failed try
	by    *Crawl    // fetching: whose request it is; nil while the store is asked
	held  []heldEntry
	trust bool
	delay time.Duration // the Crawl-delay that it asks for
}

type heldEntry struct {
	q *queue
	e Entry
}

func (g *group) origin(name string) *origin {
	for _, o := range g.origins {
		if o.name == name {
			return o
		}
	}
	o := &origin{name: name}
	g.origins = append(g.origins, o)
	return o
}

// current returns the copy to decide by, or nil if one is to be fetched first.
func (o *origin) current(now time.Time) *RobotsCopy {
	if o.state == originKnown && now.After(o.copy.Expires) {
		o.state, o.tries = originMissing, 0
	}
	if o.state == originKnown {
		return o.copy
	}
	return nil
}

// wantedBy returns a crawl whose entries wait for the origin's rules and which
// may still make requests; nil if there is none.
func (o *origin) wantedBy() *Crawl {
	for i := range o.held {
		if c := o.held[i].q.crawl; !c.paused.Load() {
			return c
		}
	}
	return nil
}

// RobotsDone brings the answer for a task. A redirect is followed by calling
// RobotsHop instead. failed says that the try brought no usable answer.
func (s *Scheduler) RobotsDone(t RobotsTask, c *RobotsCopy, started, now time.Time) {
	sh := s.shardOf(t.Owner)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := sh.groups[t.Owner]
	if g == nil {
		return
	}
	o := g.origin(t.Origin)
	if c.Unreachable {
		o.tries++
		limit := robotsTries
		if t.Crawl != nil {
			limit = min(limit, t.Crawl.Rules.MaxRetries+1)
		}
		switch c.Failure {
		case outcome.DNS:
			limit = min(limit, 2)
		case outcome.Guard:
			limit = 1 // we refuse the address ourselves
		}
		if o.tries < limit {
			o.state = originMissing
			o.wait = now.Add(time.Second << (o.tries - 1))
			sh.file(g, now)
			return
		}
		if o.last != nil && now.Sub(o.last.FetchedAt) < robotsGoodFor {
			c = o.last
			c.Expires = now.Add(unreachableFor)
		} else {
			c.Expires = now.Add(unreachableFor)
		}
	} else if c.Status >= 200 && c.Status < 300 {
		o.last = c
	}
	o.state, o.copy, o.tries, o.wait = originKnown, c, 0, time.Time{}
	if t.Crawl != nil && t.Crawl.Decide != nil {
		d := t.Crawl.Decide(c, t.Origin+"/")
		o.delay = d.CrawlDelay
		g.clocks.SetCrawlDelay(d.CrawlDelay)
		if t.Group == t.Owner {
			if g.started.After(started) { // another request went out meanwhile
				started = g.started
			}
			g.clocks.Started(started, g.clocks.CrawlDelay)
		}
	}
	sh.markDirty(g)
	sh.noteRobots(g, c)
	sh.unhold(g, o)
	sh.file(g, now)
}

// RobotsHop follows a redirect of a robots.txt to wherever it leads; the new
// hop is a request of that group like any other.
func (s *Scheduler) RobotsHop(t RobotsTask, now time.Time) {
	sh := s.shardOf(t.Group)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.leases != nil && t.Owner == t.Group && !sh.ours(t.Group) {
		return // lost: whoever has it now asks by itself
	}
	if t.Crawl.closed.Load() {
		return // another crawl asks anew
	}
	g := sh.group(t.Group)
	g.tasks = append(g.tasks, t)
	sh.file(g, now)
}

// askRobots gets the origin's rules on their way for an entry that was just
// set aside.
func (sh *shard) askRobots(g *group, o *origin, c *Crawl, now time.Time) (Work, consideration) {
	switch o.state {
	case originUnknown:
		o.state = originFetching
		g.loads++
		return Work{Kind: Load, load: loadRequest{g: g, group: g.key, origin: o.name, crawl: c}}, go_
	case originMissing:
		sh.task(g, o, c, now)
	}
	return Work{}, later
}

// task queues the fetch of the origin's robots.txt, if its time has come.
func (sh *shard) task(g *group, o *origin, c *Crawl, now time.Time) {
	if o.wait.After(now) {
		return
	}
	o.state, o.by = originFetching, c
	g.tasks = append(g.tasks, RobotsTask{
		Origin: o.name, Owner: g.key, URL: o.name + "/robots.txt", Group: g.key,
		TrustPrivate: o.trust, Crawl: c,
	})
}

// retryRobots asks again for what could not be read.
func (sh *shard) retryRobots(g *group, now time.Time) {
	for _, o := range g.origins {
		if o.state != originMissing {
			continue
		}
		if c := o.wantedBy(); c != nil {
			sh.task(g, o, c, now)
		}
	}
}

// serveTask grants the group's next robots fetch, if a robots slot is free.
func (sh *shard) serveTask(g *group, i int, now time.Time) (Work, bool) {
	t := g.tasks[i]
	if !t.Crawl.Slots.take() {
		return Work{}, false
	}
	if !sh.s.takeSlot() {
		t.Crawl.Slots.give()
		g.wantSlot = true
		return Work{}, false
	}
	g.tasks = slices.Delete(g.tasks, i, i+1)
	p := sh.grant(g, t.Crawl, now)
	p.Robots = true
	return Work{Kind: Robots, Permit: p, Task: t}, true
}

func (s *Scheduler) takeSlot() bool {
	for {
		n := s.robotSlots.Load()
		if n <= 0 {
			return false
		}
		if s.robotSlots.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// offerSlots wakes the shards in which somebody waits for a robots slot, if
// there is one: their next call of Next hands it on.
func (s *Scheduler) offerSlots() {
	if s.slotWaiters.Load() > 0 && s.robotSlots.Load() > 0 {
		for _, sh := range s.shards {
			sh.signal()
		}
	}
}

// wakeSlotWaiter lets the group that waits longest for a robots slot try again,
// if there is one. A group that owes its host a wait first goes to the heap and
// keeps no slot from the others.
func (sh *shard) wakeSlotWaiter(now time.Time) bool {
	if len(sh.slots) == 0 || sh.s.robotSlots.Load() <= 0 {
		return false
	}
	g := sh.slots[0]
	g.wantSlot = false
	sh.file(g, now)
	return true
}

func (sh *shard) unhold(g *group, o *origin) {
	g.stalled = false
	for i := len(o.held) - 1; i >= 0; i-- {
		o.held[i].q.unhold(o.held[i].e)
	}
	o.held = nil
}

// noteRobots remembers to write the copy with the next commit.
func (sh *shard) noteRobots(g *group, c *RobotsCopy) {
	if c.Unreachable || len(c.Body) > maxRobotsNote {
		return
	}
	b, err := json.Marshal(c)
	if err != nil {
		return
	}
	sh.notes = append(sh.notes, Note{Group: g.key, Name: robotsNotePrefix + c.Origin, Value: b})
}

func decodeRobots(b []byte) (*RobotsCopy, error) {
	c := new(RobotsCopy)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("read stored robots.txt: %w", err)
	}
	if c.Status >= 200 && c.Status < 300 {
		c.File = robots.Parse(c.Body)
	}
	return c, nil
}
