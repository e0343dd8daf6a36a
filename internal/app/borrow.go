package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/redisstore"
)

// borrowFor is how long a host is kept from the workers of a fleet by somebody
// who was killed before giving it back.
const borrowFor = 30 * time.Second

// borrowed is a fleet's frontier for somebody who is no worker and whose only
// concern are the notes on hosts. A host is leased before its notes are read
// or written, so no worker is at it meanwhile and none finds half a change;
// Close gives it back.
type borrowed struct {
	*redisstore.Store
	me string

	mu     sync.Mutex
	leases map[string]frontier.Lease

	end  context.CancelFunc // of the renewals
	over chan struct{}
}

func borrow(ctx context.Context, q config.Queue, own redisstore.Terms) (*borrowed, error) {
	store, err := openQueue(ctx, q, own, false)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	renewals, end := context.WithCancel(context.Background())
	b := &borrowed{Store: store, me: workerName(host), leases: map[string]frontier.Lease{}, end: end, over: make(chan struct{})}
	go b.renew(renewals)
	return b, nil
}

func (b *borrowed) renew(ctx context.Context) {
	defer close(b.over)
	tick := time.NewTicker(borrowFor / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// One that is lost all the same is refused at its next commit.
			_, _, _ = b.Renew(ctx, b.me, borrowFor)
		}
	}
}

// claim leases a host, unless it is ours already.
func (b *borrowed) claim(ctx context.Context, group string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ours := b.leases[group]; ours {
		return nil
	}
	l, ok, err := b.Claim(ctx, b.me, borrowFor, group)
	if err != nil {
		return err
	}
	if !ok {
		who, _, err := b.Holder(ctx, group)
		if err != nil || who == "" {
			who = "of the fleet" // it has just let go
		}
		return fmt.Errorf("worker %s is at %s right now; wait until its crawls are done with that host, or stop them", who, group)
	}
	b.leases[group] = l
	return nil
}

// Note implements frontier.Store.
func (b *borrowed) Note(ctx context.Context, group, name string) ([]byte, error) {
	if err := b.claim(ctx, group); err != nil {
		return nil, err
	}
	return b.Store.Note(ctx, group, name)
}

// Commit implements frontier.Store.
func (b *borrowed) Commit(ctx context.Context, batch *frontier.Batch) ([]frontier.Entry, error) {
	for _, n := range batch.Notes {
		if err := b.claim(ctx, n.Group); err != nil {
			return nil, err
		}
	}
	return b.Store.Commit(ctx, batch)
}

// Close gives all hosts back.
func (b *borrowed) Close() error {
	b.end()
	<-b.over
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var all []frontier.Lease
	for _, l := range b.leases {
		all = append(all, l)
	}
	return errors.Join(b.Release(ctx, all), b.Store.Close())
}
