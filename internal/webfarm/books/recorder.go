package books

import (
	"sync"
	"sync/atomic"
	"time"
)

// Recorder holds the books of all hosts of one simulated web.
type Recorder struct {
	epoch     time.Time
	hosts     []*Host
	all       crowd
	conns     atomic.Int64
	malformed atomic.Int64
}

// crowd counts the requests in flight at all hosts together.
type crowd struct {
	mu        sync.Mutex
	now, most int
}

func (c *crowd) add(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

// NewRecorder starts the recorder's clock and takes the books of hosts.
func NewRecorder(hosts ...*Host) *Recorder {
	r := &Recorder{epoch: time.Now(), hosts: hosts}
	for _, h := range hosts {
		h.all = &r.all
	}
	return r
}

// Now is the recorder's monotonic clock.
func (r *Recorder) Now() time.Duration { return time.Since(r.epoch) }

// Connected counts a connection.
func (r *Recorder) Connected() { r.conns.Add(1) }

// Malformed counts a request that could not be read or belonged to no host.
func (r *Recorder) Malformed() { r.malformed.Add(1) }

// Reset empties all books.
func (r *Recorder) Reset() {
	for _, h := range r.hosts {
		h.reset()
	}
	r.all.mu.Lock()
	r.all.most = r.all.now
	r.all.mu.Unlock()
	r.conns.Store(0)
	r.malformed.Store(0)
}

// Counts are the sums that hosts and totals share.
type Counts struct {
	Requests    int64 `json:"requests"`
	Pages       int64 `json:"pages"` // distinct pages served whole
	Duplicates  int64 `json:"duplicates"`
	Redirects   int64 `json:"redirects"`
	Robots      int64 `json:"robots"`
	Sitemaps    int64 `json:"sitemaps"`
	Throttled   int64 `json:"throttled"`
	Failed      int64 `json:"failed"`
	NotFound    int64 `json:"not_found"`
	Other       int64 `json:"other"`
	Closed      int64 `json:"closed"`       // requests for URLs that robots.txt closes
	DuringBlock int64 `json:"during_block"` // requests while Retry-After ran
	Bytes       int64 `json:"bytes"`
}

func (c *Counts) add(o Counts) {
	c.Requests += o.Requests
	c.Pages += o.Pages
	c.Duplicates += o.Duplicates
	c.Redirects += o.Redirects
	c.Robots += o.Robots
	c.Sitemaps += o.Sitemaps
	c.Throttled += o.Throttled
	c.Failed += o.Failed
	c.NotFound += o.NotFound
	c.Other += o.Other
	c.Closed += o.Closed
	c.DuringBlock += o.DuringBlock
	c.Bytes += o.Bytes
}

// HostBooks is the closed account of one host.
type HostBooks struct {
	Host string `json:"host"`
	Counts
	MaxInFlight int `json:"max_in_flight"`
	// MinGapMS is the smallest time between two arrivals; null before the
	// second one.
	MinGapMS *float64 `json:"min_gap_ms"`
	// SpanSeconds is the time from the first arrival to the last.
	SpanSeconds float64 `json:"span_seconds"`
}

// Books is the closed account of a simulated web.
type Books struct {
	Counts
	Connections int64       `json:"connections"`
	Malformed   int64       `json:"malformed"`
	MaxInFlight int         `json:"max_in_flight"` // of any one host
	MostInAll   int         `json:"most_in_all"`   // in flight at all hosts together
	MinGapMS    *float64    `json:"min_gap_ms"`    // of any one host
	SpanSeconds float64     `json:"span_seconds"`
	Hosts       []HostBooks `json:"hosts"`
}

// Books closes the accounts as they stand now. Hosts that were never asked
// are listed too: a host that was forgotten must be visible.
func (r *Recorder) Books() Books {
	b := Books{Connections: r.conns.Load(), Malformed: r.malformed.Load(), Hosts: make([]HostBooks, 0, len(r.hosts))}
	r.all.mu.Lock()
	b.MostInAll = r.all.most
	r.all.mu.Unlock()
	var first, last time.Duration
	started := false
	for _, h := range r.hosts {
		hb, f, l := h.account()
		b.Hosts = append(b.Hosts, hb)
		b.Counts.add(hb.Counts)
		b.MaxInFlight = max(b.MaxInFlight, hb.MaxInFlight)
		if hb.MinGapMS != nil && (b.MinGapMS == nil || *hb.MinGapMS < *b.MinGapMS) {
			b.MinGapMS = hb.MinGapMS
		}
		if hb.Requests == 0 {
			continue
		}
		if !started || f < first {
			first = f
		}
		last, started = max(last, l), true
	}
	b.SpanSeconds = (last - first).Seconds()
	return b
}

func (h *Host) account() (hb HostBooks, first, last time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hb = HostBooks{
		Host: h.name,
		Counts: Counts{
			Requests: h.requests, Pages: h.unique, Duplicates: h.duplicates,
			Redirects: h.kinds[Redirect], Robots: h.kinds[Robots], Sitemaps: h.kinds[Sitemap],
			Throttled: h.kinds[Throttled], Failed: h.kinds[Failed], NotFound: h.kinds[NotFound],
			Other: h.kinds[Other], Closed: h.closed, DuringBlock: h.inBlock, Bytes: h.bytes,
		},
		MaxInFlight: h.maxInFlight,
		SpanSeconds: (h.last - h.first).Seconds(),
	}
	if h.requests > 1 {
		ms := float64(h.minGap) / float64(time.Millisecond)
		hb.MinGapMS = &ms
	}
	return hb, h.first, h.last
}
