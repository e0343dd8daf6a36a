package redisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// relisten is the pause before listening again to a Redis that went away.
const relisten = time.Second

// Changed implements frontier.Leases. It fires when somebody added to a group
// of ours, when free groups appeared where there were none, and after every
// reconnect, because what was said meanwhile was missed.
func (s *Store) Changed() <-chan struct{} { return s.wake }

func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// listen hears Redis' announcements until the store is closed.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		client, cancel := s.client.Dedicate()
		lost := client.SetPubSubHooks(rueidis.PubSubHooks{
			OnSubscription: func(rueidis.PubSubSubscription) { s.nudge() },
			OnMessage:      func(rueidis.PubSubMessage) { s.nudge() },
		})
		err := client.Do(ctx, client.B().Subscribe().Channel(s.opts.Prefix+"free", s.opts.Prefix+"wake:"+s.self).Build()).Error()
		if err == nil {
			select {
			case <-ctx.Done():
			case <-lost:
			}
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}
