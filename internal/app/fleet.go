package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/fleet"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/frontier/redisstore"
)

// openFrontier opens the frontier in the data directory, or the one that is
// shared.
func (a *App) openFrontier(s Settings) (lookups func() (used, limit int64), err error) {
	if url := s.Backends.Redis(); url != "" {
		store, err := redisstore.Open(context.Background(), redisstore.Options{URL: url, Prefix: s.Backends.RedisPrefix, Logger: s.Log})
		if err != nil {
			return nil, fmt.Errorf("--redis-url: %w", err)
		}
		a.Store = store // not before: a nil one in the interface would be closed
		return nil, nil
	}
	store, err := pebblestore.Open(filepath.Join(s.Dir, FrontierDir), pebblestore.Options{
		SeenInMemory: s.Machine.SeenURLs, LookupLimit: s.Machine.SeenLookups, Logger: s.Log,
	})
	if err != nil {
		return nil, err
	}
	a.Store = store
	return store.Lookups, nil
}

// joinFleet makes this process a worker among others if the frontier is shared.
func (a *App) joinFleet(cfg *crawl.Config, s Settings) {
	board, ok := a.Store.(frontier.Board)
	if !ok {
		return
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	a.Fleet = fleet.New(fleet.Config{Board: board, Ledger: a.Ledger, Log: s.Log, Now: cfg.Now,
		Worker: workerName(host), Host: host, TTL: s.Backends.LeaseTTL})
	cfg.Fleet = a.Fleet
}

// workerName is new at each start: what a dead process left behind is not
// taken for ours.
func workerName(host string) string {
	b := make([]byte, 4)
	rand.Read(b)
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(b))
}

// Drain begins no more requests and waits until those in flight have ended, or
// the grace is over.
func (a *App) Drain(grace time.Duration) {
	s := a.Engine.Scheduler()
	var groups []string
	for _, l := range s.Held() {
		groups = append(groups, l.Group)
	}
	s.Drain(groups, a.Engine.Now())
	end := time.Now().Add(grace)
	for s.InFlight() > 0 && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
}

// Workers lists who is in a fleet, as of their last heartbeats.
func Workers(ctx context.Context, b config.Backends) ([]frontier.Worker, error) {
	s, err := redisstore.Open(ctx, redisstore.Options{URL: b.Redis(), Prefix: b.RedisPrefix})
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	defer s.Close()
	// To leave without having been there changes nothing, and returns the list.
	roll, err := s.Heartbeat(ctx, frontier.Worker{ID: "a visitor"}, 0)
	return roll.Live, err
}
