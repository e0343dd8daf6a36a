package story

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// meter watches how late this machine runs whoever is due. A request that a
// busy server reads late seems too close to the next one, and a rate limiter
// counts it so: nobody's fault, but part of the story. On a quiet machine it
// measures nothing worth mentioning, and the tests forgive nothing.
type meter struct {
	mu   sync.Mutex
	late []time.Duration // those above a millisecond
}

// maxLate bounds what a meter remembers; a machine that needs more room is
// not one to measure on.
const maxLate = 1 << 20

func startMeter(t *testing.T) *meter {
	t.Helper()
	m := new(meter)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			due := time.Now().Add(2 * time.Millisecond)
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			m.note(time.Since(due))
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return m
}

func (m *meter) note(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d > time.Millisecond && len(m.late) < maxLate {
		m.late = append(m.late, d)
	}
}

// mark is a place in the record from which worst and stalls can count.
func (m *meter) mark() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.late)
}

// worst is how late somebody was at most, and a millisecond for the way.
func (m *meter) worst(from int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.late) == from {
		return time.Millisecond
	}
	return time.Millisecond + slices.Max(m.late[from:])
}

// stalls counts how often somebody was later than d.
func (m *meter) stalls(from int, d time.Duration) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.late[from:] {
		if l > d {
			n++
		}
	}
	return n
}
