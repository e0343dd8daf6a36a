package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

// Options tunes a store; the zero value is the default everywhere but for URL.
type Options struct {
	URL    string // redis://[user:password@]host:port[/database]; a cluster is found out
	Prefix string // of every key ("tiptoe:"); stores with different ones do not meet

	// Shards is how many parts the store is cut into (8). It is fixed when
	// the prefix is first used; another number is refused afterwards.
	Shards int

	// Exclusive says that this process is the only one that works on the
	// store: it needs no leases and is never fenced.
	Exclusive bool

	// ReadOnly says that this process only looks: it works in no fleet, makes
	// no frontier where there is none and changes nothing. Shards is read.
	ReadOnly bool

	// Patience is how long a free group is left to the worker that prefers
	// it (5 s).
	Patience time.Duration

	// Margin is how long before a lease can expire its Deadline is (a sixth
	// of the lease).
	Margin time.Duration

	// SeenCache is how many URLs are remembered as seen in this process
	// (1,000,000, 24 bytes each).
	SeenCache int

	Logger *slog.Logger // nil discards
}

const (
	defaultPrefix    = "tiptoe:"
	defaultShards    = 8
	defaultPatience  = 5 * time.Second
	defaultSeenCache = 1_000_000

	formatVersion = 1
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the frontier store is closed")

// Store is a frontier.Store and frontier.Leases on Redis.
type Store struct {
	client    rueidis.Client
	opts      Options
	addr      string
	log       *slog.Logger
	tags      []string // a shard's hash tag, with which all of its keys begin
	self      string   // this process: two with one worker's name are told apart
	fault     func() error
	calls     atomic.Int64 // scripts run
	clock     atomic.Int64 // no shard's clock that we have seen is ahead of it
	cache     *cache
	doubts    doubts
	wake      chan struct{}
	stop      context.CancelFunc
	listening sync.WaitGroup
	volatile  bool // Redis keeps no log: what it knew before its last start is not to be trusted

	life   sync.Mutex
	closed bool
	ops    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	worker   string
	sessions []session       // one for each shard
	lost     []string        // groups whose loss Renew has not reported yet
	on       map[string]bool // crawls that this process has announced

	leasing sync.Mutex // one Acquire, Renew or Release at a time
}

// Open connects to Redis and checks that it is fit to keep a frontier.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Prefix == "" {
		opts.Prefix = defaultPrefix
	}
	if opts.Shards <= 0 {
		opts.Shards = defaultShards
	}
	if opts.Patience <= 0 {
		opts.Patience = defaultPatience
	}
	if opts.SeenCache <= 0 {
		opts.SeenCache = defaultSeenCache
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if strings.ContainsAny(opts.Prefix, "{}") {
		return nil, fmt.Errorf("the prefix %q of Redis keys must not contain braces: they decide where a cluster keeps a key", opts.Prefix)
	}
	if opts.Shards > maxShards {
		return nil, fmt.Errorf("%d shards are too many, use at most %d", opts.Shards, maxShards)
	}
	co, err := rueidis.ParseURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("the Redis URL cannot be read, write redis://host:port: %w", err)
	}
	co.DisableCache = true
	co.DisableRetry = true // whoever calls retries, and knows that he does
	client, err := rueidis.NewClient(co)
	if err != nil {
		return nil, fmt.Errorf("cannot reach Redis at %s, is it running? %w", strings.Join(co.InitAddress, ", "), err)
	}
	var id [8]byte
	rand.Read(id[:])
	s := &Store{
		client: client, opts: opts, addr: strings.Join(co.InitAddress, ", "), log: opts.Logger,
		self: hex.EncodeToString(id[:]), cache: newCache(opts.SeenCache), wake: make(chan struct{}, 1),
		on: make(map[string]bool),
	}
	if opts.ReadOnly {
		err = s.readLayout(ctx)
	} else {
		err = s.checkServer(ctx)
	}
	for i := range s.opts.Shards {
		s.tags = append(s.tags, opts.Prefix+"{s"+strconv.Itoa(i)+"}")
	}
	s.sessions = make([]session, len(s.tags))
	if err == nil && !opts.ReadOnly {
		err = s.checkLayout(ctx)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	listen, stop := context.WithCancel(context.Background())
	s.stop = stop
	if !opts.Exclusive && !opts.ReadOnly {
		s.listening.Go(func() { s.listen(listen) })
	}
	return s, nil
}

// checkServer refuses a Redis that would forget without anybody noticing, and
// warns of one that loses all, or a second, with a crash.
func (s *Store) checkServer(ctx context.Context) error {
	for addr, node := range s.client.Nodes() {
		conf, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendonly", "appendfsync", "maxmemory", "maxmemory-policy", "set-max-intset-entries").Build()).AsStrMap()
		if err != nil {
			if _, refused := rueidis.IsRedisErr(err); !refused {
				return s.explain(err)
			}
			s.log.Warn("redis does not show its configuration; see that appendonly is yes, appendfsync always and maxmemory-policy noeviction", "redis", addr, "error", err)
			continue
		}
		if conf["maxmemory"] != "0" && conf["maxmemory-policy"] != "noeviction" {
			return fmt.Errorf("redis at %s throws keys away when it is full (maxmemory-policy %s), and a crawl would forget pages: set maxmemory-policy noeviction", addr, conf["maxmemory-policy"])
		}
		switch {
		case conf["appendonly"] != "yes":
			s.volatile = true
			s.log.Warn("redis keeps no log of its writes: crawls that run when it stops or crashes will fail; set appendonly yes", "redis", addr)
		case conf["appendfsync"] != "always":
			s.log.Warn("redis syncs its log only now and then: if its machine crashes, links found in the last second may be lost with their pages acknowledged; set appendfsync always",
				"redis", addr, "appendfsync", conf["appendfsync"])
		}
		if n, err := strconv.Atoi(conf["set-max-intset-entries"]); err == nil && n < 512 {
			s.log.Warn("redis keeps only small integer sets packed, so seen URLs take several times the memory; set set-max-intset-entries 512", "redis", addr, "set-max-intset-entries", n)
		}
	}
	return nil
}

// checkLayout writes or compares what may never change, and reads the clocks.
func (s *Store) checkLayout(ctx context.Context) error {
	want := fmt.Sprintf("format %d shards %d", formatVersion, len(s.tags))
	key := s.key(0, "layout")
	if err := s.client.Do(ctx, s.client.B().Setnx().Key(key).Value(want).Build()).Error(); err != nil {
		return s.explain(err)
	}
	got, err := s.client.Do(ctx, s.client.B().Get().Key(key).Build()).ToString()
	if err != nil {
		return s.explain(err)
	}
	if got != want {
		return fmt.Errorf("the frontier in Redis under %q has %s, this process wants %s: use the same number of shards everywhere, or another prefix", s.opts.Prefix, got, want)
	}
	cmds := make(rueidis.Commands, len(s.tags))
	for i := range cmds {
		cmds[i] = s.client.B().Hget().Key(s.key(i, "m")).Field("clock").Build()
	}
	for _, r := range s.client.DoMulti(ctx, cmds...) {
		clock, err := r.AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return s.explain(err)
		}
		s.saw(clock)
	}
	return nil
}

// saw keeps our clock ahead of every shard's.
func (s *Store) saw(clock int64) {
	for {
		old := s.clock.Load()
		if clock <= old || s.clock.CompareAndSwap(old, clock) {
			return
		}
	}
}

// begin enters the store; the caller leaves with s.ops.Done.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.ops.Add(1)
	return nil
}

// Close waits for the calls that are inside and disconnects. Leases stay until
// they are released or expire.
func (s *Store) Close() error {
	s.life.Lock()
	if s.closed {
		s.life.Unlock()
		return nil
	}
	s.closed = true
	s.life.Unlock()
	s.stop()
	s.listening.Wait()
	s.ops.Wait()
	s.client.Close()
	return nil
}

// Calls counts the scripts run so far.
func (s *Store) Calls() int64 { return s.calls.Load() }

var (
	_ frontier.Store  = (*Store)(nil)
	_ frontier.Leases = (*Store)(nil)
)
