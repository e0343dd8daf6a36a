package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

var scriptAgree = load("agree")

// Terms are what all processes over one frontier must have in common.
type Terms struct {
	// Grouping says which hosts are paced together. A host that is in one group
	// here and in another one there has two owners and two paces.
	Grouping string
	// Ledger is the identity of the database. The frontier knows crawls by
	// numbers, which mean something else in another one.
	Ledger string
}

// Agree enters a worker into the list and says what it goes by. Whoever groups
// otherwise than the workers that are there, or has another ledger than the one
// that the frontier was first used with, is refused, and not in the list any
// more. When nobody else is there the grouping may be changed; the ledger stays.
//
// It enters the list before it asks: of two that begin at once and disagree, at
// least one is refused.
func (s *Store) Agree(ctx context.Context, w frontier.Worker, ttl time.Duration, own Terms) error {
	if _, err := s.Heartbeat(ctx, w, ttl); err != nil {
		return err
	}
	r, err := s.one(ctx, boardShard, scriptAgree, w.ID, own.Grouping, own.Ledger)
	if err != nil {
		return fmt.Errorf("agree with the fleet: %w", err)
	}
	got, err := r.AsStrSlice()
	if err != nil || len(got) != 2 {
		return s.strange("agree", err)
	}
	refused := s.compare(own, Terms{Grouping: got[0], Ledger: got[1]})
	if refused == nil {
		return nil
	}
	_, err = s.Heartbeat(ctx, frontier.Worker{ID: w.ID}, 0)
	return errors.Join(refused, err)
}

// Matches is Agree for somebody who is no worker: it enters and changes nothing.
// What is empty is not compared, and a grouping only with workers that are there.
func (s *Store) Matches(ctx context.Context, own Terms) error {
	fleet, err := s.Terms(ctx)
	if err != nil {
		return err
	}
	if own.Ledger == "" {
		own.Ledger = fleet.Ledger
	}
	if own.Grouping != "" && own.Grouping != fleet.Grouping {
		live, err := s.Live(ctx)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			return s.compare(own, fleet)
		}
	}
	own.Grouping = fleet.Grouping
	return s.compare(own, fleet)
}

// Terms are those that the fleet goes by; empty where nobody has said yet.
func (s *Store) Terms(ctx context.Context) (t Terms, err error) {
	if err := s.begin(ctx); err != nil {
		return t, err
	}
	defer s.ops.Done()
	for name, into := range map[string]*string{"grouping": &t.Grouping, "ledger": &t.Ledger} {
		*into, err = s.do(ctx, s.client.B().Get().Key(s.key(boardShard, name)).Build()).ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return t, fmt.Errorf("ask what the fleet goes by: %w", s.explain(err))
		}
	}
	return t, nil
}

// compare says what is wrong with own terms, and the way out. A fleet that has
// none yet is content with any.
func (s *Store) compare(own, fleet Terms) error {
	if fleet.Ledger != "" && own.Ledger != fleet.Ledger {
		return fmt.Errorf("--database-url: the frontier under %q in the Redis at %s belongs to another database (ledger %s; this one is ledger %s), "+
			"where the same numbers are other crawls: give the --database-url that its other processes have, or a --redis-prefix of its own to this database",
			s.opts.Prefix, s.addr, fleet.Ledger, own.Ledger)
	}
	if fleet.Grouping != "" && own.Grouping != fleet.Grouping {
		return fmt.Errorf("the workers of this fleet pace hosts together by %s, this process by %s, and a host with two groups would have two paces: "+
			"give all of them the same --group and --groups, or stop the others first (tiptoe workers lists them; one that was killed is gone when its leases are)",
			fleet.Grouping, own.Grouping)
	}
	return nil
}
