package redisstore

import (
	"context"
	"slices"
	"sync"

	"tiptoe/internal/frontier"
)

// doubts are URLs of commits that failed: Redis may have queued them, and the
// reply was lost. When one is offered again and turns out not to be new, its
// entry is looked for behind the place where the failed commit could have put
// it, and returned as added, which it was. Without that a scheduler that
// repeats a commit would never hear of it.
//
// Two commits of this process may offer one URL. So that only one of them
// returns it, IDs are remembered while there is a doubt that could find them.
type doubts struct {
	mu       sync.Mutex
	inside   int              // commits under way
	from     map[urlKey]int64 // the clock at the earliest attempt
	reported map[uint64]bool
}

const (
	maxDoubts = 100_000 // beyond it, an entry is found when its group is next read
	doubtPage = 500
	maxPages  = 20 // how far a queue is searched: what was added since
)

func (d *doubts) enter() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside++
}

func (d *doubts) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside--; d.inside == 0 && len(d.from) == 0 {
		d.reported = nil
	}
}

// about reports whether a URL is in doubt.
func (d *doubts) about(k urlKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, doubted := d.from[k]
	return doubted
}

func (d *doubts) note(p *plan, clock int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == nil {
		d.from = make(map[urlKey]int64)
	}
	for i := range p.offers {
		k := urlKey{p.offers[i].crawl, p.offers[i].fp}
		if old, known := d.from[k]; known {
			d.from[k] = min(old, clock)
		} else if len(d.from) < maxDoubts {
			d.from[k] = clock
		}
	}
}

// take returns the offers of a plan that were not new and are in doubt, with
// the clock to search from, and forgets them.
func (d *doubts) take(p *plan) map[*offer]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.from) == 0 {
		return nil
	}
	found := make(map[*offer]int64)
	for i := range p.offers {
		o := &p.offers[i]
		k := urlKey{o.crawl, o.fp}
		if clock, doubted := d.from[k]; doubted {
			delete(d.from, k)
			if o.number == 0 {
				found[o] = clock
			}
		}
	}
	return found
}

// report drops entries that another commit has returned and remembers the rest.
func (d *doubts) report(added []frontier.Entry) []frontier.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside == 1 && len(d.from) == 0 && d.reported == nil {
		return added // nobody could find them
	}
	if d.reported == nil {
		d.reported = make(map[uint64]bool)
	}
	return slices.DeleteFunc(added, func(e frontier.Entry) bool {
		twice := d.reported[e.ID]
		if len(d.reported) < maxDoubts {
			d.reported[e.ID] = true
		}
		return twice
	})
}

// settleDoubts adds to the new entries those that an attempt of before queued.
func (s *Store) settleDoubts(ctx context.Context, p *plan, b *frontier.Batch, added []frontier.Entry) ([]frontier.Entry, error) {
	search := s.doubts.take(p)
	if len(search) == 0 {
		return s.doubts.report(added), nil
	}
	at := make(map[uint64]int, len(added)) // ID to place in the batch
	for i := range p.offers {
		at[p.offers[i].id()] = p.offers[i].at
	}
	for o, clock := range search {
		e := &b.Add[o.at]
		after := frontier.Pos{Prio: e.Prio, ID: uint64(clock)<<idShift - 1}
		for range maxPages {
			page, err := s.window(ctx, o.group, o.crawl, after, doubtPage, nil)
			if err != nil {
				s.doubts.note(p, clock)
				return nil, err
			}
			i := slices.IndexFunc(page, func(x frontier.Entry) bool { return x.Prio == e.Prio && x.URL == e.URL })
			if i >= 0 {
				added = append(added, page[i])
				at[page[i].ID] = o.at
			}
			if i >= 0 || len(page) < doubtPage || page[len(page)-1].Prio != e.Prio {
				break
			}
			after = page[len(page)-1].Pos()
		}
	}
	slices.SortStableFunc(added, func(x, y frontier.Entry) int { return at[x.ID] - at[y.ID] })
	return s.doubts.report(added), nil
}
