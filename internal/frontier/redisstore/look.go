package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

// Looking at a fleet without taking part in it: plain commands that change
// nothing. Besides those here, Window, Note, Crawls and Pending are such.

// errReadOnly is returned by every script of a store that was opened for reading.
var errReadOnly = errors.New("the frontier is open for reading only")

// readLayout takes the number of shards from the store, for somebody who only
// looks: the layout is not written, and a frontier that is not there stays so.
func (s *Store) readLayout(ctx context.Context) error {
	text, err := s.do(ctx, s.client.B().Get().Key(s.opts.Prefix+"{s0}:layout").Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return fmt.Errorf("there is no frontier under %q in the Redis at %s: no fleet has worked there yet, or it has another --redis-prefix", s.opts.Prefix, s.addr)
	}
	if err != nil {
		return s.explain(err)
	}
	var format int
	if _, err := fmt.Sscanf(text, "format %d shards %d", &format, &s.opts.Shards); err != nil || s.opts.Shards < 1 || s.opts.Shards > maxShards {
		return s.strange("layout", err)
	}
	if format != formatVersion {
		return fmt.Errorf("the frontier in Redis under %q has format %d, this tiptoe reads format %d: use the tiptoe that wrote it", s.opts.Prefix, format, formatVersion)
	}
	return nil
}

// Holder says which worker holds a group, and how long its lease lasts unless
// it is renewed; nobody: "".
func (s *Store) Holder(ctx context.Context, group string) (worker string, left time.Duration, err error) {
	if err := s.begin(ctx); err != nil {
		return "", 0, err
	}
	defer s.ops.Done()
	shard := s.shardOf(group)
	text, err := s.do(ctx, s.client.B().Hget().Key(s.key(shard, "o")).Field(group).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("ask who has %s: %w", group, s.explain(err))
	}
	_, session, _ := strings.Cut(text, " ") // token, session
	expiry, err := s.do(ctx, s.client.B().Zscore().Key(s.key(shard, "x")).Member(session).Build()).AsFloat64()
	if rueidis.IsRedisNil(err) {
		return "", 0, nil
	}
	now, nerr := s.now(ctx)
	if err := errors.Join(err, nerr); err != nil {
		return "", 0, fmt.Errorf("ask who has %s: %w", group, s.explain(err))
	}
	if left = time.Duration(int64(expiry)-now) * time.Millisecond; left <= 0 {
		return "", 0, nil // it waits to be freed
	}
	for range 2 { // worker/process/number
		session = session[:max(strings.LastIndexByte(session, '/'), 0)]
	}
	return session, left, nil
}

// Live lists the workers whose heartbeat is not too old. To be told, nobody
// has to beat.
func (s *Store) Live(ctx context.Context) ([]frontier.Worker, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	now, err := s.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", s.explain(err))
	}
	ids, err := s.do(ctx, s.client.B().Zrangebyscore().Key(s.key(boardShard, "b")).Min("("+strconv.FormatInt(now, 10)).Max("+inf").Build()).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", s.explain(err))
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := s.do(ctx, s.client.B().Hmget().Key(s.key(boardShard, "w")).Field(ids...).Build()).ToArray()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", s.explain(err))
	}
	var live []frontier.Worker
	for _, m := range list {
		text, err := m.ToString()
		if err != nil {
			continue // nil: it has just left
		}
		w, beat, err := workerOf(text)
		if err != nil {
			return nil, s.strange("board", err)
		}
		w.Silent = time.Duration(max(now-beat, 0)) * time.Millisecond
		live = append(live, w)
	}
	return live, nil
}

// workerOf reads an entry of the list of workers: a number, then the worker.
func workerOf(text string) (w frontier.Worker, number int64, err error) {
	first, rest, _ := strings.Cut(text, " ")
	if number, err = strconv.ParseInt(first, 10, 64); err == nil {
		err = json.Unmarshal([]byte(rest), &w)
	}
	return w, number, err
}

// now is Redis' clock in milliseconds, by which leases expire.
func (s *Store) now(ctx context.Context) (int64, error) {
	t, err := s.do(ctx, s.client.B().Time().Build()).AsIntSlice()
	if err != nil || len(t) != 2 {
		return 0, errors.Join(errors.New("no time"), err)
	}
	return t[0]*1000 + t[1]/1000, nil
}
