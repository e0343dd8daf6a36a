package frontier

import (
	"sync"
	"time"
)

// Shares divides the workers among tenants by weight.
//
// Each tenant has an account of the worker time that it has had, divided by its
// weight. Who has work that is due and the least on its account goes next; what
// a request in flight will probably cost is on it already, or all workers that
// come free at one moment would go to the same tenant. So the parts are exact
// over time for two workers as for five hundred, whether requests are short or
// long, and nobody waits while there is a worker that nobody else wants.
//
// Who could not use its turns, because it had nothing to do or its hosts were
// not due, may make up for little of it (credit): its account never stays
// further behind the clock, which is the account of whoever went last.
type Shares struct {
	workers int

	mu    sync.Mutex // taken under a shard's lock; all accounts are its
	open  []*Share
	clock float64 // seconds of worker time by weight
	hold  float64 // seconds that a worker is held for a request, smoothed
}

// NewShares divides so many workers.
func NewShares(workers int) *Shares { return &Shares{workers: max(workers, 1), hold: 0.1} }

// Share is one tenant's part.
type Share struct {
	of     *Shares // nil for crawls that share with nobody
	weight float64
	lanes  laneSet

	used  int       // requests in flight
	spent float64   // seconds of worker time by weight, up to at
	at    time.Time // of the last entry
}

// Open gives a tenant its part; Close takes it back.
func (s *Shares) Open(weight int) *Share {
	h := &Share{of: s, weight: float64(max(weight, 1))}
	s.mu.Lock()
	s.open = append(s.open, h)
	s.mu.Unlock()
	return h
}

// Close forgets a tenant that has nothing in hand any more.
func (s *Shares) Close(share *Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o == share {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// take enters a request that begins, give one that has ended after it held its
// worker for so long.
func (h *Share) take(now time.Time) {
	if h.of == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.spent = h.account(now)
	h.at = now
	h.of.clock = max(h.of.clock, h.spent)
	h.used++
}

func (h *Share) give(now time.Time, held time.Duration) {
	if h.of == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.spent = h.account(now)
	h.at = now
	h.used--
	h.of.hold = max(h.of.hold+(held.Seconds()-h.of.hold)/16, 0.001)
}

// account is what the tenant has had, with its requests in flight up to now.
func (h *Share) account(now time.Time) float64 {
	had := h.spent
	if h.used > 0 {
		had += max(now.Sub(h.at).Seconds(), 0) * float64(h.used) / h.weight
	}
	return max(had, h.of.clock-h.of.credit()-h.flying())
}

// flying is what the requests in flight will probably cost in all.
func (h *Share) flying() float64 { return float64(h.used) * h.of.hold / h.weight }

// credit is a little more than tenants that all have work are apart.
func (s *Shares) credit() float64 { return s.hold + s.few() }

// few is how much a tenant of weight 1 may be ahead of another.
func (s *Shares) few() float64 { return s.hold * float64(max(s.workers/16, 1)) }

// key orders those that want the next worker: the least goes first.
func (h *Share) key(now time.Time) float64 {
	return h.account(now) + h.flying()
}

// least finds the lane whose tenant goes first among lanes that are due.
func (s *Shares) least(lanes []*lane, now time.Time) (first *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := 0.0
	for _, l := range lanes {
		if l.share.of != s || !l.due(now) {
			continue
		}
		if k := l.share.key(now); first == nil || k < best {
			first, best = l, k
		}
	}
	return first
}

// ahead reports that the tenant must leave the next worker to another one who
// has work that is due, in whichever shard; after is now counted from the
// scheduler's start. It may be ahead by a few requests:
// that is made up for later, and shards need not wait for each other each time.
func (h *Share) ahead(now time.Time, after time.Duration) bool {
	s := h.of
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) < 2 {
		return false
	}
	mine := h.key(now) - s.few()/h.weight
	for _, o := range s.open {
		if o != h && o.key(now) < mine && o.lanes.due(after) {
			return true
		}
	}
	return false
}
