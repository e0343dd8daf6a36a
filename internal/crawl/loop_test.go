package crawl

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// meeting is a store whose first acknowledgement waits until the ledger has
// been given another page; it counts what is acknowledged before its row is
// there.
type meeting struct {
	frontier.Store
	w     *web
	once  sync.Once
	waits chan struct{} // closed when the first one does
	late  bool
	acked int
	early int
}

func (m *meeting) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if len(b.Ack) > 0 {
		m.once.Do(func() {
			close(m.waits)
			for end := time.Now().Add(5 * time.Second); m.rows() <= len(b.Ack) && !m.late; time.Sleep(time.Millisecond) {
				m.late = time.Now().After(end)
			}
		})
		m.acked += len(b.Ack) // commits exclude each other
		m.early += max(m.acked-m.rows(), 0)
	}
	return m.Store.Commit(ctx, b)
}

func (m *meeting) rows() int {
	m.w.books.mu.Lock()
	defer m.w.books.mu.Unlock()
	return len(m.w.books.pages)
}

// In real time: who waits for the scheduler's lock lets no virtual time pass.
func Test_the_ledger_takes_the_next_pages_while_the_frontier_acknowledges_the_last(t *testing.T) {
	w := newWeb(t)
	m := &meeting{w: w, waits: make(chan struct{})}
	w.wrap = func(s frontier.Store) frontier.Store { m.Store = s; return m }
	w.cfg.Workers = 12
	var seeds []string
	for i := range 12 {
		u := fmt.Sprintf("https://h%d.example/", i)
		w.sites[u] = func(*hit) reply {
			if i >= 6 {
				<-m.waits
			}
			return reply{body: "<title>there</title>"}
		}
		seeds = append(seeds, u)
	}
	spec := plainSpec(seeds...)
	spec.IgnoreRobots = true
	sum, err := w.crawl(spec)
	if err != nil || sum.Status != ledger.Completed || sum.Counters.Processed != 12 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if m.late {
		t.Error("nothing was written into the ledger while the frontier was waited for")
	}
	if m.early > 0 || m.acked != 12 {
		t.Errorf("%d pages were acknowledged, want 12; %d before they had a row", m.acked, m.early)
	}
	if row := w.books.crawls[1]; row.Counters != sum.Counters {
		t.Errorf("the crawl's row counts %+v, its end %+v", row.Counters, sum.Counters)
	}
}
