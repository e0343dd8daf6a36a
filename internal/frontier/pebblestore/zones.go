package pebblestore

import (
	"bytes"
	"slices"
	"sync"
)

// zones remembers, for queues that were slow to read, where nothing lives.
//
// It is safe by one argument: IDs ascend, so what is added to a priority
// always goes behind everything that was ever there. A stretch [from, to) of
// one priority that a reader found empty, with to no larger than the first ID
// not given out when he began, is empty for ever. Nothing has to be told to
// zones when entries come and go, and losing it costs time, not entries.
type zones struct {
	mu sync.Mutex
	m  map[string]*zone
}

const (
	slowScan     = 2048 // dead keys in one read that make a queue worth remembering
	longStep     = 256  // dead keys in a row that make a stretch worth remembering
	maxZones     = 4096 // queues remembered
	maxStretches = 32   // a priority
)

func (z *zones) get(queue []byte) *zone {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.m[string(queue)]
}

func (z *zones) put(queue []byte) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.m == nil {
		z.m = make(map[string]*zone)
	}
	if len(z.m) >= maxZones {
		for k := range z.m { // any
			delete(z.m, k)
			break
		}
	}
	z.m[string(queue)] = new(zone)
}

// drop forgets all queues that begin with prefix.
func (z *zones) drop(prefix []byte) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for k := range z.m {
		if bytes.HasPrefix([]byte(k), prefix) {
			delete(z.m, k)
		}
	}
}

// zone is one queue's dead stretches.
type zone struct {
	mu   sync.Mutex
	prio map[uint8][]stretch // in order, with live entries between any two
}

type stretch struct{ from, to uint64 } // IDs from <= id < to are dead

// jump returns the first ID from id on that may live.
func (z *zone) jump(prio uint8, id uint64) uint64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	list := z.prio[prio]
	i, found := slices.BinarySearchFunc(list, id, func(s stretch, id uint64) int {
		switch {
		case s.to <= id:
			return -1
		case s.from > id:
			return 1
		}
		return 0
	})
	if found {
		return list[i].to
	}
	return id
}

// note remembers a dead stretch.
func (z *zone) note(prio uint8, from, to uint64) {
	if from >= to {
		return
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	list := z.prio[prio]
	i := 0
	for i < len(list) && list[i].to < from {
		i++
	}
	j := i
	for j < len(list) && list[j].from <= to {
		from, to = min(from, list[j].from), max(to, list[j].to)
		j++
	}
	if i == j && len(list) >= maxStretches {
		return
	}
	if z.prio == nil {
		z.prio = make(map[uint8][]stretch)
	}
	z.prio[prio] = slices.Replace(list, i, j, stretch{from, to})
}
