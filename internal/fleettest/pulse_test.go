package fleettest

import (
	"sync/atomic"
	"testing"
	"time"
)

// pulse measures how late this machine lets a process run that wants to: the
// noise in everything the farm, which lives in this process, says of time.
type pulse struct{ worst atomic.Int64 }

func startPulse(t *testing.T) *pulse {
	p, stop, done := new(pulse), make(chan struct{}), make(chan struct{})
	const every = 5 * time.Millisecond
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now := time.Now()
			p.worst.Store(max(p.worst.Load(), int64(now.Sub(last)-every)))
			last = now
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return p
}

// arrivals demands that the farm saw no two requests of one host closer than
// the pace. A request's start is written down before it is on the wire; from
// there this machine's scheduler may hold one back and not the next. What is
// allowed for that is how late it was seen to be, and a quarter of the pace.
// A second owner would keep no distance at all.
func (f *fleet) arrivals(pace time.Duration) {
	f.t.Helper()
	late := time.Duration(f.pulse.worst.Load())
	least := pace*3/4 - late
	if least <= 0 {
		f.t.Logf("this machine was up to %s late: gaps at the farm prove nothing here; the ledger's do", late)
		return
	}
	for _, h := range f.farm.Books().Hosts {
		if h.MinGapMS != nil && *h.MinGapMS < float64(least)/float64(time.Millisecond) {
			f.t.Errorf("%s saw two requests %.1f ms apart, the pace is %s, and this machine was at most %s late", h.Host, *h.MinGapMS, pace, late)
		}
	}
}
