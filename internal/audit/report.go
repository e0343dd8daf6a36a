package audit

import (
	"container/heap"
	"net/http"
	"slices"
	"strings"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// Kind names a broken promise.
type Kind string

// The kinds of violations.
const (
	GapTooShort      Kind = "gap"              // two requests started too close together
	TooManyInFlight  Kind = "in_flight"        // more at once than the cap
	CapAboveSettings Kind = "cap"              // a cap wider than the settings allow
	BlockBroken      Kind = "block"            // a request in a time of quiet that the server asked for
	Disallowed       Kind = "robots"           // robots.txt says no
	RobotsUnknown    Kind = "robots_not_known" // nobody had looked yet
	Refused          Kind = "refused_by_us"    // scope, trap or budget said no
)

// Report is what the log proves.
type Report struct {
	Crawls         []int64     `json:"crawls"`
	First          time.Time   `json:"first"`
	Last           time.Time   `json:"last"`
	Requests       int64       `json:"requests"`
	NotSent        int64       `json:"not_sent"` // permits whose request never reached the wire
	Kept           bool        `json:"kept"`
	ViolationCount int64       `json:"violation_count"`
	Violations     []Violation `json:"violations"` // the first of them
	Hosts          []Host      `json:"hosts"`      // broken promises first, then by requests
}

// Host is one group of hosts that is paced together.
type Host struct {
	Host          string        `json:"host"`
	Requests      int64         `json:"requests"`
	NotSent       int64         `json:"not_sent"`
	First         time.Time     `json:"first"`
	Last          time.Time     `json:"last"`
	HasGap        bool          `json:"has_gap"` // there were two requests to compare
	SmallestGap   time.Duration `json:"smallest_gap_ns"`
	OwedThere     time.Duration `json:"gap_owed_there_ns"` // between the two requests of the smallest gap
	OwedWhy       string        `json:"gap_owed_for"`
	LongestOwed   time.Duration `json:"longest_gap_owed_ns"`
	LeastSpare    time.Duration `json:"least_spare_ns"` // of all gaps: how much longer it was than owed
	MostInFlight  int           `json:"most_in_flight"`
	CapThere      int           `json:"cap"`
	Blocks        int64         `json:"blocks"` // answers that asked for quiet
	BlocksKept    int64         `json:"blocks_kept"`
	RobotsIgnored bool          `json:"robots_ignored"`
	Violations    int64         `json:"violations"`
}

// Violation is one broken promise and the requests that broke it.
type Violation struct {
	Kind     Kind          `json:"kind"`
	Host     string        `json:"host"`
	Text     string        `json:"text"`
	Owed     time.Duration `json:"owed_ns,omitempty"`
	Got      time.Duration `json:"got_ns,omitempty"`
	Until    *time.Time    `json:"until,omitempty"` // of a block
	InFlight int           `json:"in_flight,omitempty"`
	Cap      int           `json:"cap,omitempty"`
	Requests []*Request    `json:"requests"`
}

// Request names one request.
type Request struct {
	Crawl   int64     `json:"crawl"`
	Permit  uint64    `json:"permit"`
	URL     string    `json:"url"`
	Cause   string    `json:"cause"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`

	fp weburl.Fingerprint
}

func (h *Host) count(row *request) {
	if !row.Sent() {
		h.NotSent++
		return
	}
	h.Requests++
	if h.First.IsZero() {
		h.First = row.Started
	}
	h.Last = row.Started
}

func (a *auditor) violate(v *Violation, rows ...*request) {
	a.report.ViolationCount++
	a.g.host.Violations++
	if len(a.report.Violations) >= keptViolations {
		return
	}
	v.Host = a.g.host.Host
	for _, r := range rows {
		v.Requests = append(v.Requests, &Request{Crawl: r.Crawl, Permit: r.Permit, URL: r.URL, Cause: r.Cause,
			Started: r.Started, Ended: r.Ended, fp: r.FP})
	}
	a.report.Violations = append(a.report.Violations, *v)
}

func (a *auditor) finish() *Report {
	a.endGroup()
	r := &a.report
	for id := range a.crawls {
		r.Crawls = append(r.Crawls, id)
	}
	slices.Sort(r.Crawls)
	for i := range r.Hosts {
		h := &r.Hosts[i]
		r.Requests += h.Requests
		r.NotSent += h.NotSent
		if !h.First.IsZero() && (r.First.IsZero() || h.First.Before(r.First)) {
			r.First = h.First
		}
		if h.Last.After(r.Last) {
			r.Last = h.Last
		}
	}
	slices.SortStableFunc(r.Hosts, func(x, y Host) int {
		switch {
		case (x.Violations > 0) != (y.Violations > 0):
			if x.Violations > 0 {
				return -1
			}
			return 1
		case x.Requests != y.Requests:
			if x.Requests > y.Requests {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Host, y.Host)
	})
	r.Kept = r.ViolationCount == 0
	return r
}

// running is a request in flight; inFlight orders them by their end.
type running struct {
	ended time.Time
	cap   int
	row   ledger.Request
}

type inFlight []running

var _ heap.Interface = (*inFlight)(nil)

func (h inFlight) Len() int           { return len(h) }
func (h inFlight) Less(i, j int) bool { return h[i].ended.Before(h[j].ended) }
func (h inFlight) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *inFlight) Push(x any)        { *h = append(*h, x.(running)) }
func (h *inFlight) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// retryAfter reads a header again. A date means what it meant by the server's
// own clock, which the log has not: then what was understood at the time holds.
func retryAfter(header string, at, understood time.Time) time.Time {
	if header == "" {
		return time.Time{}
	}
	if _, err := http.ParseTime(header); err == nil && !understood.IsZero() {
		return understood
	}
	t, _ := fetch.RetryAfter(http.Header{"Retry-After": {header}}, at)
	return t
}
