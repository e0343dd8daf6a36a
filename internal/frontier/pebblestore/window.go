package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tiptoe/internal/frontier"
)

// ctxEvery is after how many keys a long scan looks at its context.
const ctxEvery = 4096

// Window implements frontier.Store.
func (s *Store) Window(ctx context.Context, group string, crawl frontier.CrawlID, after frontier.Pos, n int, dst []frontier.Entry) ([]frontier.Entry, error) {
	if err := errors.Join(ctx.Err(), checkGroup(group)); err != nil {
		return dst, err
	}
	if n <= 0 {
		return dst, nil
	}
	if err := s.begin(); err != nil {
		return dst, err
	}
	defer s.ops.Done()

	prefix := appendQueue(nil, crawl, group)
	sc := scan{
		ctx:    ctx,
		prefix: prefix,
		crawl:  crawl,
		group:  group,
		dst:    dst,
		want:   n,
		// Loaded before the iterator is made: it sees all smaller IDs.
		horizon: s.nextID.Load(),
	}
	start := after
	start.ID++
	iter, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendPos(bytes.Clone(prefix), start),
		UpperBound: rangeEnd(prefix),
	})
	if err != nil {
		return dst, fmt.Errorf("read the queue of %s: %w", group, err)
	}
	sc.iter = iter
	if z := s.deadZones.get(prefix); z != nil {
		err = sc.byPriority(start, z)
	} else {
		err = sc.straight()
		if err == nil && sc.skipped() > slowScan {
			s.deadZones.put(prefix)
		}
	}
	s.walked.Add(int64(sc.steps()))
	if cerr := iter.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return dst, fmt.Errorf("read the queue of %s: %w", group, err)
	}
	return sc.dst, nil
}

// scan reads one queue.
type scan struct {
	ctx     context.Context
	iter    *pebble.Iterator
	prefix  []byte
	crawl   frontier.CrawlID
	group   string
	dst     []frontier.Entry
	want    int
	taken   int
	horizon uint64
}

// straight reads on until there is enough.
func (sc *scan) straight() error {
	for ok := sc.iter.First(); ok; ok = sc.iter.Next() {
		if _, err := sc.take(); err != nil {
			return err
		}
		if sc.taken == sc.want {
			return nil
		}
	}
	return sc.iter.Error()
}

// byPriority reads a queue known for long dead stretches, priority by
// priority, jumping the stretches it knows and noting new ones.
func (sc *scan) byPriority(start frontier.Pos, z *zone) error {
	var key, limit []byte
	for prio := int(start.Prio); prio <= 255 && sc.taken < sc.want; prio++ {
		if err := sc.ctx.Err(); err != nil {
			return err
		}
		at := uint64(0)
		if prio == int(start.Prio) {
			at = start.ID
		}
		limit = append(append(limit[:0], sc.prefix...), byte(prio))
		limit = rangeEnd(limit)
		for sc.taken < sc.want {
			from := z.jump(uint8(prio), at)
			before := sc.steps()
			key = appendPos(append(key[:0], sc.prefix...), frontier.Pos{Prio: uint8(prio), ID: from})
			state := sc.iter.SeekGEWithLimit(key, limit)
			// A run of live entries, until one step was long.
			for state == pebble.IterValid && bytes.Compare(sc.iter.Key(), limit) < 0 {
				pos, err := sc.take()
				if err != nil {
					return err
				}
				if sc.steps()-before > longStep {
					z.note(uint8(prio), from, min(pos.ID, sc.horizon))
				}
				from = pos.ID + 1
				if sc.taken == sc.want || z.jump(uint8(prio), from) != from {
					break
				}
				before = sc.steps()
				state = sc.iter.NextWithLimit(limit)
			}
			if err := sc.iter.Error(); err != nil {
				return err
			}
			at = from
			if state != pebble.IterValid || bytes.Compare(sc.iter.Key(), limit) >= 0 {
				if sc.steps()-before > longStep {
					z.note(uint8(prio), from, sc.horizon)
				}
				break
			}
		}
	}
	return nil
}

// take decodes the entry under the iterator.
func (sc *scan) take() (frontier.Pos, error) {
	pos, err := parsePos(sc.iter.Key()[len(sc.prefix):])
	if err != nil {
		return pos, err
	}
	value, err := sc.iter.ValueAndErr()
	if err != nil {
		return pos, err
	}
	e := frontier.Entry{ID: pos.ID, Prio: pos.Prio, Crawl: sc.crawl, Group: sc.group}
	if err := frontier.DecodeEntry(value, &e); err != nil {
		return pos, fmt.Errorf("entry %d: %w", pos.ID, err)
	}
	sc.dst = append(sc.dst, e)
	sc.taken++
	return pos, nil
}

// steps counts the keys the iterator went over, dead ones included.
func (sc *scan) steps() int {
	st := sc.iter.Stats()
	return st.ForwardStepCount[pebble.InternalIterCall]
}

func (sc *scan) skipped() int { return sc.steps() - sc.taken }

// Queues implements frontier.Store. It is one pass over the crawl's queue
// keys, without their values; fn may call the store.
func (s *Store) Queues(ctx context.Context, crawl frontier.CrawlID, fn func(frontier.Queue) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.ops.Done()
	prefix := appendCrawl(nil, tagQueue, crawl)
	iter, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: rangeEnd(prefix)})
	if err != nil {
		return fmt.Errorf("list the queues of crawl %d: %w", crawl, err)
	}
	defer iter.Close()
	q := frontier.Queue{Crawl: crawl}
	var group []byte // with its NUL
	for n, ok := 0, iter.First(); ok; n, ok = n+1, iter.Next() {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rest := iter.Key()[len(prefix):]
		if q.Count > 0 && bytes.HasPrefix(rest, group) {
			q.Count++
			continue
		}
		if q.Count > 0 {
			if err := fn(q); err != nil {
				return err
			}
		}
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return fmt.Errorf("list the queues of crawl %d: %w", crawl, errKey)
		}
		group = append(group[:0], rest[:end+1]...)
		q.Group, q.Count = string(rest[:end]), 1
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("list the queues of crawl %d: %w", crawl, err)
	}
	if q.Count > 0 {
		return fn(q)
	}
	return nil
}

// Note implements frontier.Store.
func (s *Store) Note(ctx context.Context, group, name string) ([]byte, error) {
	if err := errors.Join(ctx.Err(), checkGroup(group)); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	value, closer, err := s.db.Get(appendNote(nil, group, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read note %s of %s: %w", name, group, err)
	}
	defer closer.Close()
	return append(make([]byte, 0, len(value)), value...), nil
}
