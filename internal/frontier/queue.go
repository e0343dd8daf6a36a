package frontier

import (
	"cmp"
	"slices"
	"time"
)

// Window sizes: what a group keeps in memory of each queue. A slow host needs
// little; a fast one is given more, so that loads stay rare. minWindow also
// holds when the memory limit for the frontier is reached.
const (
	minWindow  = 8
	baseWindow = 16
	maxWindow  = 1024
)

// queue is one group's work in one crawl.
//
// Of the store's queue, ordered by Pos, memory knows everything up to bound:
// it is in the window, or out (taken, delayed or held). What lies behind bound
// is unread, and only the store has it. A load reads the next part; what is
// committed or acknowledged while it reads is noted and put right when it
// ends, so an entry is never in memory twice and never forgotten.
type queue struct {
	crawl   *Crawl
	window  []Entry // by priority; next at head
	head    int
	bound   Pos
	out     map[uint64]struct{} // IDs in memory, but not in the window
	delayed []Entry             // retries, latest first
	total   int                 // in the store
	taken   int                 // handed out, not committed
	held    int                 // set aside until their robots.txt is known
	parked  bool                // with its group: what is delayed waits for no try

	loading bool
	stale   bool                // what is being read was asked for before the window was given back
	during  []Entry             // committed while loading
	acked   map[uint64]struct{} // acknowledged while loading
}

func newQueue(c *Crawl) *queue {
	return &queue{crawl: c, out: make(map[uint64]struct{})}
}

func (q *queue) inWindow() int { return len(q.window) - q.head }

// unread counts entries that only the store has.
func (q *queue) unread() int {
	return q.total - q.taken - q.held - q.inWindow() - len(q.delayed)
}

// waiting counts entries that nobody works on.
func (q *queue) waiting() int { return q.total - q.taken }

// take hands the next entry of the window out.
func (q *queue) take() Entry {
	e := q.window[q.head]
	q.window[q.head] = Entry{}
	q.head++
	if q.head == len(q.window) {
		q.window, q.head = q.window[:0], 0
	}
	q.out[e.ID] = struct{}{}
	q.taken++
	return e
}

// takeDelayed hands the earliest retry out.
func (q *queue) takeDelayed() Entry {
	n := len(q.delayed) - 1
	e := q.delayed[n]
	q.delayed[n] = Entry{}
	q.delayed = q.delayed[:n]
	q.taken++
	q.crawl.retries.Add(-1)
	return e
}

// putBack undoes take for an entry that could not go after all.
func (q *queue) putBack(e Entry) {
	q.taken--
	delete(q.out, e.ID)
	i := q.head
	for i < len(q.window) && q.window[i].Prio < e.Prio {
		i++
	}
	if i == q.head && i > 0 {
		q.head--
		q.window[q.head] = e
		return
	}
	q.window = slices.Insert(q.window, i, e)
}

// hold sets a taken entry aside; unhold returns it to the window.
func (q *queue) hold() { q.taken--; q.held++ }

func (q *queue) unhold(e Entry) {
	q.held--
	delete(q.out, e.ID)
	q.insert(e)
}

// delay files a taken entry under its retry time.
func (q *queue) delay(e Entry) {
	q.taken--
	q.fileDelayed(e)
}

func (q *queue) fileDelayed(e Entry) {
	i, _ := slices.BinarySearchFunc(q.delayed, e, func(a, b Entry) int {
		if c := b.NotBefore.Compare(a.NotBefore); c != 0 {
			return c
		}
		return cmp.Compare(b.ID, a.ID)
	})
	q.delayed = slices.Insert(q.delayed, i, e)
	if !q.parked {
		q.crawl.retries.Add(1)
	}
	q.out[e.ID] = struct{}{}
}

// nextRetry returns the earliest delayed entry.
func (q *queue) nextRetry() *Entry {
	if len(q.delayed) == 0 {
		return nil
	}
	return &q.delayed[len(q.delayed)-1]
}

// done removes an acknowledged entry.
func (q *queue) done(id uint64) {
	q.total--
	q.taken--
	delete(q.out, id)
	if q.loading {
		if q.acked == nil {
			q.acked = make(map[uint64]struct{})
		}
		q.acked[id] = struct{}{}
	}
}

// add takes a freshly committed entry.
func (q *queue) add(e Entry, limit int) {
	complete := q.unread() == 0
	q.total++
	switch {
	case q.loading:
		q.during = append(q.during, e)
	case e.Pos().Less(q.bound):
		q.insert(e)
		if q.inWindow() > 2*limit {
			q.trim(limit)
		}
	case complete && q.inWindow() < limit:
		q.insert(e)
		q.bound = e.Pos()
	}
}

// fill takes what a load read behind bound.
func (q *queue) fill(read []Entry, atEnd bool, now time.Time, inLinks func(*Entry) int) {
	q.loading = false
	if q.stale { // the next load reads from the beginning
		q.stale, q.during, q.acked = false, nil, nil
		return
	}
	back := q.returned()
	known := make(map[uint64]struct{}, len(read))
	for i := range read {
		known[read[i].ID] = struct{}{}
		if p := read[i].Pos(); q.bound.Less(p) {
			q.bound = p
		}
	}
	fresh := read[:0]
	for _, e := range read {
		_, isOut := q.out[e.ID]
		_, isAcked := q.acked[e.ID]
		_, isBack := back[e.ID]
		if !isOut && !isAcked && !isBack {
			fresh = append(fresh, e)
		}
	}
	for _, e := range q.during {
		if _, ok := known[e.ID]; !ok && (atEnd || e.Pos().Less(q.bound)) {
			fresh = append(fresh, e)
			if q.bound.Less(e.Pos()) {
				q.bound = e.Pos()
			}
		}
	}
	q.during, q.acked = nil, nil
	rankByInLinks(fresh, inLinks)
	for _, e := range fresh {
		if e.NotBefore.After(now) {
			q.fileDelayed(e)
		} else {
			q.insert(e)
		}
	}
}

// returned finds entries of the window that lie behind bound: they were out
// when a trim moved it before them, and came back since.
func (q *queue) returned() map[uint64]struct{} {
	var ids map[uint64]struct{}
	for i := q.head; i < len(q.window); i++ {
		if q.bound.Less(q.window[i].Pos()) {
			if ids == nil {
				ids = make(map[uint64]struct{})
			}
			ids[q.window[i].ID] = struct{}{}
		}
	}
	return ids
}

// rankByInLinks puts URLs that many pages named before others of the same
// priority [NXT-8].
func rankByInLinks(es []Entry, inLinks func(*Entry) int) {
	if inLinks == nil || len(es) < 2 {
		return
	}
	rank := make(map[uint64]int, len(es))
	for i := range es {
		rank[es[i].ID] = inLinks(&es[i])
	}
	slices.SortStableFunc(es, func(a, b Entry) int {
		if c := cmp.Compare(a.Prio, b.Prio); c != 0 {
			return c
		}
		return cmp.Compare(rank[b.ID], rank[a.ID])
	})
}

// insert keeps the window ordered by priority, later ones behind equal ones.
func (q *queue) insert(e Entry) {
	if q.head > 0 && len(q.window) == cap(q.window) {
		n := copy(q.window, q.window[q.head:])
		clear(q.window[n:])
		q.window, q.head = q.window[:n], 0
	}
	i := len(q.window)
	for i > q.head && q.window[i-1].Prio > e.Prio {
		i--
	}
	q.window = slices.Insert(q.window, i, e)
}

// trim gives the far part of the window back to the store.
func (q *queue) trim(limit int) {
	live := q.window[q.head:]
	order := make([]Pos, len(live))
	for i := range live {
		order[i] = live[i].Pos()
	}
	slices.SortFunc(order, func(a, b Pos) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	if last := order[limit-1]; last.Less(q.bound) {
		q.bound = last
	}
	kept := make([]Entry, 0, 2*limit)
	for _, e := range live { // one that was paid for must not be paid for again
		if !q.bound.Less(e.Pos()) || e.reserved {
			kept = append(kept, e)
		}
	}
	q.window, q.head = kept, 0
}
