package frontier

import (
	"sync/atomic"
	"time"

	"tiptoe/internal/politeness"
)

// Crawl is one crawl's handle in the scheduler: its rules, its limits, its
// counters. Fields above the line are set before Open and not changed after.
type Crawl struct {
	ID           CrawlID
	Rules        politeness.Rules
	IgnoreRobots bool

	// Decide judges a URL by a robots.txt copy; called under the shard's
	// lock, so it must be quick and must not call back.
	Decide func(c *RobotsCopy, url string) Decision

	// Overrule judges a URL by the operator's own rules alone, for a crawl
	// that ignores robots.txt; optional, called like Decide.
	Overrule func(url string) (Decision, bool)

	// CountOnly hands pages out as refusals that robots allowed: the crawl
	// reads robots.txt and sitemaps and fetches nothing else.
	CountOnly bool

	// Reserve takes one page from the budget, before the permit; false means
	// it is spent. A page counts once, however often it is tried.
	Reserve func() bool

	// Paid reports that an entry was counted in an earlier life of the crawl
	// and is only repeated; it may be nil.
	Paid func(e *Entry) bool

	// Share is its tenant's part of the workers; nil if they are not shared.
	Share *Share

	// Slots bounds its requests in flight; nil if only its hosts and the
	// workers do.
	Slots *Slots

	// ---

	paused  atomic.Bool
	closed  atomic.Bool  // it has ended: what is not on the wire stays off it
	pending atomic.Int64 // added and not acknowledged
	taken   atomic.Int64 // handed out and not yet committed
	permits atomic.Int64 // granted and not released, robots fetches included
	parked  atomic.Int64 // pending in parked groups, not taken
	retries atomic.Int64 // waiting for another try
	spent   atomic.Bool  // the budget turned somebody away: only retries go on
}

// Pending counts URLs that are not done: queued, in flight, retrying or
// waiting for their commit.
func (c *Crawl) Pending() int64 { return c.pending.Load() }

// Parked counts the pending URLs whose host is parked.
func (c *Crawl) Parked() int64 { return c.parked.Load() }

// Taken counts URLs handed out and not yet committed.
func (c *Crawl) Taken() int64 { return c.taken.Load() }

// Exhausted reports that the crawl has nothing left that could be fetched.
func (c *Crawl) Exhausted() bool {
	return c.pending.Load() == c.parked.Load() && c.permits.Load() == 0
}

// InHand reports whether somebody still works for the crawl: a URL that is
// handed out and not committed, or a request (a robots.txt, say) in flight.
func (c *Crawl) InHand() bool { return c.taken.Load() > 0 || c.permits.Load() > 0 }

// InFlight counts its requests on the wire, robots fetches included.
func (c *Crawl) InFlight() int64 { return c.permits.Load() }

// Spent reports that the budget turned a URL away; from then on only retries
// of pages that were already paid for go on.
func (c *Crawl) Spent() bool { return c.spent.Load() }

// Retrying counts URLs that wait for another try.
func (c *Crawl) Retrying() int64 { return c.retries.Load() }

// Permit is the right to put one request on the wire. It is released once.
type Permit struct {
	ID       uint64
	Crawl    *Crawl
	Group    string
	Robots   bool
	Owed     time.Duration // least distance to the group's previous start
	OwedWhy  politeness.Why
	InFlight int // this one included
	Cap      int
	Granted  time.Time

	// GrantedBefore is set by Release: permits of the group up to this ID were
	// granted before its answer could tell anything.
	GrantedBefore uint64

	g        *group
	gap      time.Duration // owed to the next start
	unpaced  bool          // no crawl at the host kept a distance when it was granted
	onWire   bool
	released bool
}

// WorkKind says what Next handed out.
type WorkKind uint8

const (
	Nothing WorkKind = iota
	Fetch            // Entry, under Permit
	Robots           // Task, under Permit
	Refuse           // Entry; Decision says why, or it is only counted; no permit was needed
	Load             // call Scheduler.Load with it
)

// Work is one thing to do.
type Work struct {
	Kind     WorkKind
	Permit   *Permit
	Entry    Entry
	Task     RobotsTask
	Decision Decision // for Fetch and Refuse
	load     loadRequest
}
