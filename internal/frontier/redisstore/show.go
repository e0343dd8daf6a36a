package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// Show lets every process of the fleet see a text under a name, for a time:
// pictures of jobs for the servers that do not drive them. Nothing is decided
// by it.
func (s *Store) Show(ctx context.Context, name string, text []byte, ttl time.Duration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	s.calls.Add(1)
	err := s.client.Do(ctx, s.client.B().Set().Key(s.key(boardShard, "show", name)).Value(rueidis.BinaryString(text)).Px(ttl).Build()).Error()
	if err != nil {
		return fmt.Errorf("show %s: %w", name, s.explain(err))
	}
	return nil
}

// Shown is what stands under a name and how much longer it will; nil if nothing
// does.
func (s *Store) Shown(ctx context.Context, name string) (text []byte, left time.Duration, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer s.ops.Done()
	s.calls.Add(2)
	key := s.key(boardShard, "show", name)
	// The time first: what expires between the two is nothing.
	replies := s.client.DoMulti(ctx, s.client.B().Pttl().Key(key).Build(), s.client.B().Get().Key(key).Build())
	ms, err := replies[0].AsInt64()
	if err == nil {
		text, err = replies[1].AsBytes()
	}
	if rueidis.IsRedisNil(err) || err == nil && ms <= 0 {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("see %s: %w", name, s.explain(err))
	}
	return text, time.Duration(ms) * time.Millisecond, nil
}
