package ledger

import (
	"errors"
	"time"
)

// Job is a crawl that somebody ordered.
type Job struct {
	ID       string
	Seq      int64 // given by the ledger, ascending in the order of submission
	Tenant   string
	Type     string // crawl, warm, or one of those that take no slot
	Status   Status
	Error    string // why it is partial, failed or cancelled, or waits; in words
	Success  *bool  // nil while it has not ended
	Priority int    // higher first, among the jobs of one tenant
	Seeds    []string
	Request  []byte // JSON, as it was asked for
	Limits   []byte // JSON of the effective limits, with reasons
	Webhook  string // told of the end; empty if nobody is
	Schedule string // the schedule that ordered it; empty if a person did
	Crawl    int64  // its crawl; 0 before its first slot

	Idempotency string // the caller's own name for the order; empty if none
	Fingerprint string // of the request, to tell a repeated order from another one

	Month    string // the month its pages are reserved in
	Reserved int64  // pages set aside for it; 0 once it ended
	Spent    int64  // pages it paid for; known at its end

	Created time.Time
	Granted time.Time     // when it was last given a slot; zero if it never was
	Ran     time.Duration // time spent with a slot in earlier grants, and up to Updated in this one
	Ended   time.Time     // zero while it has not
	Updated time.Time
}

// The types of jobs that hold no slot of the queue.
const (
	TypeFetch   = "fetch"   // one page, for somebody who waits for it
	TypeCommand = "command" // a crawl on the command line, shown as a job
)

// Done reports whether a status is one of the ends.
func (s Status) Done() bool {
	return s == Completed || s == Partial || s == Failed || s == Cancelled
}

// JobEvent is one line of a job's story, kept for those who watch.
type JobEvent struct {
	ID   int64 // given by the ledger, ascending in the order of commit
	Job  string
	At   time.Time
	Type string // status, warning, stalled, throttled, ...
	Data string // JSON
}

// Delivery is one message for a webhook, kept until it arrived or was given up.
type Delivery struct {
	ID       int64 // given by the ledger
	Tenant   string
	Job      string
	Event    string // job.completed, ...
	URL      string
	Body     string // JSON
	Attempts int
	Next     time.Time // not before; zero once it is over
	Created  time.Time
	Done     time.Time // delivered, or given up; zero until then
	Status   int       // HTTP status of the last attempt; 0 if there was no answer
	Error    string    // of the last attempt
}

// Schedule orders a job again and again.
type Schedule struct {
	ID      string
	Tenant  string
	Name    string
	Rule    string // 6h, 12h, 24h, 48h, or five fields of cron in UTC
	Request []byte // JSON of the order
	Enabled bool
	Created time.Time
	Next    time.Time // when it is due; zero while disabled
	Last    time.Time // when it was last due; zero if never
	LastJob string    // the job it ordered last
	Skipped int64     // times it was due while its last job still ran
	Note    string    // why it was last skipped or refused; empty if it was not
}

// JobFilter chooses jobs, newest first.
type JobFilter struct {
	Tenant   string // empty: of every tenant
	Statuses []Status
	Type     string // empty: every type but fetches, of which there are many
	Schedule string
	Match    string // part of a seed or of the ID
	Before   int64  // a Job.Seq: go on behind this job; 0 from the newest
	Limit    int    // 0 is no limit
}

// JobChange is what an update of a job writes beside the job, in the same
// transaction.
type JobChange struct {
	Events     []JobEvent
	Deliveries []Delivery
}

// Waiting is what choosing the next job needs to know of a queued one.
type Waiting struct {
	ID       string
	Seq      int64
	Tenant   string
	Priority int
}

// Contest is the state of the queue when a slot is to be given away.
type Contest struct {
	Waiting []Waiting         // in the order of submission
	Running map[string]int    // jobs that hold a slot, by tenant
	Served  map[string]int    // slots granted since the time that was asked for, by tenant
	Tenants map[string]Tenant // of those who wait
}

// What the job side of a ledger answers with.
var (
	ErrNoJob      = errors.New("there is no such job")
	ErrNoTenant   = errors.New("there is no such tenant")
	ErrNoKey      = errors.New("there is no such key")
	ErrNoSchedule = errors.New("there is no such schedule")
	ErrExists     = errors.New("it exists already")
	ErrFull       = errors.New("there are as many as the plan allows")
)
