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

// ShownOf is what stands under each of some names; nil if nothing does.
func (s *Store) ShownOf(ctx context.Context, names []string) (texts [][]byte, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	s.calls.Add(1)
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = s.key(boardShard, "show", name)
	}
	found, err := s.client.Do(ctx, s.client.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil {
		return nil, fmt.Errorf("see %d names: %w", len(names), s.explain(err))
	}
	for _, m := range found {
		text, err := m.AsBytes()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, s.strange("show", err)
		}
		texts = append(texts, text)
	}
	return texts, nil
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
