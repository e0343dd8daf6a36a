package frontier

import "sync/atomic"

// Slots bounds a crawl's requests in flight over all its hosts, robots fetches
// included. In a fleet each worker has a part of them, which changes as the
// crawl goes on. A nil Slots bounds nothing.
type Slots struct {
	limit, used atomic.Int64
}

// NewSlots lets n requests be in flight at once.
func NewSlots(n int64) *Slots {
	s := new(Slots)
	s.limit.Store(n)
	return s
}

// Limit is how many may be in flight.
func (s *Slots) Limit() int64 {
	if s == nil {
		return 0
	}
	return s.limit.Load()
}

// take counts a request before its permit; false if there is no room. A check
// followed by a count would let two shards through.
func (s *Slots) take() bool {
	if s == nil {
		return true
	}
	for {
		n := s.used.Load()
		if n >= s.limit.Load() {
			return false
		}
		if s.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Slots) give() {
	if s != nil {
		s.used.Add(-1)
	}
}

// Full reports that no more may be in flight.
func (s *Slots) Full() bool { return s != nil && s.used.Load() >= s.limit.Load() }

// SetSlots changes how many requests of a crawl may be in flight. Those above a
// lower number end as they do.
func (s *Scheduler) SetSlots(c *Crawl, n int64) {
	if c.Slots == nil {
		return
	}
	c.Slots.limit.Store(n)
	s.offerFull(c)
}
