package crawl

import (
	"time"

	"tiptoe/internal/ledger"
)

// GiveUp cancels a crawl for which nothing is in hand, and reports whether it
// did: no request of it goes out any more. One for which something is in hand
// goes on. In a fleet the others are asked as well as they can be; what they
// had in hand by then is written down as ever.
func (r *Run) GiveUp(reason string) bool {
	if busy, _ := r.inHand(time.Time{}); busy {
		return false
	}
	sched := r.e.sched
	sched.Pause(r.fc)
	// A grant is made under its shard's lock. Whoever saw the crawl unpaused
	// is done once every lock was taken, and the counters tell of it.
	sched.Snapshot(r.e.cfg.Now(), 0, r.fc)
	if busy, _ := r.inHand(time.Time{}); busy {
		sched.Unpause(r.fc, r.e.cfg.Now())
		return false
	}
	r.StopAs(ledger.Cancelled, reason)
	return true
}
