package books

import (
	"sync"
	"time"
)

// Kind says what an answer was.
type Kind uint8

// The kinds of answers.
const (
	Other Kind = iota
	Page
	Redirect
	Robots
	Sitemap
	Throttled
	Failed
	NotFound
	kinds
)

// Grace is how long a Retry-After needs to reach the client before a new
// request counts as a breach.
const Grace = 25 * time.Millisecond

// maxPages bounds the page numbers of one host, so that a site that hands out
// numbers by accident cannot take all memory.
const maxPages = 1 << 26

// Entry is how one request ended.
type Entry struct {
	Kind       Kind
	Page       int           // the page's number, or -1
	Bytes      int           // of the body
	Closed     bool          // robots.txt forbids this URL
	RetryAfter time.Duration // announced to the client; 0 means none
}

// Host is the book of one host.
type Host struct {
	name string
	all  *crowd // of its recorder

	mu          sync.Mutex
	kinds       [kinds]int64
	unique      int64
	duplicates  int64
	closed      int64
	inBlock     int64
	bytes       int64
	requests    int64
	inFlight    int
	maxInFlight int
	first, last time.Duration
	minGap      time.Duration // valid when requests > 1
	blockFrom   time.Duration
	blockUntil  time.Duration
	asked       []uint8 // requests per page, saturating
	served      []uint8 // complete answers per page, saturating
}

// NewHost opens a book with room for pages numbered below pages; higher
// numbers make it grow.
func NewHost(name string, pages int) *Host {
	return &Host{name: name, asked: make([]uint8, pages), served: make([]uint8, pages)}
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Begin records the arrival of a request.
func (h *Host) Begin(now time.Duration) {
	h.all.add(1)
	h.mu.Lock()
	if h.requests == 0 {
		h.first = now
	} else if gap := max(now-h.last, 0); h.requests == 1 || gap < h.minGap {
		h.minGap = gap
	}
	// Two connections may read the clock in one order and come here in the
	// other; that is a gap of zero, and last stays the latest.
	h.last = max(h.last, now)
	h.requests++
	h.inFlight++
	h.maxInFlight = max(h.maxInFlight, h.inFlight)
	if now >= h.blockFrom && now < h.blockUntil {
		h.inBlock++
	}
	h.mu.Unlock()
}

// Ask notes that a page was asked for and returns how often it had been asked
// for before (saturating at 255).
func (h *Host) Ask(page int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.grow(page) {
		return 0
	}
	n := h.asked[page]
	if n < 255 {
		h.asked[page] = n + 1
	}
	return int(n)
}

// End records the answer to a request that Begin recorded.
func (h *Host) End(now time.Duration, e Entry) {
	h.all.add(-1)
	h.mu.Lock()
	h.inFlight--
	h.kinds[e.Kind]++
	h.bytes += int64(e.Bytes)
	if e.Closed {
		h.closed++
	}
	if e.RetryAfter > 0 {
		if now >= h.blockUntil {
			h.blockFrom = now + Grace
		}
		h.blockUntil = max(h.blockUntil, now+e.RetryAfter)
	}
	if e.Kind == Page && h.grow(e.Page) {
		switch n := h.served[e.Page]; {
		case n == 0:
			h.unique++
			h.served[e.Page] = 1
		default:
			h.duplicates++
			if n < 255 {
				h.served[e.Page] = n + 1
			}
		}
	}
	h.mu.Unlock()
}

// Served reports how often a page was served whole (saturating at 255).
func (h *Host) Served(page int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if page < 0 || page >= len(h.served) {
		return 0
	}
	return int(h.served[page])
}

// grow makes room for page and reports whether it can be counted.
func (h *Host) grow(page int) bool {
	if page < 0 || page >= maxPages {
		return false
	}
	if n := page + 1 - len(h.served); n > 0 {
		h.served = append(h.served, make([]uint8, n)...)
		h.asked = append(h.asked, make([]uint8, page+1-len(h.asked))...)
	}
	return true
}

// reset empties the book. Requests in flight stay in flight.
func (h *Host) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.asked)
	clear(h.served)
	h.kinds = [kinds]int64{}
	h.unique, h.duplicates, h.closed, h.inBlock, h.bytes, h.requests = 0, 0, 0, 0, 0, 0
	h.maxInFlight = h.inFlight
	h.first, h.last, h.minGap, h.blockFrom, h.blockUntil = 0, 0, 0, 0, 0
}
