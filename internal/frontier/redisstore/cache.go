package redisstore

import (
	"math/rand/v2"
	"sync"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// cache remembers URLs that Redis is known to have marked, so that the links
// every page of a site repeats cost no question. It holds whole fingerprints:
// a hit is certain. What it forgets is asked for again.
//
// It is a table of sets of four slots; in a full set the slot that was looked
// at least makes room. A crawl's fingerprints are mixed with a number of its
// own, drawn anew when it is opened: closing a crawl forgets it at once.
type cache struct {
	mu    sync.RWMutex
	salts map[frontier.CrawlID]uint64

	stripes [stripes]struct {
		sync.Mutex
		slots []slot
	}
	sets uint64 // in one stripe
}

type slot struct {
	hi, lo uint64
	n      uint8 // in-links; 0 is an empty slot
}

const (
	stripes    = 64
	ways       = 4
	maxInLinks = 255
)

func newCache(size int) *cache {
	return &cache{salts: make(map[frontier.CrawlID]uint64), sets: uint64(max(size/stripes/ways, 1))}
}

func (c *cache) open(crawl frontier.CrawlID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.salts[crawl]; !ok {
		c.salts[crawl] = rand.Uint64()
	}
}

func (c *cache) close(crawl frontier.CrawlID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.salts, crawl)
}

// salt also says whether the crawl is open.
func (c *cache) salt(crawl frontier.CrawlID) (uint64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.salts[crawl]
	return s, ok
}

// look returns the in-links of a URL, counting links more; 0 if it is unknown.
// With learn an unknown one is remembered.
func (c *cache) look(salt uint64, fp weburl.Fingerprint, links int, learn bool) int {
	hi := fp.Hi ^ salt
	st := &c.stripes[hi%stripes]
	st.Lock()
	defer st.Unlock()
	if st.slots == nil {
		if !learn {
			return 0
		}
		st.slots = make([]slot, c.sets*ways)
	}
	set := st.slots[hi/stripes%c.sets*ways:][:ways]
	worst := 0
	for i := range set {
		if set[i].n != 0 && set[i].hi == hi && set[i].lo == fp.Lo {
			set[i].n = uint8(min(int(set[i].n)+links, maxInLinks))
			return int(set[i].n)
		}
		if set[i].n < set[worst].n {
			worst = i
		}
	}
	if !learn {
		return 0
	}
	if set[worst].n != 0 { // full: what was popular once does not stay for ever
		for i := range set {
			set[i].n -= set[i].n / 4
		}
	}
	set[worst] = slot{hi, fp.Lo, 1}
	return 1
}

// Seen implements frontier.Store: a look into this process's memory.
func (s *Store) Seen(crawl frontier.CrawlID, fp weburl.Fingerprint) bool {
	salt, open := s.cache.salt(crawl)
	return open && s.cache.look(salt, fp, 1, false) > 0
}

// InLinks implements frontier.Store.
func (s *Store) InLinks(crawl frontier.CrawlID, fp weburl.Fingerprint) int {
	salt, open := s.cache.salt(crawl)
	if !open {
		return 0
	}
	return s.cache.look(salt, fp, 0, false)
}
