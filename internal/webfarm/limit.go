package webfarm

import (
	"sync"
	"time"
)

// Bucket is the rate limiter of one host. Time is passed in. The zero value is
// full.
type Bucket struct {
	mu     sync.Mutex
	tokens float64
	at     time.Duration
	until  time.Duration // silence asked for by Retry-After
	begun  bool
}

// Take reports whether a request at now is within the limit; if not, wait is
// what Retry-After should say (0: nothing), in whole seconds. While a
// Retry-After runs every request is refused, and is told what is left of it
// rounded up: asking early does not make it longer.
func (b *Bucket) Take(now time.Duration, l RateLimit) (ok bool, wait time.Duration) {
	if l.PerSecond == 0 {
		return true, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	full := float64(max(l.Burst, 1))
	if !b.begun {
		b.begun, b.tokens, b.at = true, full, now
	}
	if now > b.at {
		b.tokens = min(full, b.tokens+(now-b.at).Seconds()*l.PerSecond)
		b.at = now
	}
	if now < b.until {
		return false, wholeSeconds(b.until - now)
	}
	if b.tokens >= 1 {
		b.tokens--
		return true, 0
	}
	if l.RetryAfter > 0 {
		wait = wholeSeconds(l.RetryAfter)
		b.until = now + wait
	}
	return false, wait
}

// Reset fills the bucket and forgets a Retry-After.
func (b *Bucket) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens, b.at, b.until, b.begun = 0, 0, 0, false
}

// wholeSeconds rounds up: Retry-After has no fractions.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1) / time.Second * time.Second
}
