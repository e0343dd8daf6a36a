package frontiertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"tiptoe/internal/frontier"
)

// ErrInjected is the failure that Failing makes up.
var ErrInjected = errors.New("injected failure")

// failEvery is how rare a made-up failure is, of each kind.
const failEvery = 6

// Failing wraps a store so that about one commit in three fails, half of them
// before and half of them after it was carried out, and one in six of the
// calls that read. Seen, InLinks, CloseCrawl and Close never fail. rnd makes a
// run repeatable; it is used under a lock.
func Failing(s frontier.Store, rnd *rand.Rand) frontier.Store {
	return &failing{Store: s, rnd: rnd}
}

type failing struct {
	frontier.Store
	mu  sync.Mutex
	rnd *rand.Rand
}

func (f *failing) fails() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rnd.IntN(failEvery) == 0 {
		return ErrInjected
	}
	return nil
}

func (f *failing) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	added, err := f.Store.Commit(ctx, b)
	if err == nil {
		err = f.fails()
	}
	if err != nil {
		return nil, err
	}
	return added, nil
}

func (f *failing) Window(ctx context.Context, group string, crawl frontier.CrawlID, after frontier.Pos, n int, dst []frontier.Entry) ([]frontier.Entry, error) {
	if err := f.fails(); err != nil {
		return dst, err
	}
	return f.Store.Window(ctx, group, crawl, after, n, dst)
}

func (f *failing) Queues(ctx context.Context, crawl frontier.CrawlID, fn func(frontier.Queue) error) error {
	if err := f.fails(); err != nil {
		return err
	}
	err := f.Store.Queues(ctx, crawl, fn)
	if err == nil {
		err = f.fails() // the caller has been told of every queue, and yet
	}
	return err
}

func (f *failing) Note(ctx context.Context, group, name string) ([]byte, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Note(ctx, group, name)
}

func (f *failing) OpenCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.OpenCrawl(ctx, crawl)
}

func (f *failing) DropCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := f.fails(); err != nil {
		return err
	}
	err := f.Store.DropCrawl(ctx, crawl)
	if err == nil {
		err = f.fails()
	}
	return err
}

// retry repeats a call until no failure is made up.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, ErrInjected) {
			return err
		}
	}
}
