package api

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// rates holds one token bucket a key. A bucket that is full again is as good
// as none, so those are dropped when there are many.
type rates struct {
	perSecond float64
	burst     float64
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// maxBuckets is when full buckets are looked for.
const maxBuckets = 4096

func newRates(perSecond float64, burst int, now func() time.Time) *rates {
	return &rates{perSecond: perSecond, burst: float64(burst), now: now, buckets: make(map[string]bucket)}
}

// take takes one token, or says how long there is none.
func (l *rates) take(id string) (wait time.Duration, ok bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, seen := l.buckets[id]
	if !seen {
		if len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		b = bucket{tokens: l.burst, at: now}
	}
	b = bucket{tokens: l.filled(b, now), at: now}
	if b.tokens < 1 {
		l.buckets[id] = b
		return time.Duration((1 - b.tokens) / l.perSecond * float64(time.Second)), false
	}
	b.tokens--
	l.buckets[id] = b
	return 0, true
}

func (l *rates) filled(b bucket, now time.Time) float64 {
	return min(l.burst, b.tokens+max(now.Sub(b.at).Seconds(), 0)*l.perSecond)
}

func (l *rates) sweep(now time.Time) {
	for id, b := range l.buckets {
		if l.filled(b, now) >= l.burst {
			delete(l.buckets, id)
		}
	}
}

// headers tell a caller that has to wait how long, and what the rule is.
func (l *rates) headers(h http.Header, wait time.Duration) {
	seconds := int(math.Ceil(max(wait.Seconds(), 1)))
	h.Set("Retry-After", fmt.Sprint(seconds))
	h.Set("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=%d`, int(l.burst), int(math.Ceil(l.burst/l.perSecond))))
	h.Set("RateLimit", fmt.Sprintf(`"key";r=0;t=%d`, seconds))
}

// slots bounds what happens at once, in all and for each key.
type slots struct {
	most, mostEach int

	mu    sync.Mutex
	taken int
	each  map[string]int
}

func newSlots(most, mostEach int) *slots {
	return &slots{most: most, mostEach: mostEach, each: make(map[string]int)}
}

// take returns how to give the slot back, once or more often; nil if there is
// none.
func (s *slots) take(id string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.most || s.each[id] >= s.mostEach {
		return nil
	}
	s.taken++
	s.each[id]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
		if s.each[id]--; s.each[id] <= 0 {
			delete(s.each, id)
		}
	})
}
