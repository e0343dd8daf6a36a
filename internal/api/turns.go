package api

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns keep the API from crowding out the crawls, which share its processors.
// Only as many requests are worked on at once as half of them could. While a
// crawl runs, all turns together may also last for no more than an eighth of the
// processors' time, so an API that is asked as fast as it answers becomes
// slower, and the crawls do not; one that is asked now and then has saved up
// enough to answer at once.
//
// Requests get their turns in the order in which they came, but those that read
// one thing go before those that read many: whoever pulls whole lists must not
// keep others from seeing how their job is doing. Of every five turns one is left
// to the lists.
//
// A turn ends after turnMost even if its request does not, so one that waits for
// something else or for a slow reader holds up nobody for longer. What such a
// request works after its turn is not counted, as nobody can tell it from
// waiting: of requests that last longer only how many begin is bounded, at one
// for every turnMost of the eighth, and how many there are at once (MaxRequests).
type turns struct {
	crawling func() bool
	rate     float64       // seconds of turns that are allowed a second
	most     time.Duration // that can be saved up

	mu     sync.Mutex
	free   int
	queues [2][]chan struct{} // who waits: for one thing, for many
	lights int                // turns in a row that went to the first while others waited
	saved  time.Duration      // what turns may last for; below zero it is owed
	at     time.Time          // as of then
}

const (
	turnMost  = 10 * time.Millisecond
	turnCost  = 100 * time.Microsecond // of a request before and after its turn
	turnSaved = 100 * time.Millisecond // at most, and for each processor
)

func turnsHere(crawling func() bool) *turns { return newTurns(runtime.GOMAXPROCS(0), crawling) }

// newTurns makes the turns of so many processors.
func newTurns(processors int, crawling func() bool) *turns {
	most := time.Duration(processors) * turnSaved
	return &turns{crawling: crawling, rate: float64(processors) / 8, most: most, saved: most, at: time.Now(), free: max(processors/2, 1)}
}

// take waits for a turn; end ends it, once or more often.
func (t *turns) take(ctx context.Context, many bool) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
	} else {
		mine, q := make(chan struct{}), &t.queues[0]
		if many {
			q = &t.queues[1]
		}
		*q = append(*q, mine)
		t.mu.Unlock()
		select {
		case <-mine:
		case <-ctx.Done():
			t.leave(q, mine)
			return nil, ctx.Err()
		}
	}
	began := time.Now()
	once := sync.OnceFunc(func() { t.end(time.Since(began)) })
	timer := time.AfterFunc(turnMost, once)
	return func() { timer.Stop(); once() }, nil
}

// leave gives up waiting; a turn that came at the same moment goes on to others.
func (t *turns) leave(q *[]chan struct{}, mine chan struct{}) {
	t.mu.Lock()
	i := slices.Index(*q, mine)
	if i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.pass()
	}
}

// end takes a turn that lasted for so long, and passes it on when no more is
// owed than is allowed.
func (t *turns) end(lasted time.Duration) {
	if owed := t.spend(min(lasted, turnMost) + turnCost); owed > 0 {
		time.AfterFunc(owed, t.pass)
		return
	}
	t.pass()
}

func (t *turns) spend(d time.Duration) (owed time.Duration) {
	crawling := t.crawling != nil && t.crawling()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = min(t.saved+time.Duration(t.rate*float64(now.Sub(t.at))), t.most) - d
	if !crawling {
		t.saved = t.most
	}
	t.at = now
	return time.Duration(float64(-t.saved) / t.rate)
}

// pass gives a turn to whoever is next.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, many := &t.queues[0], &t.queues[1]
	next := one
	if len(*one) == 0 || t.lights >= 4 && len(*many) > 0 {
		next, t.lights = many, 0
	} else if len(*many) > 0 {
		t.lights++
	}
	if len(*next) == 0 {
		t.free++
		return
	}
	close((*next)[0])
	*next = (*next)[1:]
}
