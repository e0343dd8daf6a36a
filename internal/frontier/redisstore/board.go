package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

// The board is kept in the first shard: it is small, and one script sees all
// of it.
const boardShard = 0

var (
	scriptOff      = load("off")
	scriptOn       = load("on")
	scriptGrab     = load("grab")
	scriptSpend    = load("spend")
	scriptReport   = load("report")
	scriptReports  = load("reports")
	scriptAnnounce = load("announce")
)

var _ frontier.Board = (*Store)(nil)

// onPage is how many groups one script offers again.
const onPage = 500

// one runs one script on one shard.
func (s *Store) one(ctx context.Context, shard int, sc *script, args ...string) (rueidis.RedisResult, error) {
	if err := s.begin(ctx); err != nil {
		return rueidis.RedisResult{}, err
	}
	defer s.ops.Done()
	replies, err := s.run(ctx, call{shard, sc, args})
	if err != nil {
		return rueidis.RedisResult{}, err
	}
	return replies[0], nil
}

// Claim implements frontier.Board.
func (s *Store) Claim(ctx context.Context, worker string, ttl time.Duration, group string) (l frontier.Lease, ok bool, err error) {
	if err := s.use(worker); err != nil {
		return l, false, err
	}
	s.leasing.Lock()
	defer s.leasing.Unlock()
	shard := s.shardOf(group)
	for range 2 {
		ses := s.current(shard)
		s.mu.Lock()
		s.sessions[shard].tried = true
		s.mu.Unlock()
		begun := "0"
		if ses.begun {
			begun = "1"
		}
		sent := time.Now()
		r, err := s.one(ctx, shard, scriptGrab, ses.name, begun, millis(ttl), group)
		if err != nil {
			return l, false, fmt.Errorf("claim %s: %w", group, err)
		}
		if rueidis.IsRedisNil(r.Error()) { // our session had expired: once more under a new name
			s.end(shard)
			continue
		}
		got, err := s.parseLeases(r)
		if err != nil || len(got) == 0 {
			return l, false, err
		}
		s.extend(shard, sent, ttl)
		s.mu.Lock()
		s.sessions[shard].leases[group] = got[0].Token
		s.mu.Unlock()
		return got[0], true, nil
	}
	return l, false, nil
}

// Announce implements frontier.Board. The board first: whoever hears of work
// looks there whether its crawl is on.
func (s *Store) Announce(ctx context.Context, c frontier.Announced) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	id := strconv.FormatInt(c.ID, 10)
	err = s.board(ctx, id, string(text), c.By, flag(c.First), strconv.FormatInt(c.Cap, 10), strconv.FormatInt(c.Used, 10))
	if err == nil {
		s.mu.Lock()
		if c.Anew || c.First {
			delete(s.on, id)
		}
		s.mu.Unlock()
		err = s.offer(ctx, id, !c.Held)
	}
	if err != nil {
		return fmt.Errorf("announce crawl %s: %w", id, err)
	}
	s.mu.Lock()
	s.on[id] = !c.Held
	s.mu.Unlock()
	return nil
}

// Withdraw implements frontier.Board.
func (s *Store) Withdraw(ctx context.Context, crawl int64, by string) error {
	id := strconv.FormatInt(crawl, 10)
	err := s.board(ctx, id, "", by, "", "0", "0")
	if err == nil {
		err = s.offer(ctx, id, false)
	}
	if err != nil {
		return fmt.Errorf("withdraw crawl %s: %w", id, err)
	}
	s.mu.Lock()
	delete(s.on, id)
	s.mu.Unlock()
	return nil
}

// Shelve implements frontier.Board.
func (s *Store) Shelve(ctx context.Context, crawl int64) error {
	if err := s.offer(ctx, strconv.FormatInt(crawl, 10), false); err != nil {
		return fmt.Errorf("shelve crawl %d: %w", crawl, err)
	}
	return nil
}

func (s *Store) board(ctx context.Context, args ...string) error {
	r, err := s.one(ctx, boardShard, scriptAnnounce, args...)
	if err != nil {
		return err
	}
	if ours, err := r.AsInt64(); err != nil {
		return s.strange("board", err)
	} else if ours == 0 {
		return frontier.ErrSuperseded
	}
	return nil
}

// offer lets Acquire see a crawl's work, or hides it, in all shards at once.
func (s *Store) offer(ctx context.Context, id string, on bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	if !on {
		_, err := s.run(ctx, s.everywhere(scriptOff, id)...)
		return err
	}
	s.mu.Lock()
	fresh := "1"
	if s.on[id] {
		fresh = "0"
	}
	s.mu.Unlock()
	calls := s.everywhere(scriptOn, id, "-", strconv.Itoa(onPage), fresh)
	for len(calls) > 0 {
		replies, err := s.run(ctx, calls...)
		if err != nil {
			return err
		}
		var more []call
		for i, r := range replies {
			last, err := r.ToString()
			if rueidis.IsRedisNil(err) {
				continue // that was all of the shard
			}
			if err != nil {
				return s.strange("on", err)
			}
			more = append(more, call{calls[i].shard, scriptOn, []string{id, "(" + last, strconv.Itoa(onPage), fresh}})
		}
		calls = more
	}
	return nil
}

// Crawls implements frontier.Board.
func (s *Store) Crawls(ctx context.Context) ([]frontier.Announced, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	s.calls.Add(1)
	texts, err := s.client.Do(ctx, s.client.B().Hvals().Key(s.key(boardShard, "crawls")).Build()).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("read the board: %w", s.explain(err))
	}
	return decodeAll[frontier.Announced](s, texts)
}

// Spend implements frontier.Board.
func (s *Store) Spend(ctx context.Context, crawl int64, _ string, n int64) (granted, spent int64, err error) {
	r, err := s.one(ctx, boardShard, scriptSpend, strconv.FormatInt(crawl, 10), strconv.FormatInt(n, 10))
	if err != nil {
		return 0, 0, fmt.Errorf("spend pages of crawl %d: %w", crawl, err)
	}
	v, err := r.AsIntSlice()
	if err != nil || len(v) != 2 {
		return 0, 0, s.strange("spend", err)
	}
	return v[0], v[1], nil
}

// Report implements frontier.Board.
func (s *Store) Report(ctx context.Context, r frontier.Report, ttl time.Duration) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err = s.one(ctx, boardShard, scriptReport, strconv.FormatInt(r.Crawl, 10), r.Worker, string(text), string(r.Picture), millis(ttl)); err != nil {
		return fmt.Errorf("report about crawl %d: %w", r.Crawl, err)
	}
	return nil
}

// Reports implements frontier.Board.
func (s *Store) Reports(ctx context.Context, crawl int64, pictures bool) ([]frontier.Report, error) {
	wanted := "0"
	if pictures {
		wanted = "1"
	}
	r, err := s.one(ctx, boardShard, scriptReports, strconv.FormatInt(crawl, 10), wanted)
	if err != nil {
		return nil, fmt.Errorf("read reports about crawl %d: %w", crawl, err)
	}
	parts, err := r.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, s.strange("reports", err)
	}
	texts, err := parts[0].AsStrSlice()
	if err != nil {
		return nil, s.strange("reports", err)
	}
	seen, err := parts[1].AsStrMap()
	if err != nil {
		return nil, s.strange("reports", err)
	}
	list, err := decodeAll[frontier.Report](s, texts)
	for i := range list {
		if p, ok := seen[list[i].Worker]; ok {
			list[i].Picture = []byte(p)
		}
	}
	return list, err
}

func decodeAll[T any](s *Store, texts []string) ([]T, error) {
	list := make([]T, len(texts))
	for i := range texts {
		if err := json.Unmarshal([]byte(texts[i]), &list[i]); err != nil {
			return nil, s.strange("board", err)
		}
	}
	return list, nil
}
