// Package app answers: which parts make a running tiptoe?
//
// It is the only place where concrete stores, the network and the clock are
// put together, from config alone; nothing in the rooms below knows which
// ledger or frontier it runs on. Tests start the whole program through it.
//
// Open leaves nothing half open when it fails. Close flushes in the order
// intake, ledger, frontier; after kill -9 a later Open finds all that was
// acknowledged.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/cookiejar"
	"os"
	"runtime"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/control"
	"tiptoe/internal/crawl"
	"tiptoe/internal/fetch"
	"tiptoe/internal/fleet"
	"tiptoe/internal/frontier"
	"tiptoe/internal/group"
	"tiptoe/internal/ledger/postgres"
	"tiptoe/internal/politeness"
)

// Names inside a data directory.
const (
	LedgerFile  = "ledger.db"
	FrontierDir = "frontier"
)

// App is an open data directory with an engine over it.
type App struct {
	Dir    string
	Ledger Ledger
	Store  frontier.Store
	Fleet  *fleet.Manager // nil: this process is alone
	Client *fetch.Client
	Engine *crawl.Engine
	Log    *slog.Logger

	name, machine string // of this process, new at each start, and where it runs
	opened        time.Time

	unlist func() // from the fleet's list; nil when Fleet does it

	stopProfiles func()
	control      *control.Server
}

// Settings is all that Open needs.
type Settings struct {
	Dir     string
	Machine config.Machine
	Web     config.Web
	Log     *slog.Logger

	Backends config.Backends // where many machines meet; empty: all is in Dir
	Meter    crawl.Meter     // optional
}

func (s *Settings) results() config.Results {
	return config.Results{Data: config.Data{DataDir: s.Dir}, Database: s.Backends.Database}
}

// Clock returns a clock whose times are UTC wall times that only go forward:
// the wall is read once, then the monotonic clock counts.
func Clock() func() time.Time {
	start := time.Now()
	wall := start.Round(0).UTC()
	return func() time.Time { return wall.Add(time.Since(start)) }
}

// Open opens or creates a data directory.
func Open(s Settings) (_ *App, err error) {
	a := &App{Dir: s.Dir, Log: s.Log, machine: machineName()}
	a.name = workerName(a.machine)
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if b := &s.Backends; b.DatabaseURL != "" && b.Redis() == "" && Exists(s.Dir) {
		// Crawls of two ledgers have the same numbers; in one frontier they
		// would take each other's queues.
		return nil, fmt.Errorf("--database-url: %s holds crawls in a ledger of its own, and the queues of both would get mixed up; name another --data-dir", s.Dir)
	}
	existed := Exists(s.Dir) || s.Backends.DatabaseURL != ""
	if a.Client, err = newClient(s); err != nil {
		return nil, err
	}
	if s.Machine.Pprof != "" {
		if a.stopProfiles, err = serveProfiles(s.Machine.Pprof); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	// The frontier's lock comes first: two crawls must not share a folder.
	lookups, err := a.openFrontier(s)
	if err != nil {
		return nil, err
	}
	if a.Ledger, err = openLedger(context.Background(), s.results()); err != nil {
		return nil, err
	}
	if db, ok := a.Ledger.(*postgres.Ledger); ok {
		db.Log(s.Log)
	}
	now := Clock()
	a.opened = now()
	cfg := crawl.Config{
		Store: a.Store, Ledger: a.Ledger, Fetcher: a.Client, Log: s.Log, Now: now, Rand: rand.Float64,
		Workers: s.Machine.Workers, Shards: s.Machine.Shards, Parsers: s.Machine.Parsers, RobotSlots: s.Machine.RobotsSlots,
		MemoryURLs: s.Machine.FrontierURLs, ReadyHosts: s.Machine.ReadyHosts, Governor: s.Machine.Governor,
		Meter: s.Meter, Lookups: lookups, Bodies: a.Client.Bodies,
	}
	if cfg.Shards <= 0 {
		cfg.Shards = runtime.GOMAXPROCS(0)
	}
	if existed {
		cfg.RestartedAt = now()
		d := s.Web.EffectiveDelay()
		cfg.RestartRules = politeness.Rules{DelayMin: d.Min, DelayMax: d.Max}
	}
	if cfg.GroupOf, err = groupOf(s.Web, a.Client); err != nil {
		return nil, err
	}
	if err := a.joinFleet(&cfg, s); err != nil {
		return nil, err
	}
	a.Engine = crawl.New(cfg)
	if a.Fleet != nil {
		a.Fleet.Bind(a.Engine)
	}
	a.serveControl()
	return a, nil
}

// groupOf is who says what is paced together; nil if every host is by itself.
func groupOf(w config.Web, c *fetch.Client) (func(string) string, error) {
	named, err := w.NamedGroups()
	if err != nil {
		return nil, err
	}
	switch {
	case w.Group == "ip":
		return group.New(named, c.Addrs).Of, nil
	case len(named) > 0:
		return group.New(named, nil).Of, nil
	}
	return nil, nil
}

func newClient(s Settings) (*fetch.Client, error) {
	cfg := fetch.Config{
		UserAgent: s.Web.UserAgent, Timeout: s.Web.Timeout, MaxBody: int64(s.Web.MaxBody),
		BodyBytesInFlight: int64(s.Machine.BodyBytes), InsecureTLS: s.Web.Insecure, DisableHTTP2: !s.Web.HTTP2,
		AllowPrivate: s.Web.AllowPrivate, Proxy: s.Web.Proxy,
		MaxIdle: max(s.Machine.Workers, 64), MaxIdlePerHost: max(s.Web.EffectivePerHost(), 4),
	}
	for _, r := range s.Web.Resolve {
		o, err := fetch.ParseResolve(r)
		if err != nil {
			return nil, fmt.Errorf("--resolve: %w", err)
		}
		cfg.Resolve = append(cfg.Resolve, o)
	}
	if s.Web.Cookies {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		cfg.Cookies = jar
	}
	c, err := fetch.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up requests: %w", err)
	}
	return c, nil
}

// Close closes what is open, in order.
func (a *App) Close() error {
	var errs []error
	if a.control != nil {
		errs = append(errs, a.control.Close())
	}
	if a.Client != nil {
		a.Client.Close()
	}
	if a.Ledger != nil {
		errs = append(errs, a.Ledger.Close())
	}
	if a.unlist != nil {
		a.unlist()
	}
	if a.Store != nil {
		errs = append(errs, a.Store.Close())
	}
	if a.stopProfiles != nil {
		a.stopProfiles()
	}
	return errors.Join(errs...)
}

// Serve runs the engine, and this process's part in its fleet, until ctx ends
// or a store fails.
func (a *App) Serve(ctx context.Context) error {
	if a.Fleet == nil {
		return a.Engine.Run(ctx)
	}
	a.unlist = nil
	part, leave := context.WithCancel(context.WithoutCancel(ctx))
	left, shown := make(chan error, 1), make(chan struct{})
	go func() { left <- a.Fleet.Run(part) }()
	go func() {
		defer close(shown)
		a.showEngine(part)
	}()
	err := a.Engine.Run(ctx)
	leave() // when nothing is in flight any more
	<-shown
	return errors.Join(err, <-left)
}
