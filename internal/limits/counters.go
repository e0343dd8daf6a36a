package limits

import "sync/atomic"

// Counters are the sums that metrics show [OBS-2]. They only grow. The zero
// value is ready; the struct is not to be copied.
type Counters struct {
	HTTP429              atomic.Int64 // answers of 429
	Retries              atomic.Int64 // tries that were put off to a later time
	Cancellations        atomic.Int64 // jobs cancelled by a rule of this package
	ConcurrencyOverrides atomic.Int64 // times a learned delay took slots from a host
}

// Counts is a reading of Counters.
type Counts struct {
	HTTP429              int64 `json:"http_429"`
	Retries              int64 `json:"retries"`
	Cancellations        int64 `json:"cancellations"`
	ConcurrencyOverrides int64 `json:"concurrency_overrides"`
}

// Read returns the sums as they are now.
func (c *Counters) Read() Counts {
	return Counts{HTTP429: c.HTTP429.Load(), Retries: c.Retries.Load(),
		Cancellations: c.Cancellations.Load(), ConcurrencyOverrides: c.ConcurrencyOverrides.Load()}
}
