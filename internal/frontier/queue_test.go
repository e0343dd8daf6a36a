package frontier

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// queueModel is the truth about one queue: the store as a sorted list, and
// where each of its entries is.
type queueModel struct {
	q      *queue
	store  []Entry // queued and not acknowledged, by Pos
	at     map[uint64]string
	held   []Entry
	taken  []Entry
	nextID uint64
	now    time.Time
	limit  int

	read  []Entry // what the load under way has read
	isEnd bool
	isRun bool
}

func newQueueModel(limit int) *queueModel {
	return &queueModel{q: newQueue(&Crawl{ID: 1}), at: map[uint64]string{}, now: time.Unix(1_700_000_000, 0), limit: limit}
}

func byPos(a, b Entry) int {
	switch {
	case a.Pos().Less(b.Pos()):
		return -1
	case b.Pos().Less(a.Pos()):
		return 1
	}
	return 0
}

func (m *queueModel) commit(prio uint8) {
	m.nextID++
	e := Entry{ID: m.nextID, Crawl: 1, Group: "g", Prio: prio, URL: fmt.Sprintf("https://g/%d", m.nextID)}
	i, _ := slices.BinarySearchFunc(m.store, e, byPos)
	m.store = slices.Insert(m.store, i, e)
	m.q.add(e, m.limit)
}

func (m *queueModel) take(t *rapid.T) {
	if m.q.inWindow() == 0 {
		return
	}
	head := m.q.window[m.q.head].Prio
	for _, e := range m.q.window[m.q.head:] {
		if e.Prio < head {
			t.Fatalf("priority %d is in the window behind priority %d", e.Prio, head)
		}
	}
	e := m.q.take()
	if m.at[e.ID] != "" {
		t.Fatalf("entry %d was handed out while it is %s", e.ID, m.at[e.ID])
	}
	m.at[e.ID] = "taken"
	m.taken = append(m.taken, e)
}

func draw(t *rapid.T, list *[]Entry) Entry {
	i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
	e := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return e
}

// beginLoad reads as Scheduler.Load does: the question is asked at one time,
// the store is read later, the answer is applied later still.
func (m *queueModel) beginLoad() {
	if m.q.loading || m.q.unread() == 0 {
		return
	}
	m.q.loading, m.isRun = true, false
}

func (m *queueModel) readStore() {
	if !m.q.loading || m.isRun {
		return
	}
	m.isRun, m.read = true, nil
	for _, e := range m.store {
		if m.q.bound.Less(e.Pos()) && len(m.read) < m.limit {
			m.read = append(m.read, e)
		}
	}
	m.isEnd = len(m.read) < m.limit
}

func (m *queueModel) endLoad() {
	if m.q.loading && m.isRun {
		m.q.fill(slices.Clone(m.read), m.isEnd, m.now, nil)
		m.isRun = false
	}
}

func (m *queueModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"commit": func(t *rapid.T) {
			for range rapid.IntRange(1, 2*m.limit).Draw(t, "n") {
				m.commit(rapid.Uint8Range(0, 4).Draw(t, "prio"))
			}
		},
		"take":       m.take,
		"take more":  m.take,
		"begin load": func(*rapid.T) { m.beginLoad() },
		"read":       func(*rapid.T) { m.readStore() },
		"end load":   func(*rapid.T) { m.endLoad() },
		"done": func(t *rapid.T) {
			if len(m.taken) > 0 {
				e := draw(t, &m.taken)
				delete(m.at, e.ID)
				i, _ := slices.BinarySearchFunc(m.store, e, byPos)
				m.store = slices.Delete(m.store, i, i+1)
				m.q.done(e.ID)
			}
		},
		"delay": func(t *rapid.T) {
			if len(m.taken) > 0 {
				e := draw(t, &m.taken)
				e.NotBefore = m.now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "wait")) * time.Second)
				i, _ := slices.BinarySearchFunc(m.store, e, byPos)
				m.store[i] = e
				m.at[e.ID] = "delayed"
				m.q.delay(e)
			}
		},
		"retry": func(t *rapid.T) {
			r := m.q.nextRetry()
			if r == nil {
				return
			}
			for _, e := range m.q.delayed {
				if e.NotBefore.Before(r.NotBefore) {
					t.Fatalf("entry %d is due before the next retry", e.ID)
				}
			}
			if m.now.Before(r.NotBefore) {
				m.now = r.NotBefore
			}
			e := m.q.takeDelayed()
			if m.at[e.ID] != "delayed" {
				t.Fatalf("entry %d was retried while it is %q", e.ID, m.at[e.ID])
			}
			m.at[e.ID] = "taken"
			m.taken = append(m.taken, e)
		},
		"put back": func(t *rapid.T) {
			if len(m.taken) > 0 {
				e := draw(t, &m.taken)
				delete(m.at, e.ID)
				m.q.putBack(e)
			}
		},
		"hold": func(t *rapid.T) {
			if len(m.taken) > 0 {
				e := draw(t, &m.taken)
				m.at[e.ID] = "held"
				m.held = append(m.held, e)
				m.q.hold()
			}
		},
		"unhold": func(t *rapid.T) {
			if len(m.held) > 0 {
				e := draw(t, &m.held)
				delete(m.at, e.ID)
				m.q.unhold(e)
			}
		},
		"": m.check,
	}
}

// check counts every entry's places: one each, and unread is exact.
func (m *queueModel) check(t *rapid.T) {
	inMemory := map[uint64]bool{}
	for _, e := range m.q.window[m.q.head:] {
		if inMemory[e.ID] {
			t.Fatalf("entry %d is in the window twice", e.ID)
		}
		if w := m.at[e.ID]; w != "" {
			t.Fatalf("entry %d is in the window and %s", e.ID, w)
		}
		inMemory[e.ID] = true
	}
	for id := range m.at {
		inMemory[id] = true
	}
	if want := len(m.store) - len(inMemory); m.q.unread() != want {
		t.Fatalf("unread is %d, but %d entries are only in the store", m.q.unread(), want)
	}
	if !m.q.loading {
		for _, e := range m.store { // nothing may be forgotten before the place from which loads read
			if !inMemory[e.ID] && !m.q.bound.Less(e.Pos()) {
				t.Fatalf("entry %d (%d/%d) is forgotten: it is not in memory and lies before bound %v", e.ID, e.Prio, e.ID, m.q.bound)
			}
		}
	}
	if len(m.q.out) != len(m.at) {
		t.Fatalf("%d entries are out, the queue says %d", len(m.at), len(m.q.out))
	}
}

// drain plays the queue to its end and demands every entry exactly once.
func (m *queueModel) drain(t *rapid.T) {
	m.readStore()
	m.endLoad()
	for len(m.held) > 0 {
		m.actions()["unhold"](t)
	}
	for steps := 0; len(m.store) > 0; steps++ {
		if steps > 100_000 {
			t.Fatalf("%d entries never come: unread %d, window %d", len(m.store), m.q.unread(), m.q.inWindow())
		}
		m.take(t)
		m.actions()["retry"](t)
		for len(m.taken) > 0 {
			m.actions()["done"](t)
		}
		if m.q.inWindow() == 0 {
			m.beginLoad()
			m.readStore()
			m.endLoad()
		}
		m.check(t)
	}
	if m.q.total != 0 || m.q.taken != 0 || m.q.held != 0 {
		t.Fatalf("drained, but total %d taken %d held %d", m.q.total, m.q.taken, m.q.held)
	}
}

func Test_a_queue_never_doubles_nor_forgets_an_entry_whatever_commits_during_a_load(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newQueueModel(rapid.IntRange(1, 6).Draw(rt, "limit"))
		rt.Repeat(m.actions())
		m.drain(rt)
	})
}

// hold takes the n next entries of the window and sets them aside.
func (m *queueModel) hold(t *rapid.T, n int) {
	for range n {
		if m.q.inWindow() == 0 {
			m.beginLoad()
			m.readStore()
			m.endLoad()
		}
		m.take(t)
		e := m.taken[len(m.taken)-1]
		m.taken = m.taken[:len(m.taken)-1]
		m.at[e.ID], m.held = "held", append(m.held, e)
		m.q.hold()
	}
}

func Test_entries_that_come_back_after_a_trim_are_not_read_again_and_hide_nothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { // the walk is fixed; rapid brings the model's checks
		m := newQueueModel(2)
		commit := func(n int, prio uint8) {
			for range n {
				m.commit(prio)
				m.check(rt)
			}
		}
		commit(10, 3)
		m.hold(rt, 6)
		commit(5, 2) // a trim moves the bound before those that are held
		m.hold(rt, 2)
		for len(m.held) > 0 {
			m.actions()["unhold"](rt)
			m.check(rt)
		}
		for range 8 { // loads ahead of need, with such entries in the window
			m.beginLoad()
			m.readStore()
			m.endLoad()
			m.check(rt)
		}
		m.drain(rt)

		m = newQueueModel(2)
		commit(10, 3)
		m.hold(rt, 6)
		commit(5, 2)
		for range 2 {
			m.take(rt)
			m.actions()["done"](rt)
		}
		for len(m.held) > 0 {
			m.actions()["unhold"](rt)
		}
		commit(1, 1) // another trim: it must not move the bound forward
		m.drain(rt)
	})
}

func Test_a_freshly_read_part_goes_by_priority_then_in_links_then_age(t *testing.T) {
	q := newQueue(&Crawl{ID: 1})
	es := []Entry{{ID: 1, Prio: 3}, {ID: 2, Prio: 3}, {ID: 3, Prio: 2}, {ID: 4, Prio: 3}}
	for _, e := range es {
		q.total++
		_ = e
	}
	links := map[uint64]int{1: 1, 2: 9, 3: 0, 4: 1}
	q.loading = true
	q.fill(es, true, time.Unix(0, 0), func(e *Entry) int { return links[e.ID] })
	var got []uint64
	for q.inWindow() > 0 {
		got = append(got, q.take().ID)
	}
	if want := []uint64{3, 2, 1, 4}; !slices.Equal(got, want) {
		t.Fatalf("got order %v, want %v", got, want)
	}
}
