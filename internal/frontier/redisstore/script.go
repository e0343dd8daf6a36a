package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

//go:embed lua/*.lua
var sources embed.FS

// script is one operation, carried out by Redis on one shard.
type script struct{ text, sha string }

func load(name string) *script {
	var text strings.Builder
	for _, part := range []string{"prelude", name} {
		b, err := sources.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // it is compiled in
		}
		text.Write(b)
	}
	sum := sha1.Sum([]byte(text.String())) // how Redis names scripts; no secret depends on it
	return &script{text: text.String(), sha: hex.EncodeToString(sum[:])}
}

var (
	scriptCommit     = load("commit")
	scriptClaim      = load("claim")
	scriptQueues     = load("queues")
	scriptOpen       = load("open")
	scriptPending    = load("pending")
	scriptDrop       = load("drop")
	scriptCandidates = load("candidates")
	scriptLease      = load("lease")
	scriptRenew      = load("renew")
	scriptRelease    = load("release")
	scriptHeld       = load("held")
	scriptHeartbeat  = load("heartbeat")
)

// call is one script on one shard.
type call struct {
	shard  int
	script *script
	args   []string
}

// roundTrip bounds one exchange with Redis, for callers whose context does not.
const roundTrip = 10 * time.Second

// run sends all calls at once and waits for all replies. After an error any of
// them may have been carried out; the replies that came are returned with it.
func (s *Store) run(ctx context.Context, calls ...call) ([]rueidis.RedisResult, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	if s.opts.ReadOnly {
		return nil, errReadOnly
	}
	if s.fault != nil {
		if err := s.fault(); err != nil {
			return nil, err
		}
	}
	cmds := make(rueidis.Commands, len(calls))
	for i, c := range calls {
		cmds[i] = s.client.B().Evalsha().Sha1(c.script.sha).Numkeys(1).Key(s.tags[c.shard]).Arg(c.args...).Build()
	}
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	s.calls.Add(int64(len(calls)))
	replies := s.client.DoMulti(ctx, cmds...)
	var first error
	for i := range replies {
		if e, ok := rueidis.IsRedisErr(replies[i].Error()); ok && e.IsNoScript() {
			c := &calls[i]
			replies[i] = s.client.Do(ctx, s.client.B().Eval().Script(c.script.text).Numkeys(1).Key(s.tags[c.shard]).Arg(c.args...).Build())
		}
		if err := replies[i].Error(); err != nil && !rueidis.IsRedisNil(err) && first == nil {
			first = s.explain(err)
		}
	}
	if s.fault != nil && first == nil {
		if err := s.fault(); err != nil {
			return nil, err
		}
	}
	return replies, first
}

// everywhere makes the same call for each shard.
func (s *Store) everywhere(sc *script, args ...string) []call {
	calls := make([]call, len(s.tags))
	for i := range calls {
		calls[i] = call{i, sc, args}
	}
	return calls
}

// explain turns Redis' words into ours.
func (s *Store) explain(err error) error {
	if e, ok := rueidis.IsRedisErr(err); ok {
		if crawl, closed := strings.CutPrefix(e.Error(), "CLOSED "); closed {
			if id, err := strconv.ParseInt(crawl, 10, 64); err == nil {
				return notOpen(frontier.CrawlID(id))
			}
		}
		if strings.HasPrefix(e.Error(), "OOM ") {
			return fmt.Errorf("redis at %s has no memory left, give it more or drop crawls: %w", s.addr, err)
		}
		return fmt.Errorf("redis at %s: %w", s.addr, err)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("redis at %s does not answer: %w", s.addr, err)
}
