package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"tiptoe/internal/api"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/dashboard"
	"tiptoe/internal/explain"
	"tiptoe/internal/export"
	"tiptoe/internal/frontier"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/metrics"
)

// DefaultTenant is who the operator is when it orders crawls itself.
const DefaultTenant = "default"

// ServiceSettings are what a service is built from.
type ServiceSettings struct {
	Settings
	Service config.Service
	Version string

	// Reload reads the caps again, from wherever they came from.
	Reload func() (config.Caps, error)
}

// Service is a whole crawl service: engine, jobs, API, dashboard.
type Service struct {
	*App
	Jobs *job.Service
	API  *api.API

	settings ServiceSettings
	listener net.Listener
	server   *http.Server
	metrics  *metrics.Metrics
	caps     atomic.Pointer[config.Caps]
	up       atomic.Bool
	others   others
}

// OpenService puts a service together and begins to listen. Nothing is served
// before Run.
func OpenService(s ServiceSettings) (*Service, error) {
	sv, err := openParts(s)
	if err != nil {
		return nil, err
	}
	sv.offer(sv.apiConfig())
	return sv, nil
}

// openParts opens everything but the API.
func openParts(s ServiceSettings) (_ *Service, err error) {
	sv := &Service{settings: s, metrics: metrics.New(s.Version)}
	sv.caps.Store(&s.Service.Caps)
	s.Meter = sv.metrics
	// The address is the cheapest thing to fail, so it comes first.
	if sv.listener, err = net.Listen("tcp", s.Service.Listen); err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	defer func() {
		if err != nil {
			sv.listener.Close()
			if sv.App != nil {
				sv.App.Close()
			}
		}
	}()
	if sv.App, err = Open(s.Settings); err != nil {
		return nil, err
	}
	builder := &orders{web: s.Web, caps: func() config.Caps { return *sv.caps.Load() }}
	window, _ := sv.Store.(job.Window) // a fleet's
	sv.Jobs, err = job.New(job.Config{
		Store: sv.Ledger, Crawls: sv.Ledger, Engine: sv.Engine, Builder: builder, Log: s.Log, Now: Clock(),
		Settings: sv.readCaps, Post: sv.Client.Post, Meter: sv.metrics, Shared: sv.Fleet != nil, Window: window,
		Drop: func(ctx context.Context, crawl int64) error { return sv.Store.DropCrawl(ctx, frontier.CrawlID(crawl)) },
	})
	if err != nil {
		return nil, err
	}
	sv.watch()
	return sv, nil
}

// offer builds the API over the parts.
func (sv *Service) offer(c api.Config) {
	sv.API = api.New(c)
	sv.server = sv.API.Server()
}

// readCaps reads the caps at a reload; the first time those of the start.
func (sv *Service) readCaps() (limits.Safety, []limits.Plan, error) {
	caps := *sv.caps.Load()
	if sv.Jobs != nil && sv.settings.Reload != nil {
		var err error
		if caps, err = sv.settings.Reload(); err != nil {
			return limits.Safety{}, nil, err
		}
	}
	safety, plans, err := caps.Limits()
	if err == nil {
		sv.caps.Store(&caps)
	}
	return safety, plans, err
}

func (sv *Service) watch() {
	sv.metrics.WatchEngine(func() (crawl.EngineView, bool) { return sv.Engine.View(), sv.up.Load() })
	sv.metrics.WatchQueue(sv.Jobs.Contest)
	sv.metrics.WatchDisk(sv.Dir)
}

func (sv *Service) apiConfig() api.Config {
	s := &sv.settings
	host, _, _ := net.SplitHostPort(s.Service.Listen)
	ip := net.ParseIP(host)
	return api.Config{
		Service: sv.Jobs, Store: sv.Ledger, Ledger: sv.Ledger, Log: s.Log, Version: s.Version,
		Explain: func(ctx context.Context, crawl int64, url string, names bool) (any, error) {
			x, err := explain.Explain(ctx, sv.sources(), url, crawl)
			if errors.Is(err, explain.ErrBadURL) {
				return nil, &job.BadRequest{Field: "url", Text: err.Error()}
			}
			if err == nil && !names {
				x.WithoutNames()
			}
			return x, err
		},
		Export: sv.export, Engine: sv.engine, Workers: sv.roster, Metrics: sv.metrics.Handler(), Ready: sv.ready,
		Observe: sv.metrics.Observe, Crawling: sv.Engine.Crawling, Dashboard: dashboard.Handler(),
		Loopback: host == "localhost" || ip != nil && ip.IsLoopback(), Hosts: s.Service.AllowedHosts,
		MaxBody: int64(s.Service.APIMaxBody), RatePerSecond: s.Service.APIRate, RateBurst: s.Service.APIBurst,
		MaxRequests: s.Service.APIRequests, MaxStreams: s.Service.APIStreams, Fetch: sv.Jobs.Fetch,
	}
}

func (sv *Service) export(ctx context.Context, w io.Writer, format string, crawl int64) (err error) {
	switch format {
	case "jsonl":
		_, err = export.JSONL(ctx, w, sv.Ledger, crawl, ledger.PageFilter{})
	case "csv":
		_, err = export.CSV(ctx, w, sv.Ledger, crawl, ledger.PageFilter{})
	case "sitemap":
		_, err = export.SitemapTo(ctx, w, sv.Ledger, crawl, ledger.PageFilter{})
	default:
		err = fmt.Errorf("no export as %q", format)
	}
	return err
}

func (sv *Service) engine() api.Engine {
	v := sv.wholeView()
	ms := float64(v.CommitEWMA.Microseconds()) / 1000
	return api.Engine{Workers: sv.settings.Machine.Workers, CommitMS: &ms, Layers: api.LayerViews(v.Layers), Waiting: api.WaitViews(v.Waiting)}
}

// ready says whether orders can be taken and carried out.
func (sv *Service) ready(ctx context.Context) error {
	if !sv.up.Load() {
		return errors.New("the engine is not running")
	}
	_, err := sv.Ledger.Tenant(ctx, DefaultTenant)
	return err
}

// Addr is where the service listens.
func (sv *Service) Addr() string { return sv.listener.Addr().String() }

// FirstKey makes sure that there is a tenant and an operator. The key's text is
// returned when it was made now, which is the only time it is known.
func (sv *Service) FirstKey(ctx context.Context, another bool) (text string, err error) {
	now := time.Now().UTC()
	if err := sv.firstTenant(ctx, now); err != nil {
		return "", err
	}
	keys, err := sv.Ledger.Keys(ctx, DefaultTenant)
	if err != nil || len(keys) > 0 && !another {
		return "", err
	}
	text, k := api.NewKey(DefaultTenant, "operator", []string{ledger.ScopeOperator}, now)
	if err := sv.Ledger.CreateKey(ctx, k); err != nil {
		return "", err
	}
	return text, sv.Ledger.LogAction(ctx, ledger.Action{At: now, Action: "key.create", Target: k.ID, Detail: `{"by":"command line","scopes":["operator"]}`})
}

func (sv *Service) firstTenant(ctx context.Context, now time.Time) error {
	err := sv.Ledger.CreateTenant(ctx, ledger.Tenant{ID: DefaultTenant, Name: "Default", Plan: "enterprise", Weight: 1,
		WebhookSecret: api.NewSecret(), Created: now})
	if errors.Is(err, ledger.ErrExists) {
		return nil
	}
	return err
}

// shutdownGrace is what requests to the API have to end in.
const shutdownGrace = 5 * time.Second

// Run serves until ctx ends or a part fails. It stops in order: no new
// requests, jobs to a point from which they go on, the engine, the files.
func (sv *Service) Run(ctx context.Context) error {
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	jobsCtx, stopJobs := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJobs()
	failed := make(chan error, 3)
	engine, jobs, web := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(engine)
		sv.up.Store(true)
		err := sv.App.Serve(engineCtx)
		sv.up.Store(false)
		if err != nil {
			failed <- fmt.Errorf("the engine stopped: %w", err)
		}
	}()
	go func() {
		defer close(jobs)
		if err := sv.Jobs.Run(jobsCtx); err != nil {
			failed <- err
		}
	}()
	go func() {
		defer close(web)
		if err := sv.server.Serve(sv.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("the API stopped: %w", err)
		}
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if serr := sv.server.Shutdown(grace); serr != nil {
		sv.server.Close()
	}
	<-web
	stopJobs()
	<-jobs
	stopEngine()
	<-engine
	return err
}
