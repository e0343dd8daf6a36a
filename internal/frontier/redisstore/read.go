package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

// How much one reading call asks for.
const (
	windowPage = 500
	queuesPage = 500
	dropPage   = 500
)

// Window implements frontier.Store.
func (s *Store) Window(ctx context.Context, group string, crawl frontier.CrawlID, after frontier.Pos, n int, dst []frontier.Entry) ([]frontier.Entry, error) {
	if err := s.begin(ctx); err != nil {
		return dst, err
	}
	defer s.ops.Done()
	got, err := s.window(ctx, group, crawl, after, n, dst)
	if err != nil {
		return dst, fmt.Errorf("read the queue of %s: %w", group, err)
	}
	return got, nil
}

func (s *Store) window(ctx context.Context, group string, crawl frontier.CrawlID, pos frontier.Pos, n int, dst []frontier.Entry) ([]frontier.Entry, error) {
	key := s.key(s.shardOf(group), "q", crawlText(crawl), group)
	for n > 0 {
		from, any := after(pos)
		if !any {
			return dst, nil
		}
		want := min(n, windowPage)
		members, err := s.do(ctx, s.client.B().Zrangebylex().Key(key).Min(from).Max("+").Limit(0, int64(want)).Build()).AsStrSlice()
		if err != nil {
			return dst, s.explain(err)
		}
		for _, m := range members {
			e := frontier.Entry{Crawl: crawl, Group: group}
			if err := parseMember(m, &e); err != nil {
				return dst, fmt.Errorf("entry %d: %w", e.ID, err)
			}
			dst = append(dst, e)
			pos = e.Pos()
		}
		if len(members) < want {
			return dst, nil
		}
		n -= len(members)
	}
	return dst, nil
}

// do sends one plain command.
func (s *Store) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	return s.client.Do(ctx, cmd)
}

// Queues implements frontier.Store: shard by shard, page by page in the order
// of names, so that Redis is never busy for long and no group is told twice.
// Groups that get or lose their work meanwhile may be in it or not.
func (s *Store) Queues(ctx context.Context, crawl frontier.CrawlID, fn func(frontier.Queue) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	for shard := range s.tags {
		for from, more := "-", true; more; {
			replies, err := s.run(ctx, call{shard, scriptQueues, []string{crawlText(crawl), from, fmt.Sprint(queuesPage)}})
			if err != nil {
				return fmt.Errorf("list the queues of crawl %d: %w", crawl, err)
			}
			page, err := replies[0].ToArray()
			if err != nil {
				return s.strange("queues", err)
			}
			for i := 0; i+1 < len(page); i += 2 {
				group, err1 := page[i].ToString()
				n, err2 := page[i+1].AsInt64()
				if err1 != nil || err2 != nil {
					return s.strange("queues", err2)
				}
				from = "(" + group
				if n == 0 {
					continue
				}
				if err := fn(frontier.Queue{Group: group, Crawl: crawl, Count: int(n)}); err != nil {
					return err
				}
			}
			more = len(page) == 2*queuesPage
		}
	}
	return nil
}

// Note implements frontier.Store.
func (s *Store) Note(ctx context.Context, group, name string) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	v, err := s.do(ctx, s.client.B().Hget().Key(s.key(s.shardOf(group), "n", group)).Field(name).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read note %s of %s: %w", name, group, s.explain(err))
	}
	return append(make([]byte, 0, len(v)), v...), nil
}

// Pending implements frontier.Leases. Each shard counts exactly and numbers
// its changes; two readings with the same numbers were both true in between.
func (s *Store) Pending(ctx context.Context, crawl frontier.CrawlID) (n int64, stable bool, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, false, err
	}
	defer s.ops.Done()
	var passes [2][]string
	for pass := range passes {
		replies, err := s.counts(ctx, crawl)
		if err != nil {
			return 0, false, fmt.Errorf("count what crawl %d has to do: %w", crawl, err)
		}
		n = 0
		for _, r := range replies {
			if r.Error() != nil {
				return 0, false, fmt.Errorf("count what is to do: %w", notOpen(crawl))
			}
			fields, err := r.ToArray()
			if err != nil || len(fields) != 2 {
				return 0, false, s.strange("count", err)
			}
			if fields[0].IsNil() {
				return 0, false, fmt.Errorf("count what is to do: %w", notOpen(crawl))
			}
			count, err := fields[0].AsInt64()
			if err != nil {
				return 0, false, s.strange("count", err)
			}
			version, _ := fields[1].ToString()
			n += count
			passes[pass] = append(passes[pass], version)
		}
	}
	stable = true
	for i := range passes[0] {
		stable = stable && passes[0][i] == passes[1][i]
	}
	return n, stable, nil
}

// counts reads a crawl's number of entries and the version of its last change,
// of each shard. A shard that has not got the crawl answers nil.
func (s *Store) counts(ctx context.Context, crawl frontier.CrawlID) ([]rueidis.RedisResult, error) {
	if s.volatile {
		return s.run(ctx, s.everywhere(scriptPending, crawlText(crawl))...)
	}
	cmds := make(rueidis.Commands, len(s.tags))
	for i := range cmds {
		cmds[i] = s.client.B().Hmget().Key(s.key(i, "c", crawlText(crawl))).Field("n", "v").Build()
	}
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	replies := s.client.DoMulti(ctx, cmds...)
	for _, r := range replies {
		if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
			return nil, s.explain(err)
		}
	}
	return replies, nil
}
