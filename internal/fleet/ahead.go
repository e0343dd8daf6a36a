package fleet

import (
	"sync"
	"time"
)

// ahead reckons how far the store's clock is ahead of this machine's. One look
// is off by half the time that the question took at most; the best look counts,
// until it is so old that the clocks may have drifted apart by more than a new
// one is off, or a new one shows that somebody has set a clock.
type ahead struct {
	mu    sync.Mutex
	known bool
	by    time.Duration
	give  time.Duration // by may be off by so much
	at    time.Time
}

// drift of two clocks that nobody sets: a millisecond in a second is far more
// than what machines do.
const drift = 1000

// heard takes a look: the store's time, asked for and told between two times of
// ours.
func (a *ahead) heard(sent, got, store time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	give := got.Sub(sent) / 2
	by := store.Sub(sent.Add(give))
	old := a.give + got.Sub(a.at)/drift
	if !a.known || give <= old || (by-a.by).Abs() > give+old {
		a.known, a.by, a.give, a.at = true, by, give, got
	}
}

// look is the reckoning now.
func (a *ahead) look(now time.Time) (by, give time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return 0, 0
	}
	return a.by, a.give + max(now.Sub(a.at), 0)/drift
}
