package scope

import "github.com/zeebo/xxh3"

// lru is a bounded map from a key's hash to a value, which forgets the least
// recently used value that is not pinned. It keeps no keys: the values know
// their own.
type lru[V any] struct {
	cap    int
	pinned func(*V) bool
	index  map[uint64]*node[V]
	ring   node[V] // ring.next is the latest, ring.prev the oldest
}

type node[V any] struct {
	prev, next *node[V]
	hash       uint64
	value      V
}

func newLRU[V any](limit int, pinned func(*V) bool) lru[V] {
	return lru[V]{cap: limit, pinned: pinned, index: make(map[uint64]*node[V])}
}

// get returns the value under key, now the latest, or nil.
func (l *lru[V]) get(key []byte) *V {
	n := l.index[xxh3.Hash(key)]
	if n == nil {
		return nil
	}
	l.unlink(n)
	l.link(n)
	return &n.value
}

// put adds a zero value under a key that is not there.
func (l *lru[V]) put(key []byte) *V {
	if len(l.index) >= l.cap {
		l.forget()
	}
	n := &node[V]{hash: xxh3.Hash(key)}
	l.index[n.hash] = n
	l.link(n)
	return &n.value
}

// forget drops the oldest value that may go. Pinned ones on the way become
// the latest, so that each is passed once in a lap and not each time.
func (l *lru[V]) forget() {
	for range len(l.index) {
		n := l.ring.prev
		l.unlink(n)
		if !l.pinned(&n.value) {
			delete(l.index, n.hash)
			return
		}
		l.link(n)
	}
}

// each visits all values, oldest first.
func (l *lru[V]) each(fn func(*V)) {
	if l.ring.prev == nil {
		return
	}
	for n := l.ring.prev; n != &l.ring; n = n.prev {
		fn(&n.value)
	}
}

func (l *lru[V]) link(n *node[V]) {
	r := &l.ring
	if r.next == nil {
		r.next, r.prev = r, r
	}
	n.prev, n.next = r, r.next
	n.prev.next, n.next.prev = n, n
}

func (l *lru[V]) unlink(n *node[V]) {
	n.prev.next, n.next.prev = n.next, n.prev
}
