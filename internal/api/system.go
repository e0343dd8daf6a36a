package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"tiptoe/internal/ledger"
)

func (a *API) systemRoutes() {
	handle(a, route{method: "GET", path: "/v1/health", id: "health", tag: "system", scope: open,
		summary: "Is the process alive", doc: "Always, when it answers. Also at /healthz."}, a.health)
	handle(a, route{method: "GET", path: "/v1/ready", id: "ready", tag: "system", scope: open,
		summary: "Can it do its work", doc: "503 says what is missing. Also at /readyz."}, a.ready)
	handle(a, route{method: "GET", path: "/v1/engine", id: "getEngine", tag: "system", scope: ledger.ScopeRead,
		summary: "The machine as a whole", doc: "Concurrency layers, what waiting hosts wait for, and the queue of jobs; of a fleet, of all its processes together. It names no host.",
		errors: []int{404}}, a.engine)
	handle(a, route{method: "POST", path: "/v1/reload", id: "reload", tag: "operator", scope: ledger.ScopeOperator, status: 204,
		summary: "Read plans and caps from the configuration again", doc: "Running jobs keep the limits they were given.", errors: []int{409}}, a.reload)

	a.plain(route{method: "GET", path: "/healthz", scope: open}, a.alias("/v1/health"))
	a.plain(route{method: "GET", path: "/readyz", scope: open}, a.alias("/v1/ready"))
	a.plain(route{method: "GET", path: "/v1/metrics", scope: ledger.ScopeOperator}, a.metrics)
	a.plain(route{method: "GET", path: "/metrics", scope: ledger.ScopeOperator}, a.metrics)
	a.plain(route{method: "GET", path: "/v1/openapi.json", scope: ledger.ScopeRead}, a.openapi("application/openapi+json", func() ([]byte, error) {
		return json.Marshal(a.huma.OpenAPI())
	}))
	a.plain(route{method: "GET", path: "/v1/openapi.yaml", scope: ledger.ScopeRead}, a.openapi("application/openapi+yaml", a.OpenAPI))
}

// Health is an answer to somebody who only wants one.
type Health struct {
	Status string `json:"status" example:"ok"`
}

type healthOut struct{ Body Health }

func (a *API) health(context.Context, *caller, *none) (*healthOut, error) {
	return &healthOut{Health{"ok"}}, nil
}

func (a *API) ready(ctx context.Context, _ *caller, _ *none) (*healthOut, error) {
	if a.cfg.Ready != nil {
		if err := a.cfg.Ready(ctx); err != nil {
			a.log.Warn("api: not ready", "error", err)
			return nil, problem(http.StatusServiceUnavailable, "the service cannot work just now: its log says why")
		}
	}
	return &healthOut{Health{"ready"}}, nil
}

// alias answers as another path does.
func (a *API) alias(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, ""
		a.mux.ServeHTTP(w, r)
	}
}

// Engine is the machine as a whole, without the name of any host.
type Engine struct {
	Version     string       `json:"version"`
	Workers     int          `json:"workers" doc:"URLs that the process that answers may have in hand."`
	Layers      []Layer      `json:"layers" nullable:"false" doc:"Of all processes together; of a time and of the busiest host the fullest."`
	Waiting     []WaitReason `json:"waiting" nullable:"false" doc:"Of all processes together."`
	Queue       Queue        `json:"queue"`
	CommitMS    *float64     `json:"commit_ms" doc:"How long the ledger takes for a commit, smoothed; of a fleet, where it takes longest."`
	Processes   int          `json:"processes" doc:"How many fetch: servers, workers and crawls of the command line; 1 for a server alone."`
	Hosts       int          `json:"hosts" doc:"Hosts, or groups of hosts, that all of them hold."`
	InFlight    int64        `json:"in_flight" doc:"Requests of all of them."`
	PagesPerSec float64      `json:"pages_per_second" doc:"Of all of them."`
}

// WaitReason is what some hosts wait for.
type WaitReason struct {
	Reason string `json:"reason"`
	Hosts  int64  `json:"hosts"`
	URLs   int64  `json:"urls"`
}

// Queue is the queue of jobs.
type Queue struct {
	Queued  int `json:"queued"`
	Running int `json:"running"`
	Slots   int `json:"slots" doc:"Jobs that may run at once; 0 is no limit."`
}

type engineOut struct{ Body Engine }

func (a *API) engine(context.Context, *caller, *none) (*engineOut, error) {
	var e Engine
	if a.cfg.Engine != nil {
		e = a.cfg.Engine()
	}
	e.Version = a.cfg.Version
	if a.cfg.Workers != nil {
		for _, w := range workersView(a.cfg.Workers(), a.cfg.Now()).Items {
			if w.State == "silent" {
				continue
			}
			e.Processes, e.Hosts = e.Processes+1, e.Hosts+w.Hosts
			e.InFlight, e.PagesPerSec = e.InFlight+w.InFlight, e.PagesPerSec+w.PagesPerSec
		}
		e.PagesPerSec = round(e.PagesPerSec)
	}
	e.Queue.Queued, e.Queue.Running, e.Queue.Slots = a.cfg.Service.Contest()
	if e.Layers == nil {
		e.Layers = []Layer{}
	}
	if e.Waiting == nil {
		e.Waiting = []WaitReason{}
	}
	return &engineOut{e}, nil
}

func (a *API) reload(ctx context.Context, c *caller, _ *none) (*none, error) {
	if err := a.cfg.Service.Reload(ctx); err != nil {
		return nil, problem(http.StatusConflict, "the configuration was not taken, the old one holds: "+err.Error())
	}
	a.logAction(ctx, c, "config.reload", "", nil)
	return nil, nil
}

func (a *API) metrics(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Metrics == nil {
		writeProblem(w, unavailable("metrics"))
		return
	}
	a.cfg.Metrics.ServeHTTP(w, r)
}

func (a *API) openapi(contentType string, encode func() ([]byte, error)) http.HandlerFunc {
	encode = sync.OnceValues(encode)
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := encode()
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(text)
	}
}
