package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tiptoe/internal/api"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/explain"
	"tiptoe/internal/fleet"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/frontier/redisstore"
	"tiptoe/internal/ledger/postgres"
)

// openFrontier opens the frontier in the data directory, or the one that is
// shared.
func (a *App) openFrontier(s Settings) (lookups func() (used, limit int64), err error) {
	if url := s.Backends.Redis(); url != "" {
		store, err := redisstore.Open(context.Background(), redisstore.Options{URL: url, Prefix: s.Backends.RedisPrefix, Logger: s.Log,
			Patience: patience(s.Backends.LeaseTTL)})
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

// patience is how long a host that came free is left to the worker that should
// have it. That one may be gone, too, and a host must be fetched again a lease
// and a heartbeat after its worker died.
func patience(lease time.Duration) time.Duration {
	if lease <= 0 {
		lease = fleet.DefaultTTL
	}
	return min(lease/6, 5*time.Second)
}

// joinFleet makes this process a worker among others if the frontier is shared.
func (a *App) joinFleet(cfg *crawl.Config, s Settings) error {
	board, ok := a.Store.(*redisstore.Store)
	if !ok {
		return nil
	}
	ctx := context.Background()
	own, err := terms(ctx, a.Ledger)
	if err == nil {
		own.Grouping, err = s.Web.Grouping()
	}
	if err != nil {
		return err
	}
	self := frontier.Worker{ID: a.name, Host: a.machine, Started: a.opened}
	if err := board.Agree(ctx, self, s.Backends.LeaseTTL, own); err != nil {
		return err
	}
	a.unlist = func() { // somebody who never worked is not missed
		ctx, cancel := context.WithTimeout(context.Background(), crawl.Grace)
		defer cancel()
		board.Heartbeat(ctx, frontier.Worker{ID: a.name}, 0)
	}
	a.Fleet = fleet.New(fleet.Config{Board: board, Ledger: a.Ledger, Log: s.Log, Now: cfg.Now,
		Worker: a.name, Host: a.machine, TTL: s.Backends.LeaseTTL})
	cfg.Fleet = a.Fleet
	return nil
}

// terms are what a process with this ledger, and no groups of its own, has to
// have in common with a fleet. A ledger that is not there yet is none.
func terms(ctx context.Context, l Ledger) (t redisstore.Terms, err error) {
	if db, ok := l.(*postgres.Ledger); ok {
		t.Ledger, err = db.Identity(ctx)
	}
	return t, err
}

func machineName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// roster is everybody who fetches; a server alone is one worker.
func (sv *Service) roster() api.Roster {
	if f := sv.Fleet; f != nil {
		list, at := f.Workers()
		return api.Roster{Self: f.Worker(), Workers: list, At: at, Lease: f.TTL(), Waiting: f.Waiting()}
	}
	h := sv.Engine.View().Hosts
	self := frontier.Worker{ID: sv.name, Host: sv.machine, Started: sv.opened, Hosts: h.Ready + h.Running + h.Waiting + h.Parked, Rate: sv.Engine.Rate(), InFlight: sv.Engine.Scheduler().InFlight()}
	return api.Roster{Self: sv.name, Workers: []frontier.Worker{self}, At: sv.Engine.Now()}
}

// workerName is new at each start: what a dead process left behind is not
// taken for ours.
func workerName(host string) string {
	b := make([]byte, 4)
	rand.Read(b)
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(b))
}

// Unsupervised refuses a crawl that another process of the fleet watches over:
// two would both decide how it ends.
func (a *App) Unsupervised(ctx context.Context, crawl int64) error {
	store, ok := a.Store.(*redisstore.Store)
	if !ok {
		return nil // the data directory's lock says it
	}
	on, err := crewOf(store)(ctx, crawl)
	if err != nil || !on.Supervised {
		return err
	}
	return fmt.Errorf("crawl %d is running: worker %s watches over it; stop it there first. If that one was killed, try again when its leases have expired (30 s, or --lease-ttl)", crawl, on.By)
}

// crewOf finds out who works for a crawl, without taking part.
func crewOf(store *redisstore.Store) func(ctx context.Context, crawl int64) (explain.Crew, error) {
	return func(ctx context.Context, crawl int64) (c explain.Crew, err error) {
		crawls, err := store.Crawls(ctx)
		if err != nil {
			return c, err
		}
		live, err := store.Live(ctx)
		if err != nil {
			return c, err
		}
		for _, a := range crawls {
			if a.ID == crawl {
				c.By, c.Held = a.By, a.Held
			}
		}
		c.Workers = len(live)
		for _, w := range live {
			c.Supervised = c.Supervised || w.ID == c.By
			if w.Waiting != "" {
				c.Trouble = w.ID + ": " + w.Waiting
			}
		}
		return c, nil
	}
}

// Drain begins no more requests and waits until those in flight have ended, or
// the grace is over.
func (a *App) Drain(grace time.Duration) {
	s := a.Engine.Scheduler()
	a.Fleet.Leaving()
	end := time.Now().Add(grace)
	for s.InFlight() > 0 && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
}

// Workers lists who is in a fleet, as of their last heartbeats.
func Workers(ctx context.Context, b config.Queue) ([]frontier.Worker, error) {
	s, err := redisstore.Open(ctx, redisstore.Options{URL: b.Redis(), Prefix: b.RedisPrefix, ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	defer s.Close()
	return s.Live(ctx)
}
