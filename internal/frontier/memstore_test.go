package frontier

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"tiptoe/internal/weburl"
)

// memStore is a Store made of maps: what it holds is what a disk would.
type memStore struct {
	mu     sync.Mutex
	lastID uint64
	seen   map[Mark]int // in-links
	queues map[queueKey][]Entry
	notes  map[[2]string][]byte
	fail   error // of the next Commit
	reads  int   // calls of Window
	looks  int   // calls of Queues
}

type queueKey struct {
	crawl CrawlID
	group string
}

func newMemStore() *memStore {
	return &memStore{seen: map[Mark]int{}, queues: map[queueKey][]Entry{}, notes: map[[2]string][]byte{}}
}

func (m *memStore) Commit(_ context.Context, b *Batch) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail; err != nil {
		m.fail = nil
		return nil, err
	}
	var added []Entry
	for _, e := range b.Add {
		mark := Mark{Crawl: e.Crawl, FP: e.Fingerprint()}
		if m.seen[mark]++; m.seen[mark] > 1 && !e.Again {
			continue
		}
		m.lastID++
		e.ID = m.lastID
		k := queueKey{e.Crawl, e.Group}
		i, _ := slices.BinarySearchFunc(m.queues[k], e, byPos)
		m.queues[k] = slices.Insert(m.queues[k], i, e)
		added = append(added, e)
	}
	for _, mk := range b.Mark {
		m.seen[Mark{Crawl: mk.Crawl, FP: mk.FP}]++
	}
	for _, e := range b.Update {
		k := queueKey{e.Crawl, e.Group}
		if i, ok := slices.BinarySearchFunc(m.queues[k], e, byPos); ok {
			e.reserved = false // no disk keeps it
			m.queues[k][i] = e
		}
	}
	for _, r := range b.Ack {
		k := queueKey{r.Crawl, r.Group}
		if i, ok := slices.BinarySearchFunc(m.queues[k], Entry{ID: r.Pos.ID, Prio: r.Pos.Prio}, byPos); ok {
			m.queues[k] = slices.Delete(m.queues[k], i, i+1)
		}
	}
	for _, n := range b.Notes {
		m.notes[[2]string{n.Group, n.Name}] = n.Value
	}
	return added, nil
}

func (m *memStore) Seen(c CrawlID, fp weburl.Fingerprint) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[Mark{Crawl: c, FP: fp}] > 0
}

func (m *memStore) InLinks(c CrawlID, fp weburl.Fingerprint) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[Mark{Crawl: c, FP: fp}]
}

func (m *memStore) Window(_ context.Context, group string, c CrawlID, after Pos, n int, dst []Entry) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, e := range m.queues[queueKey{c, group}] {
		if len(dst) < n && after.Less(e.Pos()) {
			dst = append(dst, e)
		}
	}
	return dst, nil
}

func (m *memStore) Queues(_ context.Context, c CrawlID, fn func(Queue) error) error {
	m.mu.Lock()
	m.looks++
	var qs []Queue
	for k, es := range m.queues {
		if k.crawl == c && len(es) > 0 {
			qs = append(qs, Queue{Group: k.group, Crawl: c, Count: len(es)})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(qs, func(a, b Queue) int { return strings.Compare(a.Group, b.Group) })
	for _, q := range qs {
		if err := fn(q); err != nil {
			return err
		}
	}
	return nil
}

func (m *memStore) Note(_ context.Context, group, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes[[2]string{group, name}], nil
}

func (m *memStore) left(c CrawlID) (n int) {
	for k, es := range m.queues {
		if k.crawl == c {
			n += len(es)
		}
	}
	return n
}

func (m *memStore) OpenCrawl(context.Context, CrawlID) error { return nil }
func (m *memStore) CloseCrawl(CrawlID)                       {}
func (m *memStore) DropCrawl(context.Context, CrawlID) error { return errors.ErrUnsupported }
func (m *memStore) Close() error                             { return nil }
