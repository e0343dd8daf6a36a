package crawl

import (
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// Status is a consistent picture of a running crawl, cheap to take once a
// second. Live view, plain lines, dashboard and metrics all draw from it.
type Status struct {
	At       time.Time
	Crawl    int64
	Seeds    []string
	Started  time.Time
	Elapsed  time.Duration
	Stopping bool

	ledger.Counters         // totals since the crawl began, resumed parts included
	Queued          int64   // waiting in the frontier, in memory or on disk
	InFlight        int64   // requests on the wire
	Uncommitted     int64   // fetched, not yet in the ledger
	PagesPerSec     float64 // smoothed over the last seconds
	BytesPerSec     float64
	StatusClasses   [6]int64 // index 0: no answer; 1..5: 1xx..5xx
	Outcomes        map[outcome.Outcome]int64

	Hosts   HostCounts
	Busiest []HostStatus // most requests in the last seconds, at most shownHosts
	Waiting []HostStatus // most waiting URLs, at most shownHosts
	Waits   []WaitingFor // all of them, by what they wait for

	// ETA is the time left at the pace that politeness allows; zero if
	// unknown. ETAWhy says what decides it ("a.example: 812 URLs at 1 per 500ms").
	ETA    time.Duration
	ETAWhy string

	// Binding is the idle line's second half: what most of the waiting work
	// waits for.
	Binding string

	// Trouble says why nothing is fetched at all: a store of the fleet does
	// not answer. Empty while all is well.
	Trouble string

	Layers []Layer
}

// HostCounts counts hosts by their scheduler state.
type HostCounts struct {
	Ready, Running, Waiting, Parked, Idle int
}

// HostStatus is one host as people see it. Its names are short where workers
// send it to each other.
type HostStatus struct {
	Host     string        `json:"h"`
	State    string        `json:"s"` // ready, running, waiting, parked, idle
	Queued   int64         `json:"q,omitempty"`
	InFlight int           `json:"i,omitempty"`
	Cap      int           `json:"c"`
	Gap      time.Duration `json:"g,omitempty"` // effective gap between request starts
	Learned  time.Duration `json:"l,omitempty"` // the learned part of it
	Until    time.Time     `json:"u,omitzero"`  // wake-up time; zero if not waiting for a time
	Reason   string        `json:"r,omitempty"` // why it waits or is parked, in words
	Recent   float64       `json:"p,omitempty"` // requests per second lately
	HTTP429  int64         `json:"t,omitempty"`
	Worker   string        `json:"w,omitempty"` // who holds it in a fleet; empty for a process alone, and in a worker's own picture
}

// Layer is one concurrency layer of SPEC §8 as a gauge.
type Layer struct {
	Name  string `json:"-"` // the place says which
	Used  int64  `json:"u"`
	Limit int64  `json:"l"`
}

// PageEvent is what --json prints, one line a page.
type PageEvent struct {
	At          time.Time `json:"at"`
	URL         string    `json:"url"`
	Outcome     string    `json:"outcome"`
	Status      int       `json:"status,omitempty"`
	ContentType string    `json:"content_type,omitempty"`
	Bytes       int64     `json:"bytes"`
	Millis      float64   `json:"ms"`
	Depth       int       `json:"depth"`
	FoundOn     string    `json:"found_on,omitempty"`
	Title       string    `json:"title,omitempty"`
	RedirectTo  string    `json:"redirect_to,omitempty"`
	Links       int       `json:"links"`
	Tries       int       `json:"tries"`
	Error       string    `json:"error,omitempty"`
}

// Summary is what the box at the end says.
type Summary struct {
	Crawl      int64
	Status     ledger.Status
	Reason     string // "Nothing left to crawl", "Reached max_urls limit of 10, stopping crawl", ...
	Counters   ledger.Counters
	Spent      int64 // pages that were paid for
	Remaining  int64 // still queued, for a resume
	ParkedURLs int64
	Duration   time.Duration
	DataDir    string // empty: nothing of it is there
	Database   bool   // the results are in one, not in DataDir
}
