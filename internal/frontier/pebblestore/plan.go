package pebblestore

import (
	"cmp"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// plan is the working memory of one commit: what can be prepared before its
// turn comes, so that the turn is short.
type plan struct {
	offers   []offer // one for each Add, then one for each Mark
	values   []byte  // encoded entries of the offers not known yet
	suspects []int
	local    localSet
	key      []byte
	scratch  []byte
	size     int // a guess at the batch's bytes
}

// offer is a URL that may be new.
type offer struct {
	crawl    frontier.CrawlID
	fp       weburl.Fingerprint
	set      *seenSet
	from, to int  // its value in plan.values
	known    bool // seen before, for certain
	again    bool // to be queued although it was seen
	fresh    bool // decided: new
}

func (o *offer) compare(p *offer) int {
	return cmp.Or(cmp.Compare(uint64(o.crawl), uint64(p.crawl)), cmp.Compare(o.fp.Hi, p.fp.Hi), cmp.Compare(o.fp.Lo, p.fp.Lo))
}

// keyOverhead is what a record costs beside its value: key, lengths and the
// seen key that goes with an entry.
const keyOverhead = 96

// maxPlanBytes is the largest value buffer worth keeping for the next commit.
const maxPlanBytes = 4 << 20

func (s *Store) putPlan(p *plan) {
	if cap(p.values) > maxPlanBytes {
		p.values = nil
	}
	clear(p.offers) // lets go of the seen sets
	s.plans.Put(p)
}

// prepare checks the batch, asks memory about each offer and encodes what may
// be new.
func (p *plan) prepare(s *Store, b *frontier.Batch) error {
	if err := checkGroups(b); err != nil {
		return err
	}
	p.offers, p.values = p.offers[:0], p.values[:0]
	crawls := *s.crawls.Load()
	for i := range b.Add {
		e := &b.Add[i]
		o, err := newOffer(crawls, e.Crawl, e.Fingerprint())
		if err != nil {
			return err
		}
		if e.Again {
			o.known, o.again = false, true
		}
		if !o.known {
			o.from = len(p.values)
			p.values = frontier.AppendEntry(p.values, e)
			o.to = len(p.values)
		}
		p.offers = append(p.offers, o)
	}
	for _, m := range b.Mark {
		o, err := newOffer(crawls, m.Crawl, m.FP)
		if err != nil {
			return err
		}
		p.offers = append(p.offers, o)
	}
	p.size = len(p.values) + keyOverhead*(len(p.offers)+len(b.Ack)+len(b.Update)+1)
	for i := range b.Notes {
		p.size += len(b.Notes[i].Value) + keyOverhead
	}
	return nil
}

func newOffer(crawls map[frontier.CrawlID]*seenSet, crawl frontier.CrawlID, fp weburl.Fingerprint) (offer, error) {
	set := crawls[crawl]
	if set == nil {
		return offer{}, notOpen(crawl)
	}
	return offer{crawl: crawl, fp: fp, set: set, known: set.look(fp)}, nil
}

func checkGroups(b *frontier.Batch) error {
	for i := range b.Add {
		if err := checkGroup(b.Add[i].Group); err != nil {
			return fmt.Errorf("add %s: %w", b.Add[i].URL, err)
		}
	}
	for i := range b.Update {
		if err := checkGroup(b.Update[i].Group); err != nil {
			return fmt.Errorf("update %s: %w", b.Update[i].URL, err)
		}
	}
	for i := range b.Ack {
		if err := checkGroup(b.Ack[i].Group); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	for i := range b.Notes {
		if err := checkGroup(b.Notes[i].Group); err != nil {
			return fmt.Errorf("note %s: %w", b.Notes[i].Name, err)
		}
	}
	return nil
}

// fill writes fresh offers and notes into the batch, giving IDs from next on.
func (p *plan) fill(batch *pebble.Batch, b *frontier.Batch, next, reserved uint64) ([]frontier.Entry, uint64) {
	fresh := 0
	for i := range b.Add {
		if p.offers[i].fresh {
			fresh++
		}
	}
	var added []frontier.Entry
	if fresh > 0 {
		added = make([]frontier.Entry, 0, fresh)
		reserved = appendReserve(batch, next+uint64(fresh), reserved)
	}
	for i := range p.offers {
		o := &p.offers[i]
		if !o.fresh {
			continue
		}
		if i < len(b.Add) {
			e := b.Add[i]
			e.ID = next + uint64(len(added))
			p.key = appendPos(appendQueue(p.key[:0], e.Crawl, e.Group), e.Pos())
			batch.Set(p.key, p.values[o.from:o.to], nil)
			added = append(added, e)
		}
		p.key = appendSeen(p.key[:0], o.crawl, o.fp)
		batch.Set(p.key, nil, nil)
	}
	for i := range b.Notes {
		n := &b.Notes[i]
		p.key = appendNote(p.key[:0], n.Group, n.Name)
		if n.Value == nil {
			batch.Delete(p.key, nil)
		} else {
			batch.Set(p.key, n.Value, nil)
		}
	}
	return added, reserved
}

// localSet finds URLs that one batch offers twice: an open-addressing table of
// places in the list of offers, cheap to empty.
type localSet struct{ slots []uint32 }

func (l *localSet) reset(n int) {
	size := 16
	for size < 2*n {
		size *= 2
	}
	if cap(l.slots) < size {
		l.slots = make([]uint32, size)
		return
	}
	l.slots = l.slots[:size]
	clear(l.slots)
}

// add reports whether offers[i] is the first of its kind.
func (l *localSet) add(offers []offer, i int) bool {
	o := &offers[i]
	mask := uint64(len(l.slots) - 1)
	for j := (o.fp.Lo ^ uint64(o.crawl)) & mask; ; j = (j + 1) & mask {
		at := l.slots[j]
		if at == 0 {
			l.slots[j] = uint32(i + 1)
			return true
		}
		if offers[at-1].crawl == o.crawl && offers[at-1].fp == o.fp {
			return false
		}
	}
}
