package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tiptoe/internal/frontier"
)

// idBlock is how many IDs are reserved at once, and so how many a restart
// may skip.
const idBlock = 1 << 13

// flight is one record on its way to the disk.
type flight struct {
	done chan struct{} // closed when the sync ended
	err  error         // read after done
}

// Commit implements frontier.Store. The package comment says why it is right.
func (s *Store) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	added, err := s.commit(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("commit to the frontier: %w", err)
	}
	return added, nil
}

func (s *Store) commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	p := s.plans.Get().(*plan)
	defer s.putPlan(p)
	if err := p.prepare(s, b); err != nil {
		return nil, err
	}
	if err := s.lookUpAhead(ctx, p); err != nil {
		return nil, err
	}

	batch := s.db.NewBatchWithSize(p.size)
	added, fl, last, err := s.order(p, b, batch)
	switch {
	case err != nil:
		return nil, err // the batch is left to the collector: a failed log may still hold it
	case fl != nil:
		if err := s.sync(fl, batch); err != nil {
			return nil, err
		}
	case last != nil:
		<-last.done
		return nil, last.err
	}
	return added, nil
}

// order is the part that takes turns: decide, write, remember. It returns the
// batch's flight or, if there was nothing to write, that of the last batch
// that did write.
func (s *Store) order(p *plan, b *frontier.Batch, batch *pebble.Batch) (added []frontier.Entry, fl, last *flight, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if broken := s.broken.Load(); broken != nil {
		return nil, nil, nil, *broken
	}
	if err := s.decide(p); err != nil {
		return nil, nil, nil, err
	}
	next := s.nextID.Load()
	added, reserved := p.fill(batch, b, next, s.reserved)
	if err := s.fillUpdates(p, b, batch); err != nil {
		return nil, nil, nil, err
	}
	for i := range b.Ack {
		r := &b.Ack[i]
		p.key = appendPos(appendQueue(p.key[:0], r.Crawl, r.Group), r.Pos)
		batch.Delete(p.key, nil)
	}
	if batch.Empty() { // asked before the write, which takes a large batch's data away
		batch.Close()
		return nil, nil, s.tail, nil
	}
	if fl, err = s.write(batch); err != nil {
		return nil, nil, nil, err
	}
	// From here on the log has it. nextID moves after the write, so that a
	// reader who loads it first knows that all smaller IDs are applied.
	s.reserved = reserved
	s.nextID.Store(next + uint64(len(added)))
	for i := range p.offers {
		if o := &p.offers[i]; o.fresh && !(o.again && o.set.look(o.fp)) {
			s.remember(o.set, o.fp)
		}
	}
	return added, fl, nil, nil
}

// decide settles which offers are new. It changes nothing but in-link counts.
func (s *Store) decide(p *plan) error {
	crawls := *s.crawls.Load()
	p.local.reset(len(p.offers))
	for i := range p.offers {
		o := &p.offers[i]
		if crawls[o.crawl] != o.set {
			return notOpen(o.crawl)
		}
		if o.again {
			o.fresh = p.local.add(p.offers, i)
			continue
		}
		if o.known || o.set.look(o.fp) || !p.local.add(p.offers, i) {
			continue
		}
		if o.set.maybeSpilled(o.fp) {
			// Either a false hit of the filter, one in a hundred, or a
			// commit that was faster since the look ahead.
			found, err := s.onDisk(p, o)
			if err != nil {
				return err
			}
			if found {
				continue
			}
		}
		o.fresh = true
	}
	return nil
}

// fillUpdates writes the updates of entries that are still queued. Under the
// mutex nobody can acknowledge one between the look and the write; one that
// this very batch acknowledges is deleted right after.
func (s *Store) fillUpdates(p *plan, b *frontier.Batch, batch *pebble.Batch) error {
	for i := range b.Update {
		e := &b.Update[i]
		p.key = appendPos(appendQueue(p.key[:0], e.Crawl, e.Group), e.Pos())
		found, err := s.has(p.key)
		if err != nil {
			return err
		}
		if found {
			p.scratch = frontier.AppendEntry(p.scratch[:0], e)
			batch.Set(p.key, p.scratch, nil)
		}
	}
	return nil
}

func (s *Store) onDisk(p *plan, o *offer) (bool, error) {
	p.key = appendSeen(p.key[:0], o.crawl, o.fp)
	s.looked.Add(1)
	return s.has(p.key)
}

func (s *Store) has(key []byte) (bool, error) {
	_, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up: %w", err)
	}
	return true, closer.Close()
}

// lookUpAhead settles, outside the mutex, offers that the filters suspect.
// A URL that is found is settled for good, since nothing is ever unseen; one
// that is not found is asked for again under the mutex.
func (s *Store) lookUpAhead(ctx context.Context, p *plan) error {
	p.suspects = p.suspects[:0]
	for i := range p.offers {
		if o := &p.offers[i]; !o.known && o.set.maybeSpilled(o.fp) {
			p.suspects = append(p.suspects, i)
		}
	}
	if len(p.suspects) == 0 {
		return nil
	}
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// In key order neighbours share blocks, and the iterator's seeks are
	// short steps forward.
	slices.SortFunc(p.suspects, func(i, j int) int { return p.offers[i].compare(&p.offers[j]) })
	iter, err := s.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("look up: %w", err)
	}
	defer iter.Close()
	for _, i := range p.suspects {
		o := &p.offers[i]
		p.key = appendSeen(p.key[:0], o.crawl, o.fp)
		o.known = iter.SeekPrefixGE(p.key) && bytes.Equal(iter.Key(), p.key)
		if err := iter.Error(); err != nil {
			return fmt.Errorf("look up: %w", err)
		}
	}
	s.looked.Add(int64(len(p.suspects)))
	return nil
}

// write appends the batch to the log and applies it; s.mu is held. On an
// error the store is broken for good.
func (s *Store) write(batch *pebble.Batch) (fl *flight, err error) {
	if broken := s.broken.Load(); broken != nil {
		return nil, *broken
	}
	defer func() {
		// Pebble panics when its log fails, and keeps locks it held then.
		if r := recover(); r != nil {
			s.wedged = true
			err = s.fail(fmt.Errorf("%v", r))
		}
	}()
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		return nil, s.fail(err)
	}
	s.tail = &flight{done: make(chan struct{})}
	return s.tail, nil
}

// sync waits until the batch is durable.
func (s *Store) sync(fl *flight, batch *pebble.Batch) error {
	if err := batch.SyncWait(); err != nil {
		fl.err = s.fail(err)
	}
	close(fl.done)
	batch.Close()
	return fl.err
}

// fail breaks the store: the first reason stays.
func (s *Store) fail(err error) error {
	err = fmt.Errorf("the log in %s cannot be written, start again to resume: %w", s.dir, err)
	if s.broken.CompareAndSwap(nil, &err) {
		s.log.Error("frontier store: stopped", "error", err)
	}
	return *s.broken.Load()
}

func notOpen(crawl frontier.CrawlID) error { return &frontier.NotOpenError{Crawl: crawl} }

// appendReserve moves the ID mark if the batch needs more than is reserved.
func appendReserve(batch *pebble.Batch, next, reserved uint64) uint64 {
	if next <= reserved {
		return reserved
	}
	reserved = next + idBlock
	batch.Set([]byte(keyIDs), binary.AppendUvarint(nil, reserved), nil)
	return reserved
}

var _ frontier.Store = (*Store)(nil)
