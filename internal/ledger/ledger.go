// Package ledger answers: what happened, and why?
//
// It holds the nouns of the durable record (crawls, pages, evidence, requests,
// domains), the filters that choose among them, and the rules for text that
// all storage rooms share. The rooms under it keep the record: sqlite on one
// machine, postgres for many; ledgertest is the contract that both pass.
//
// # Guarantees
//
// A page row and the evidence for it are written in one transaction, so
// neither exists without the other. All writes are idempotent: a crash
// between the ledger and the frontier repeats work and loses none. A later
// attempt at a URL replaces the earlier one; an answer that is stored is not
// replaced by an older attempt. What is not known is stored as NULL and read
// back as the zero value, and shown as unknown, never as zero.
//
// # Those who come late
//
// A worker of a fleet that was frozen or cut off may still have pages in hand
// when another one has its hosts, or when the crawl is over. What it commits as
// its part of a crawl that has ended, or was deleted, is left out, all but what
// it learned about hosts: the record of a crawl does not change after its end.
// The batch names such crawls then, so that their pages stay queued for whoever
// resumes the crawl. A process that opens or ends a crawl with UpdateCrawl gives it its next epoch, and the end
// that an earlier one still wanted to write is ErrTakenOver; that it runs is not
// believed then, and no error.
//
// # Identity
//
// A page is its crawl and the 128-bit fingerprint of its canonical URL. A
// request is its crawl and its permit, so permits must not repeat within a
// crawl, not even after a restart. Other evidence is its page, type and time
// to the millisecond. A page's out-links are kept as the low halves of the
// targets' fingerprints: enough to find who links where, at eight bytes each.
//
// # Strangers' text
//
// Text makes it storable (valid UTF-8, no NUL, bounded), Printable makes it
// safe to show on a terminal. Storing keeps what was found as it was; showing
// is where it is cleaned.
//
// # What a crash loses
//
// The batch whose commit had not returned, whole, and nothing else.
package ledger

import (
	"slices"
	"strings"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Status of a crawl. One enum for CLI, service and reports.
type Status string

const (
	Queued    Status = "queued"
	Running   Status = "running"
	Paused    Status = "paused"
	Completed Status = "completed"
	Partial   Status = "partial"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Crawl is one run from seeds to an end.
type Crawl struct {
	ID       int64
	Seeds    []string
	Spec     []byte // JSON of the effective settings, enough to resume
	Status   Status
	Reason   string // why it ended, in words
	Started  time.Time
	Ended    time.Time // zero while it runs
	Updated  time.Time
	Counters Counters

	// Epoch counts how often the crawl was opened again, or ended by another than
	// who had it open. The ledger gives it; an end that is written under an earlier
	// one is refused.
	Epoch int64

	// Worker is set in a batch when a row is only one worker's part of a crawl:
	// then its counters are that part's, and nothing else of it is stored. Reading
	// a crawl adds the parts up. UpdateCrawl has its own use for it.
	Worker string
}

// Counters of a crawl; always O(1) to keep.
type Counters struct {
	Processed  int64 `json:"processed"` // URLs that reached an end with a request
	Successful int64 `json:"successful"`
	Failed     int64 `json:"failed"`
	Throttled  int64 `json:"throttled"` // URLs that ended throttled
	Blocked    int64 `json:"blocked"`   // by robots or by the server
	Skipped    int64 `json:"skipped"`   // scope, trap, budget, guard
	Timeouts   int64 `json:"timeouts"`
	Requests   int64 `json:"requests"` // on the wire, of any kind
	HTTP429    int64 `json:"http_429"`
	Retries    int64 `json:"retries"`
	Bytes      int64 `json:"bytes"` // on the wire
}

// Add counts what o has counted, too.
func (c *Counters) Add(o *Counters) {
	for i, n := range o.all() {
		*c.all()[i] += *n
	}
}

// Without takes off what o has counted, down to nothing.
func (c *Counters) Without(o *Counters) {
	for i, n := range o.all() {
		at := c.all()[i]
		*at = max(*at-*n, 0)
	}
}

// Timing splits one request.
type Timing struct {
	DNS, Connect, TLS, TTFB, Transfer, Total time.Duration
	Reused                                   bool
}

// RobotsDecision is the evidence that every page row carries.
type RobotsDecision struct {
	Decided    bool // a robots decision was made at all
	Allowed    bool
	Rule       string // "Disallow: /private", or why without a rule
	Line       int    // line in robots.txt; 0 if no line decided
	CrawlDelay time.Duration
	FetchedAt  time.Time // of the robots.txt copy
	Confidence float64
	Ignored    bool // --ignore-robots was given
}

// Page is one URL's outcome.
type Page struct {
	ID           int64 // given by the ledger, ascending within a crawl in the order of first commit
	Crawl        int64
	URL          string
	FP           weburl.Fingerprint
	Host         string // host key
	Kind         string // page, sitemap
	Via          string // seed, link, redirect, sitemap, ...
	FoundOn      string
	Depth        int
	Tries        int // requests made for it
	Outcome      outcome.Outcome
	Status       int // HTTP status; 0 if there was no answer
	Error        string
	ContentType  string
	Charset      string
	Size         int64 // decoded bytes
	WireSize     int64
	Timing       Timing
	FetchedAt    time.Time
	RedirectTo   string
	Title        string
	Description  string
	Canonical    string
	Lang         string
	Hreflang     string // JSON object lang -> URL; empty if none
	NoIndex      bool
	NoFollow     bool
	LastModified time.Time
	ContentHash  uint64
	LinkCount    int
	Links        []uint64 // low halves of the fingerprints of all link targets
	Robots       RobotsDecision
}

// Evidence is a stored reason for a decision other than the robots decision
// that the page row itself carries.
type Evidence struct {
	Crawl      int64
	URL        string
	FP         weburl.Fingerprint
	Type       string // throttled, out_of_scope, budget, trap, guard, parked, robots_unreachable, ...
	Content    string // JSON
	Metadata   string // JSON
	Confidence float64
	At         time.Time

	// Of robots evidence, which the ledger derives from page rows; ignored
	// when evidence is written.
	Line      int       // line of robots.txt that decided; 0 if none did
	FetchedAt time.Time // of the robots.txt copy
	Ignored   bool      // --ignore-robots was given
}

// CacheWarmed is the type of evidence for what a cache said of a page, at the
// first request and, if it did not have it, at the second.
const CacheWarmed = "cache"

// The two types of robots evidence.
const (
	RobotsAllowed   = "robots_allowed"
	BlockedByRobots = "blocked_by_robots"
)

// Request is one request on the wire: the audit's raw material.
type Request struct {
	Crawl    int64
	Permit   uint64
	Group    string
	URL      string
	FP       weburl.Fingerprint
	Kind     string // page, sitemap, robots
	Cause    string // first, retry, redirect, robots, probe
	Started  time.Time
	Ended    time.Time
	Status   int
	Outcome  outcome.Outcome
	GapOwed  time.Duration // minimum distance to the previous start in the group
	InFlight int           // including this one, at the start
	Cap      int
	Error    string

	Granted    time.Time // when its permit was granted
	GapWhy     string    // what GapOwed was for
	AskedUntil time.Time // the answer asked for quiet until then; zero if it did not
	AskedAfter uint64    // permits up to this one were granted before it asked
	RetryAt    time.Time // its URL is tried again, not before; zero if it is not
	RetryWhy   string    // what RetryAt waits for
}

// NotSent ends the cause of a request that never reached the wire.
const NotSent = ", not sent"

// Sent reports whether the request reached the wire.
func (r *Request) Sent() bool { return !strings.HasSuffix(r.Cause, NotSent) }

// Replayed is a request with the evidence of a throttled answer.
type Replayed struct {
	Request
	RetryAfter string // the header, as it was sent
}

// Judged is the part of a page that says whether it was to be requested.
type Judged struct {
	Crawl   int64
	FP      weburl.Fingerprint
	Host    string
	Outcome outcome.Outcome
	Robots  RobotsDecision // without its rule
}

// Settings are what a crawl worked with from a time on.
type Settings struct {
	Crawl int64
	Since time.Time
	Spec  []byte // JSON
}

// Domain is what was learned about one host, for people and later crawls.
type Domain struct {
	Host                string
	AdaptiveDelay       time.Duration
	AdaptiveFloor       time.Duration
	CrawlDelay          time.Duration
	ProbeStep           time.Duration
	ErrorStreak         int
	SuccessStreak       int
	ConsecutiveFailures int
	NextAvailable       time.Time
	BlockedUntil        time.Time
	BlockReason         string
	LastSuccess         time.Time
	Updated             time.Time
	State               []byte // the limiter's whole state, JSON
}

// Batch is what one transaction writes.
type Batch struct {
	Pages    []Page
	Evidence []Evidence
	Requests []Request
	Domains  []Domain
	Crawls   []Crawl // status and counters

	// Late is Commit's answer: the crawls whose rows it left out. Whoever has the
	// pages in hand must not take them for stored.
	Late []int64
}

// PartOf reports whether the batch is one worker's part of a crawl.
func (b *Batch) PartOf(crawl int64) bool {
	return slices.ContainsFunc(b.Crawls, func(c Crawl) bool { return c.ID == crawl && c.Worker != "" })
}

// Without is the batch without its rows of some crawls, which are late.
func (b *Batch) Without(crawls []int64) *Batch {
	out := func(id int64) bool { return slices.Contains(crawls, id) }
	return &Batch{
		Pages:    slices.DeleteFunc(slices.Clone(b.Pages), func(p Page) bool { return out(p.Crawl) }),
		Evidence: slices.DeleteFunc(slices.Clone(b.Evidence), func(e Evidence) bool { return out(e.Crawl) }),
		Requests: slices.DeleteFunc(slices.Clone(b.Requests), func(r Request) bool { return out(r.Crawl) }),
		Domains:  b.Domains,
		Crawls:   slices.DeleteFunc(slices.Clone(b.Crawls), func(c Crawl) bool { return out(c.ID) }),
		Late:     slices.Concat(b.Late, crawls),
	}
}
