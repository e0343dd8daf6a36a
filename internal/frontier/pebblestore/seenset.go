package pebblestore

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"tiptoe/internal/weburl"
)

// seenSet is what one open crawl has seen, as far as memory knows it: an
// exact table up to the store's budget, and above it a filter whose hits the
// store looks up on disk.
//
// The table is split into shards by the fingerprint's top byte; each is an
// open-addressing table with linear probing. A slot is ten bytes: the low 64
// bits of the fingerprint, eight further bits, and the in-link count. With
// the shard that compares 80 of the 128 bits: among ten million URLs the
// chance that any two are taken for one is 4e-11. (The home slot adds
// nothing to that, since a growing table must find it from what the slot
// holds.)
//
// Nothing is ever removed: a URL stays seen for the life of its crawl.
type seenSet struct {
	// seed scatters home slots differently in each process, so that nobody
	// can publish a site whose URLs all land in one run of slots.
	seed    uint64
	spilled atomic.Int64
	filter  atomic.Pointer[filter] // nil until the budget is spent
	shards  [256]shard
}

type shard struct {
	mu   sync.Mutex
	n    int
	bits uint8    // log2 of the number of slots
	lo   []uint64 // low half of the fingerprint
	meta []uint16 // tag<<8 | in-links; 0 is an empty slot, for in-links start at 1
}

const (
	shardMinBits = 4
	maxInLinks   = 255
	slotBytes    = 8 + 2
)

func newSeenSet() *seenSet { return &seenSet{seed: rand.Uint64() | 1} }

func (s *seenSet) shard(fp weburl.Fingerprint) *shard { return &s.shards[fp.Hi>>56] }

func tagOf(fp weburl.Fingerprint) uint16 { return uint16(fp.Hi>>48) << 8 }

// find returns the slot of fp, or the empty one where it would go.
func (sh *shard) find(seed uint64, fp weburl.Fingerprint) (slot uint64, found bool) {
	mask := uint64(len(sh.lo) - 1)
	tag := tagOf(fp)
	for i := fp.Lo * seed >> (64 - sh.bits); ; i = (i + 1) & mask {
		lo := sh.lo[i]
		if lo == fp.Lo && sh.meta[i] != 0 && sh.meta[i]&0xff00 == tag {
			return i, true
		}
		if lo == 0 && sh.meta[i] == 0 {
			return i, false
		}
	}
}

// look reports whether the table holds fp and, if so, counts an in-link.
func (s *seenSet) look(fp weburl.Fingerprint) bool {
	sh := s.shard(fp)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.n == 0 {
		return false
	}
	i, found := sh.find(s.seed, fp)
	if found && sh.meta[i]&0xff != maxInLinks {
		sh.meta[i]++
	}
	return found
}

// inLinks returns the count of fp, 0 if the table does not hold it.
func (s *seenSet) inLinks(fp weburl.Fingerprint) int {
	sh := s.shard(fp)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.n == 0 {
		return 0
	}
	i, found := sh.find(s.seed, fp)
	if !found {
		return 0
	}
	return int(sh.meta[i] & 0xff)
}

// insert puts fp into the table with one in-link; it is no error if it is
// there already, and then false is returned.
func (s *seenSet) insert(fp weburl.Fingerprint) bool {
	sh := s.shard(fp)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if (sh.n+1)*5 > len(sh.lo)*4 {
		sh.grow(s.seed)
	}
	i, found := sh.find(s.seed, fp)
	if found {
		return false
	}
	sh.lo[i], sh.meta[i] = fp.Lo, tagOf(fp)|1
	sh.n++
	return true
}

// grow doubles one shard. With 256 of them this moves 40,000 fingerprints at
// ten million, about a millisecond, never the whole table at once.
func (sh *shard) grow(seed uint64) {
	lo, meta := sh.lo, sh.meta
	sh.bits = max(sh.bits+1, shardMinBits)
	sh.lo, sh.meta = make([]uint64, 1<<sh.bits), make([]uint16, 1<<sh.bits)
	mask := uint64(len(sh.lo) - 1)
	for j, m := range meta {
		if m == 0 {
			continue
		}
		i := lo[j] * seed >> (64 - sh.bits)
		for sh.meta[i] != 0 {
			i = (i + 1) & mask
		}
		sh.lo[i], sh.meta[i] = lo[j], m
	}
}

// spill remembers fp in the filter only. Callers take turns.
func (s *seenSet) spill(fp weburl.Fingerprint) {
	f := s.filter.Load()
	if f == nil {
		f = new(filter)
		s.filter.Store(f)
	}
	f.add(fp)
	s.spilled.Add(1)
}

// maybeSpilled reports whether fp may be on disk though not in the table. A
// false is certain.
func (s *seenSet) maybeSpilled(fp weburl.Fingerprint) bool {
	f := s.filter.Load()
	return f != nil && f.has(fp)
}

// resident counts the fingerprints in the table, and its bytes.
func (s *seenSet) resident() (n, bytes int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += sh.n
		bytes += len(sh.lo) * slotBytes
		sh.mu.Unlock()
	}
	if f := s.filter.Load(); f != nil {
		bytes += f.bytes()
	}
	return n, bytes
}
