package frontier

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Board is where the workers of a fleet meet, beside the frontier itself: who
// is there, which crawls are on, how many pages each may still take. One
// store implements it together with Leases. No page is lost with it: a crawl
// that is off the board is taken up by whoever resumes it. What was spent then
// begins again at the rows that the crawl had when it was opened, so pages since
// then are not counted against its cap.
type Board interface {
	Leases

	// Claim leases one group by name, with or without work in it, if nobody
	// else holds it.
	Claim(ctx context.Context, worker string, ttl time.Duration, group string) (l Lease, ok bool, err error)

	// Announce puts a crawl on the board or changes how it is doing; it stays
	// until it is withdrawn. Acquire offers no work of a crawl that is held.
	// When a process announces a crawl that it had not on, whoever holds groups
	// with work of it hears of them by Renew. A crawl is its first announcer's:
	// what another one says of it is ErrSuperseded, unless it takes it over
	// (First). So is what is said of a crawl that was withdrawn.
	Announce(ctx context.Context, c Announced) error
	Withdraw(ctx context.Context, crawl int64, by string) error
	Crawls(ctx context.Context) ([]Announced, error)

	// Shelve lets Acquire offer no more work of a crawl, whoever asks for it:
	// nobody stands by it. It is offered again when it is next announced.
	Shelve(ctx context.Context, crawl int64) error

	// Spend takes up to n pages of a crawl's budget for a worker; fewer, or
	// none, if no more are left. A negative n gives pages back. A crawl with
	// no cap has any number, one that is not on the board none. spent is what
	// all workers have taken by now; what a worker took and died with stays
	// spent, as nobody knows how much of it was used. It outlives Withdraw,
	// until the crawl is dropped: one that is resumed has no second budget.
	Spend(ctx context.Context, crawl int64, worker string, n int64) (granted, spent int64, err error)

	// Report tells how a crawl goes at one worker; it is forgotten after ttl.
	// A ttl of 0 removes it. A report without a picture leaves the last one
	// standing; pictures are larger, so they are read only if they are wanted.
	Report(ctx context.Context, r Report, ttl time.Duration) error
	Reports(ctx context.Context, crawl int64, pictures bool) ([]Report, error)
}

// Announced is a crawl as the board shows it.
type Announced struct {
	ID      int64     `json:"id"`
	By      string    `json:"by"`             // the worker that supervises it
	Held    bool      `json:"held,omitempty"` // no new requests: it is being stopped, or paused
	Cap     int64     `json:"cap,omitempty"`  // pages over all workers; 0: no cap
	Used    int64     `json:"used,omitempty"` // pages that had a row when it was opened: no less is spent
	Changed time.Time `json:"changed"`        // when the supervisor last said so, by the store's clock as it knows it
	First   bool      `json:"-"`              // the supervisor's first word about it
	Anew    bool      `json:"-"`              // it was silent for so long that workers may have left
	Cut     bool      `json:"cut,omitempty"`  // what is in flight gets no grace

	// Slots are the requests that each worker may have in flight, of a crawl
	// with a bound on them. Round numbers the division.
	Slots map[string]int64 `json:"slots,omitempty"`
	Round int64            `json:"round,omitempty"`
}

// Report is how a crawl goes at one worker.
type Report struct {
	Crawl     int64           `json:"crawl"`
	Worker    string          `json:"worker"`
	At        time.Time       `json:"at"`
	Parked    int64           `json:"parked,omitempty"`    // URLs of parked hosts
	InHand    int64           `json:"in_hand,omitempty"`   // URLs and requests that somebody works on
	InFlight  int64           `json:"in_flight,omitempty"` // of those, requests on the wire
	Retrying  int64           `json:"retrying,omitempty"`  // URLs that wait for another try
	Allowance int64           `json:"allowance,omitempty"` // pages taken from the budget and not used
	Hungry    bool            `json:"hungry,omitempty"`    // wants more pages than it has
	Rate      float64         `json:"rate,omitempty"`
	Slots     int64           `json:"slots,omitempty"`      // that the worker goes by
	Round     int64           `json:"round,omitempty"`      // the division that they are from
	SlotsFull bool            `json:"slots_full,omitempty"` // wants more of them
	Counters  json.RawMessage `json:"counters"`             // of this worker, since it joined; the store does not look into it
	Classes   [6]int64        `json:"classes"`
	Picture   []byte          `json:"-"` // what people see of it; the store does not look into it
}

// ErrSuperseded says that another process supervises a crawl, or that it is off
// the board: ended elsewhere, or forgotten with the frontier (Pending tells).
var ErrSuperseded = errors.New("the crawl is not this process's to supervise")
