package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"tiptoe/internal/frontier"
)

// Commit implements frontier.Store. The package comment says in which order,
// and why it is right. With an error that is a frontier.FencedError the
// entries returned were added.
func (s *Store) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	s.doubts.enter()
	defer s.doubts.leave()
	p, err := s.prepare(b)
	if err != nil {
		return nil, fmt.Errorf("commit to the frontier: %w", err)
	}
	clock := s.clock.Add(p.span) - p.span + 1
	fenced, err := s.apply(ctx, p, clock)
	if err != nil {
		s.doubts.note(p, clock)
		return nil, fmt.Errorf("commit to the frontier: %w", err)
	}
	added := p.added(b)
	if added, err = s.settleDoubts(ctx, p, b, added); err != nil {
		return nil, fmt.Errorf("commit to the frontier: %w", err)
	}
	s.learn(b)
	if len(fenced) > 0 {
		s.drop(fenced)
		return added, fmt.Errorf("commit to the frontier: %w", &frontier.FencedError{Groups: fenced})
	}
	return added, nil
}

// apply sends the batch: claims, additions, and then the rest.
func (s *Store) apply(ctx context.Context, p *plan, clock int64) (fenced []string, err error) {
	if err := s.claim(ctx, p); err != nil {
		return nil, err
	}
	rest := p.rest()
	adds := travel(p.adds(only(rest)), rest)
	if _, err := s.send(ctx, adds, clock, p.span); err != nil {
		return nil, err
	}
	return s.send(ctx, rest, clock, p.span)
}

// travel lets additions go along with what must not come before them, where that
// is one call, and returns those that go first.
func travel(adds []*work, rest []*work) (first []*work) {
	for _, w := range adds {
		var with *work
		for _, r := range rest {
			if r.shard == w.shard {
				if with != nil { // cut in two: either might come first
					with = nil
					break
				}
				with = r
			}
		}
		if w.beside && with != nil && with.offers == nil {
			with.offers = w.offers
		} else {
			first = append(first, w)
		}
	}
	return first
}

// only is the one shard of all works, or -1.
func only(list []*work) int {
	shard := -1
	for i, w := range list {
		if i > 0 && w.shard != shard {
			return -1
		}
		shard = w.shard
	}
	return shard
}

// claim asks, for URLs that belong to another shard than their group, which
// group may queue them. Offers that lost go to the winner's queue: if the
// winner never came that far, we finish what it began.
func (s *Store) claim(ctx context.Context, p *plan) error {
	asked := make([][]*offer, len(s.tags))
	for i := range p.offers {
		if o := &p.offers[i]; o.home != o.shard {
			asked[o.home] = append(asked[o.home], o)
			p.marks = append(p.marks, mark{crawl: o.crawl, fp: o.fp, shard: o.home, confirm: true})
		}
	}
	var calls []call
	var parts [][]*offer
	for home, offers := range asked {
		for _, part := range cut(offers, maxOffers, func(**offer) int { return home }, func(**offer) int { return 0 }) {
			args := []string{""}
			n := 0
			for _, o := range part {
				if !o.again { // it is queued whoever saw it
					args = append(args, crawlText(o.crawl), placeOf(o.fp), memberOf(o.fp), fpText(o.fp), o.group)
					part[n] = o
					n++
				}
			}
			if n > 0 {
				args[0] = strconv.Itoa(n)
				calls = append(calls, call{home, scriptClaim, args})
				parts = append(parts, part[:n])
			}
		}
	}
	replies, err := s.run(ctx, calls...)
	if err != nil {
		return err
	}
	for i, r := range replies {
		groups, err := r.ToArray()
		if err != nil || len(groups) != len(parts[i]) {
			return s.strange("claim", err)
		}
		for j, o := range parts[i] {
			if groups[j].IsNil() {
				o.seen = true
			} else if o.group, err = groups[j].ToString(); err != nil {
				return s.strange("claim", err)
			} else {
				o.shard = s.shardOf(o.group)
			}
		}
	}
	return nil
}

// send runs the commit script for each work.
func (s *Store) send(ctx context.Context, list []*work, clock, span int64) (fenced []string, err error) {
	calls := make([]call, len(list))
	for i, w := range list {
		session, token := s.fence(w.shard)
		calls[i] = call{w.shard, scriptCommit, w.args(clock, span, session, token)}
	}
	replies, err := s.run(ctx, calls...)
	if err != nil {
		return nil, err
	}
	for i, r := range replies {
		parts, err := r.ToArray()
		if err != nil || len(parts) != 3 {
			return nil, s.strange("commit", err)
		}
		now, err := parts[0].AsInt64()
		if err != nil {
			return nil, s.strange("commit", err)
		}
		s.saw(now)
		numbers, err := parts[1].AsIntSlice()
		if err != nil || len(numbers) != len(list[i].offers) {
			return nil, s.strange("commit", err)
		}
		for j, o := range list[i].offers {
			o.number = numbers[j]
		}
		groups, err := parts[2].AsStrSlice()
		if err != nil {
			return nil, s.strange("commit", err)
		}
		fenced = append(fenced, groups...)
	}
	return fenced, nil
}

func (s *Store) strange(script string, err error) error {
	return fmt.Errorf("redis at %s gave an answer to %s that this version does not know (is another version of tiptoe using it?): %v", s.addr, script, err)
}

// added lists the new entries in the order of the batch.
func (p *plan) added(b *frontier.Batch) []frontier.Entry {
	var added []frontier.Entry
	for i := range p.offers {
		if o := &p.offers[i]; o.number > 0 {
			e := b.Add[o.at]
			e.ID, e.Group = o.id(), o.group
			added = append(added, e)
		}
	}
	return added
}

func (o *offer) id() uint64 { return uint64(o.number)<<idShift | uint64(o.shard) }

// learn remembers what Redis now has.
func (s *Store) learn(b *frontier.Batch) {
	for i := range b.Add {
		e := &b.Add[i]
		if salt, open := s.cache.salt(e.Crawl); open {
			s.cache.look(salt, e.Fingerprint(), 0, true)
		}
	}
	for _, m := range b.Mark {
		if salt, open := s.cache.salt(m.Crawl); open {
			s.cache.look(salt, m.FP, 0, true)
		}
	}
}
