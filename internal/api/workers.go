package api

import (
	"context"
	"fmt"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// Roster is who fetches, as one server knows it.
type Roster struct {
	Self    string            // the worker that this server is
	Workers []frontier.Worker // as their heartbeats said
	At      time.Time         // when they were read; zero: the store has never answered
	Lease   time.Duration     // after which a silent worker is forgotten; 0: a server alone
	Waiting string            // why nothing newer is known; empty while all is well
}

// silentAfter is how much of a lease a worker may say nothing for: heartbeats
// come every tenth of it, and are read as often.
const silentAfter = 2

func (a *API) workerRoutes() {
	handle(a, route{method: "GET", path: "/v1/workers", id: "listWorkers", tag: "operator", scope: ledger.ScopeOperator,
		summary: "Every process that fetches",
		doc: "Of a fleet, all its servers, workers and crawls of the command line, as of their last heartbeats; a server alone lists itself. " +
			"A worker that stops leaves the list at once, one that was killed or froze is silent first and leaves it after a lease.",
		errors: []int{404}}, a.listWorkers)
}

// Workers is the list of them, and how good it is.
type Workers struct {
	Items   []Worker `json:"items" nullable:"false"`
	Next    *string  `json:"next" doc:"Null: the list is whole."`
	At      *Stamp   `json:"at" nullable:"true" doc:"When the fleet's store gave this list; null if it has not yet answered."`
	Waiting *string  `json:"waiting" doc:"Why the list is no newer; null while all is well."`
	Lease   *float64 `json:"lease_seconds" doc:"After so long a silent worker is forgotten and others take its hosts; null for a server alone."`
}

// Worker is one process that fetches.
type Worker struct {
	ID          string  `json:"id" doc:"New at each start."`
	Machine     string  `json:"machine"`
	Self        bool    `json:"self" doc:"It is the server that answers; of itself it knows how it is now."`
	State       string  `json:"state" enum:"live,waiting,silent" doc:"waiting fetches nothing and says why; silent has missed its heartbeats: it hangs, is cut off or was killed."`
	StartedAt   *Stamp  `json:"started_at" nullable:"true"`
	HeardAt     *Stamp  `json:"heard_at" nullable:"true" doc:"Its last heartbeat: what is said of it is as old as that."`
	Hosts       int     `json:"hosts" doc:"Hosts, or groups of hosts, that it holds."`
	InFlight    int64   `json:"in_flight" doc:"Its requests on the wire."`
	PagesPerSec float64 `json:"pages_per_second"`
	Waiting     *string `json:"waiting" doc:"Why it fetches nothing."`
}

type workersOut struct{ Body Workers }

func (a *API) listWorkers(context.Context, *caller, *none) (*workersOut, error) {
	if a.cfg.Workers == nil {
		return nil, unavailable("the list of workers")
	}
	return &workersOut{workersView(a.cfg.Workers(), a.cfg.Now())}, nil
}

func workersView(r Roster, now time.Time) Workers {
	v := Workers{Items: make([]Worker, 0, len(r.Workers)), At: at(r.At), Waiting: text(r.Waiting), Lease: known(r.Lease.Seconds())}
	if old := now.Sub(r.At); v.Waiting == nil && !r.At.IsZero() && r.Lease > 0 && old > r.Lease/silentAfter {
		v.Waiting = text(fmt.Sprintf("the fleet's store has not answered for %s", old.Round(time.Second)))
	}
	for _, w := range r.Workers {
		one := Worker{ID: w.ID, Machine: w.Host, Self: w.ID == r.Self, State: "live", StartedAt: at(w.Started), HeardAt: at(now),
			Hosts: w.Hosts, InFlight: w.InFlight, PagesPerSec: round(w.Rate), Waiting: text(w.Waiting)}
		if !one.Self {
			one.HeardAt = at(r.At.Add(-w.Silent))
		}
		switch {
		case !one.Self && w.Silent > r.Lease/silentAfter:
			one.State = "silent"
		case w.Waiting != "":
			one.State = "waiting"
		}
		v.Items = append(v.Items, one)
	}
	return v
}
