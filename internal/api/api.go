package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tiptoe/internal/job"
)

// Config is what an API is built from.
type Config struct {
	Service Service
	Store   Store
	Ledger  Ledger
	Log     *slog.Logger
	Now     func() time.Time // default time.Now
	Version string           // of the program

	// Optional. A route whose function is missing answers 404.
	Explain   Explain
	Export    Export
	Fetch     Fetch
	Engine    func() Engine                   // the machine as a whole
	Workers   func() Roster                   // everybody who fetches
	Metrics   http.Handler                    // Prometheus text
	Ready     func(ctx context.Context) error // nil is always ready
	Observe   Observe
	Crawling  func() bool  // a crawl runs in this process; nil is never
	Dashboard http.Handler // everything outside of the API

	// OneCrawl says that this is the API of one crawl on the command line,
	// which takes no orders.
	OneCrawl bool

	// Loopback says that the port is bound to loopback: requests must then
	// name localhost, 127.0.0.1, [::1] or one of Hosts, or a page on the web
	// could reach the port under a name of its own.
	Loopback bool
	Hosts    []string

	// Limits; the zero of each is its default.
	MaxBody       int64         // bytes of a request's body: 1 MiB
	RatePerSecond float64       // requests of one key: 50
	RateBurst     int           // 100
	MaxRequests   int           // at once: 256
	MaxStreams    int           // event streams and exports at once, of one key: 20
	AllStreams    int           // of everybody: 1000
	Timeout       time.Duration // of a request that is no stream: 60 s
	WriteTimeout  time.Duration // for the client to take one piece of a stream: 30 s
	Beat          time.Duration // between comments on a quiet event stream: 15 s
	LiveEvery     time.Duration // between live events: 1 s
}

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&c.Timeout, time.Minute)
	def(&c.WriteTimeout, 30*time.Second)
	def(&c.Beat, 15*time.Second)
	def(&c.LiveEvery, time.Second)
	num(&c.RateBurst, 100)
	num(&c.MaxRequests, 256)
	num(&c.MaxStreams, 20)
	num(&c.AllStreams, 1000)
	if c.MaxBody <= 0 {
		c.MaxBody = 1 << 20
	}
	if c.RatePerSecond <= 0 {
		c.RatePerSecond = 50
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(string, string, int, time.Duration) {}
	}
}

// API is an http.Handler for a whole port.
type API struct {
	cfg     Config
	log     *slog.Logger
	huma    huma.API
	mux     *http.ServeMux
	routes  map[string]*route // by the mux's pattern
	keys    *keyring
	rates   *rates
	slots   *slots // of requests
	streams *slots // of event streams and exports
	turns   *turns
	series  *seriesCache
	hosts   *hostLists

	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// New builds the API. Close ends what it began.
func New(cfg Config) *API {
	cfg.defaults()
	a := &API{
		cfg: cfg, log: cfg.Log, mux: http.NewServeMux(), routes: make(map[string]*route),
		keys:    newKeyring(cfg.Store, cfg.Now),
		rates:   newRates(cfg.RatePerSecond, cfg.RateBurst, cfg.Now),
		slots:   newSlots(cfg.MaxRequests, cfg.MaxRequests),
		streams: newSlots(cfg.AllStreams, cfg.MaxStreams),
		turns:   turnsHere(cfg.Crawling),
		series:  newSeriesCache(),
		hosts:   newHostLists(cfg.Ledger),
		stop:    make(chan struct{}),
	}
	a.huma = humago.New(a.mux, a.document())
	a.jobRoutes()
	a.pageRoutes()
	a.streamRoutes()
	a.domainRoutes()
	a.scheduleRoutes()
	a.accountRoutes()
	a.keyRoutes()
	a.tenantRoutes()
	a.systemRoutes()
	a.workerRoutes()
	a.wg.Go(func() {
		a.keys.keepTouching(a.stop, func(err error) { a.log.Warn("api: " + err.Error()) })
	})
	return a
}

// Close ends every event stream and waits for what the API does beside its
// requests. Requests after it are still answered.
func (a *API) Close() {
	a.once.Do(func() { close(a.stop) })
	a.wg.Wait()
}

// OpenAPI is the description of the API in YAML.
func (a *API) OpenAPI() ([]byte, error) { return a.huma.OpenAPI().YAML() }

// Server is an http.Server for the API: it bounds how long a client may take
// over its headers and how large they are. What comes after the headers the
// API bounds itself, request by request, as event streams need no end. Its
// Shutdown ends them.
func (a *API) Server() *http.Server {
	s := &http.Server{
		Handler: a, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(a.Close)
	return s
}

// ErrNoSlot says that a page's host had no place for a request in time.
var ErrNoSlot error = job.ErrNoSlot

// document is the OpenAPI document without its operations.
func (a *API) document() huma.Config {
	c := huma.DefaultConfig("tiptoe", "1")
	c.CreateHooks = nil // no $schema in answers
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	c.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{finishProblem}
	c.Info.Description = strings.TrimSpace(description)
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.Servers = []*huma.Server{{URL: "/", Description: "The tiptoe that serves this document"}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", BearerFormat: "tt_…", Description: "An API key: `Authorization: Bearer tt_…`. " +
			"Scopes: read < write < operator; each operation says which it needs."},
	}
	c.Tags = tags
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	return c
}

const description = `
The API of a tiptoe service: order crawls, watch them, read what they found and why.

- Every route but health and readiness needs a key: ` + "`Authorization: Bearer tt_…`" + `.
- Errors are RFC 9457 problems (application/problem+json); ` + "`detail`" + ` says what to do.
- Times are RFC 3339 in UTC with milliseconds. What is not known is null.
- Lists take ` + "`limit` and `cursor`" + ` and answer with ` + "`items` and `next`" + `; the last page has a next of null.
- An id of somebody else and an id that never was give the same 404.
- More than the allowed requests a second give 429 with Retry-After.
`

var tags = []*huma.Tag{
	{Name: "jobs", Description: "Order a crawl and steer it."},
	{Name: "results", Description: "What a job found, and why."},
	{Name: "live", Description: "A job while it runs."},
	{Name: "domains", Description: "What was learned about hosts."},
	{Name: "schedules", Description: "Orders that repeat."},
	{Name: "account", Description: "Limits, usage, plans and keys."},
	{Name: "operator", Description: "Tenants, their keys, and the service itself."},
	{Name: "system", Description: "Health, and this document."},
}
