package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/frontiertest"
	"tiptoe/internal/testenv"
)

var ctx = context.Background()

// The client sleeps for a second after it failed to find a cluster, closed or not.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// prefixes keep the stores of one server apart.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("t%d:", prefixes.Add(1)) }

func mustOpen(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(ctx, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// openTest opens a store that is closed with the test.
func openTest(t testing.TB, opts Options) *Store {
	t.Helper()
	s := mustOpen(t, opts)
	t.Cleanup(func() { s.Close() })
	return s
}

func contract(t *testing.T, opts Options, wrap func(*Store) frontier.Store, more ...frontiertest.Option) {
	inner := map[frontier.Store]*Store{}
	open := func(t testing.TB, prefix string) frontier.Store {
		opts := opts
		opts.Prefix = prefix
		s := mustOpen(t, opts)
		w := wrap(s)
		inner[w] = s
		return w
	}
	frontiertest.Run(t,
		func(t testing.TB) frontier.Store { return open(t, newPrefix()) },
		append(more, frontiertest.WithReopen(func(t testing.TB, w frontier.Store) frontier.Store {
			prefix := inner[w].opts.Prefix
			delete(inner, w)
			if err := w.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			return open(t, prefix)
		}))...)
}

func bare(s *Store) frontier.Store { return s }

func Test_the_store_keeps_the_contract_of_frontier_Store(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	t.Run("eight shards", func(t *testing.T) { contract(t, Options{URL: r.URL(), Exclusive: true}, bare) })
	t.Run("one shard, hardly any memory", func(t *testing.T) {
		contract(t, Options{URL: r.URL(), Exclusive: true, Shards: 1, SeenCache: 1}, bare)
	})
}

func Test_the_contract_holds_on_a_cluster(t *testing.T) {
	r := testenv.StartRedisCluster(t)
	contract(t, Options{URL: r.URL(), Exclusive: true}, bare)
}

func Test_the_contract_holds_over_a_line_that_loses_questions_and_answers(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	contract(t, Options{URL: r.URL(), Exclusive: true}, func(s *Store) frontier.Store {
		s.fault = losses(1, 6)
		return retrying{s}
	}, frontiertest.WithFailures())
}

var errLost = errors.New("the line was cut")

// losses fails one time in n.
func losses(seed uint64, n int) func() error {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, seed))
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if rnd.IntN(n) == 0 {
			return errLost
		}
		return nil
	}
}

// retrying repeats what the line lost, as a crawl does.
type retrying struct{ *Store }

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, errLost) {
			return err
		}
	}
}

func (r retrying) Commit(ctx context.Context, b *frontier.Batch) (added []frontier.Entry, err error) {
	err = retry(func() error { added, err = r.Store.Commit(ctx, b); return err })
	return added, err
}

func (r retrying) Queues(ctx context.Context, crawl frontier.CrawlID, fn func(frontier.Queue) error) error {
	return retry(func() error {
		var list []frontier.Queue
		err := r.Store.Queues(ctx, crawl, func(q frontier.Queue) error { list = append(list, q); return nil })
		for i := 0; i < len(list) && err == nil; i++ {
			err = fn(list[i])
		}
		return err
	})
}

func (r retrying) OpenCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	return retry(func() error { return r.Store.OpenCrawl(ctx, crawl) })
}

func (r retrying) DropCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	return retry(func() error { return r.Store.DropCrawl(ctx, crawl) })
}
