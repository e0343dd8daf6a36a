package api

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// turns keep the API from crowding out the crawls, which share its processors.
// Only as many requests are worked on at once as half of them could, in the
// order in which they came. While a crawl runs, all turns together may also last
// for no more than an eighth of the processors' time, so an API that is asked as
// fast as it answers becomes slower, and the crawls do not; one that is asked
// now and then has saved up enough to answer at once.
//
// A turn ends after turnMost even if its request does not, so one that waits for
// something else or for a slow reader holds up nobody for longer.
type turns struct {
	free     chan struct{}
	crawling func() bool
	rate     float64 // seconds of turns that are allowed a second

	mu    sync.Mutex
	saved time.Duration // what turns may last for; below zero it is owed
	at    time.Time     // as of then
}

const (
	turnMost  = 10 * time.Millisecond
	turnSaved = 100 * time.Millisecond // at most, and for each processor
)

// newTurns makes the turns of so many processors.
func newTurns(processors int, crawling func() bool) *turns {
	return &turns{free: make(chan struct{}, max(processors/2, 1)), crawling: crawling, rate: float64(processors) / 8}
}

func turnsHere(crawling func() bool) *turns { return newTurns(runtime.GOMAXPROCS(0), crawling) }

// take waits for a turn; end ends it, once or more often.
func (t *turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if owed := t.owed(); owed > 0 {
		timer := time.NewTimer(owed)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			<-t.free
			return nil, ctx.Err()
		}
	}
	began := time.Now()
	once := sync.OnceFunc(func() {
		t.spend(time.Since(began))
		<-t.free
	})
	timer := time.AfterFunc(turnMost, once)
	return func() { timer.Stop(); once() }, nil
}

// owed is how long it takes until the next turn may begin.
func (t *turns) owed() time.Duration {
	crawling := t.crawling != nil && t.crawling()
	now := time.Now()
	most := time.Duration(t.rate * 8 * float64(turnSaved))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || !crawling {
		t.saved = most
	} else {
		t.saved = min(t.saved+time.Duration(t.rate*float64(now.Sub(t.at))), most)
	}
	t.at = now
	return time.Duration(float64(-t.saved) / t.rate)
}

func (t *turns) spend(d time.Duration) {
	t.mu.Lock()
	t.saved -= min(d, turnMost)
	t.mu.Unlock()
}
