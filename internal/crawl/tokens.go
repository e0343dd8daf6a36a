package crawl

import (
	"context"
	"sync"
)

// tokens bound the URLs in the worker's hands: in flight, or fetched and not
// yet durable. The governor may lower the limit below the user's cap.
type tokens struct {
	mu    sync.Mutex
	cap   int
	limit int
	used  int
	wait  chan struct{} // closed and replaced when a token may be free
}

func newTokens(n int) *tokens {
	return &tokens{cap: n, limit: n, wait: make(chan struct{})}
}

// take waits for a token.
func (t *tokens) take(ctx context.Context) error {
	for {
		t.mu.Lock()
		if t.used < t.limit {
			t.used++
			t.mu.Unlock()
			return nil
		}
		w := t.wait
		t.mu.Unlock()
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *tokens) give(n int) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	t.used -= n
	t.wakeLocked()
	t.mu.Unlock()
}

func (t *tokens) wakeLocked() {
	if t.used < t.limit {
		close(t.wait)
		t.wait = make(chan struct{})
	}
}

// state returns tokens in use, the current limit and the user's cap.
func (t *tokens) state() (used, limit, cap int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used, t.limit, t.cap
}

// least is the fewest tokens that the governor leaves.
func (t *tokens) least() int { return min(4, t.cap) }

// govern moves the limit: down by a quarter, or up by an eighth, inside the
// user's cap; or to the cap at once, when to lower it was a mistake.
func (t *tokens) govern(slow, mistaken bool) (before, after int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.limit
	switch {
	case mistaken:
		t.limit = t.cap
	case slow:
		t.limit = max(t.limit*3/4, t.least())
	default:
		t.limit = min(t.limit+max(t.limit/8, 1), t.cap)
	}
	t.wakeLocked()
	return before, t.limit
}
