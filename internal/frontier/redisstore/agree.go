package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tiptoe/internal/frontier"
)

var scriptAgree = load("agree")

// Agree enters a worker into the list and says how it groups hosts. A host that
// is in one group here and in another one there has two owners and two paces,
// so whoever groups otherwise than the workers that are there is refused, and
// not in the list any more. When nobody else is there it may be changed.
//
// It enters the list before it asks: of two that begin at once and disagree, at
// least one is refused.
func (s *Store) Agree(ctx context.Context, w frontier.Worker, ttl time.Duration, grouping string) error {
	if _, err := s.Heartbeat(ctx, w, ttl); err != nil {
		return err
	}
	r, err := s.one(ctx, boardShard, scriptAgree, w.ID, grouping)
	if err != nil {
		return fmt.Errorf("agree on pace groups: %w", err)
	}
	got, err := r.ToString()
	if err != nil {
		return s.strange("agree", err)
	}
	if got == grouping {
		return nil
	}
	_, err = s.Heartbeat(ctx, frontier.Worker{ID: w.ID}, 0)
	return errors.Join(fmt.Errorf("the workers of this fleet pace hosts together by %s, this process by %s, and a host with two groups would have two paces: "+
		"give all of them the same --group and --groups, or stop the others first (tiptoe workers lists them; one that was killed is gone when its leases are)",
		got, grouping), err)
}
