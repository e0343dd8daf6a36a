package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// Job is a crawl that somebody ordered.
type Job struct {
	ID         string            `json:"id"`
	Tenant     string            `json:"tenant"`
	Type       string            `json:"type" enum:"crawl,warm,command,fetch" doc:"crawl and warm are ordered; command is a crawl on the command line, fetch one page that was fetched now."`
	Status     string            `json:"status" enum:"queued,running,paused,completed,partial,failed,cancelled"`
	Error      *string           `json:"error" doc:"Why it is partial, failed or cancelled."`
	Success    *bool             `json:"success" doc:"Null until it ended."`
	Label      *string           `json:"label"`
	URLs       []string          `json:"urls" nullable:"false"`
	Priority   int               `json:"priority"`
	Profile    *string           `json:"profile"`
	Position   *int              `json:"position" doc:"In the queue, from 1; null if it does not wait."`
	WaitingFor *string           `json:"waiting_for" doc:"What a job waits for that makes no progress."`
	CreatedAt  *Stamp            `json:"created_at"`
	StartedAt  *Stamp            `json:"started_at" nullable:"true" doc:"When it was last given a slot."`
	EndedAt    *Stamp            `json:"ended_at" nullable:"true"`
	UpdatedAt  *Stamp            `json:"updated_at"`
	Limits     *limits.Effective `json:"limits" doc:"What it got of what it asked for, and why. A limit of 0 is none."`
	Pages      PageCost          `json:"pages"`
	Progress   Progress          `json:"progress"`
	Request    *job.Request      `json:"request" doc:"As it was ordered."`
	Webhook    *string           `json:"webhook"`
	Schedule   *string           `json:"schedule" doc:"The schedule that ordered it."`
}

// TransformSchema lets objects be null that may be.
func (Job) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "limits", "request")
}

// PageCost is what a job costs of its tenant's pages.
type PageCost struct {
	Reserved int64 `json:"reserved" doc:"Set aside; 0 once it ended."`
	Spent    int64 `json:"spent"`
}

// Progress is how far a job has come.
type Progress struct {
	ledger.Counters
	Queued      *int64   `json:"queued" doc:"URLs that wait; null unless it runs."`
	InFlight    *int64   `json:"in_flight"`
	PagesPerSec *float64 `json:"pages_per_second"`
	ETA         *float64 `json:"eta_seconds" doc:"Null while it is not known."`
	ETAReason   *string  `json:"eta_reason"`
}

// jobView puts together what the store, the ledger and the running crawl know.
func (a *API) jobView(ctx context.Context, j *ledger.Job) (Job, error) {
	v := Job{
		ID: j.ID, Tenant: j.Tenant, Type: j.Type, Status: string(j.Status), Success: j.Success, URLs: j.Seeds, Priority: j.Priority,
		CreatedAt: at(j.Created), StartedAt: at(j.Granted), EndedAt: at(j.Ended), UpdatedAt: at(j.Updated),
		Pages: PageCost{Reserved: j.Reserved, Spent: j.Spent}, Webhook: text(j.Webhook), Schedule: text(j.Schedule),
	}
	if v.URLs == nil {
		v.URLs = []string{}
	}
	var r job.Request
	if len(j.Request) > 0 && json.Unmarshal(j.Request, &r) == nil {
		v.Request, v.Label, v.Profile = &r, text(r.Label), text(r.Profile)
	}
	var e limits.Effective
	if len(j.Limits) > 0 && json.Unmarshal(j.Limits, &e) == nil {
		if e.Reasons == nil {
			e.Reasons = []limits.Reason{}
		}
		v.Limits = &e
	}
	if j.Status == ledger.Queued {
		if n, ok := a.cfg.Service.Position(j.ID); ok {
			v.Position = &n
		}
	}
	live, running := a.liveOf(ctx, j)
	switch {
	case running:
		v.Progress = liveProgress(&live)
	case j.Crawl != 0:
		c, err := a.cfg.Ledger.Crawl(ctx, j.Crawl)
		if err != nil && !errors.Is(err, ledger.ErrNoCrawl) {
			return v, fmt.Errorf("read crawl of job %s: %w", j.ID, err)
		}
		v.Progress.Counters = c.Counters
	}
	if j.Status.Done() {
		v.Error = text(j.Error)
	} else {
		v.WaitingFor = text(waitingFor(j, v.Position, &live, running))
		if j.Status == ledger.Running && !running && a.cfg.Workers != nil { // why nothing is heard of it
			v.WaitingFor = text(a.cfg.Workers().Waiting)
		}
		v.Pages.Spent = max(j.Spent, v.Progress.Processed)
	}
	return v, nil
}

// stalledRate, in pages a second, tells a job that waits from one that is only
// between two polite requests.
const stalledRate = 0.1

// waitingFor says why a job makes no progress; empty if it does.
func waitingFor(j *ledger.Job, position *int, live *crawl.Status, running bool) string {
	switch {
	case j.Status == ledger.Paused:
		return "to be resumed"
	case j.Error != "":
		return j.Error
	case j.Status == ledger.Queued && position != nil:
		return fmt.Sprintf("a free slot: number %d in the queue", *position)
	case j.Status == ledger.Queued:
		return "a free slot"
	case running && live.Trouble != "":
		return live.Trouble
	case running && live.InFlight == 0 && live.Queued > 0 && live.PagesPerSec < stalledRate:
		return live.Binding
	}
	return ""
}

func liveProgress(s *crawl.Status) Progress {
	p := Progress{Counters: s.Counters, Queued: &s.Queued, InFlight: &s.InFlight, ETAReason: text(s.ETAWhy)}
	rate := round(s.PagesPerSec)
	p.PagesPerSec, p.ETA = &rate, known(round(s.ETA.Seconds()))
	return p
}

// liveOf is the picture of a job that runs now.
func (a *API) liveOf(ctx context.Context, j *ledger.Job) (crawl.Status, bool) {
	if j.Status != ledger.Running { // what another server showed of it may still stand
		return crawl.Status{}, false
	}
	return a.cfg.Service.Live(ctx, j.ID)
}

// Host is one host as a running crawl sees it.
type Host struct {
	Host      string  `json:"host"`
	State     string  `json:"state" enum:"ready,running,waiting,parked,idle"`
	Queued    int64   `json:"queued"`
	InFlight  int     `json:"in_flight"`
	Cap       int     `json:"cap"`
	GapMS     int64   `json:"gap_ms" doc:"Least time between request starts."`
	LearnedMS int64   `json:"learned_ms" doc:"The learned part of it."`
	Until     *Stamp  `json:"until" nullable:"true" doc:"When it wakes up; null if it does not wait for a time."`
	Reason    *string `json:"reason" doc:"Why it waits or is parked."`
	Rate      float64 `json:"requests_per_second"`
	HTTP429   int64   `json:"http_429"`
	Worker    *string `json:"worker" doc:"For operators: the worker of the fleet that holds it; null for a server alone."`
}

func (c *caller) hostView(h crawl.HostStatus) Host {
	v := Host{Host: h.Host, State: h.State, Queued: h.Queued, InFlight: h.InFlight, Cap: h.Cap, GapMS: h.Gap.Milliseconds(),
		LearnedMS: h.Learned.Milliseconds(), Until: at(h.Until), Reason: text(h.Reason), Rate: round(h.Recent), HTTP429: h.HTTP429}
	if c.operator() { // names of machines are nothing for tenants
		v.Worker = text(h.Worker)
	}
	return v
}

func (c *caller) hostViews(hosts []crawl.HostStatus) []Host {
	list := make([]Host, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, c.hostView(h))
	}
	return list
}

// Live is a job while it runs. Hosts and counters are the job's own, layers
// are those of the machines that work for it.
type Live struct {
	Running     bool             `json:"running" doc:"False for a job that does not run: nothing else is known then."`
	At          *Stamp           `json:"at" nullable:"true" doc:"When this was so: of a job that another server of the fleet drives, some seconds ago."`
	Elapsed     float64          `json:"elapsed_seconds"`
	Queued      int64            `json:"queued"`
	InFlight    int64            `json:"in_flight"`
	Uncommitted int64            `json:"uncommitted" doc:"Fetched, not yet written."`
	PagesPerSec float64          `json:"pages_per_second"`
	BytesPerSec float64          `json:"bytes_per_second"`
	Classes     [6]int64         `json:"classes" doc:"Answers: none, 1xx, 2xx, 3xx, 4xx, 5xx."`
	Outcomes    map[string]int64 `json:"outcomes"`
	Progress    Progress         `json:"progress"`
	Hosts       HostCounts       `json:"hosts"`
	Busiest     []Host           `json:"busiest" nullable:"false"`
	Waiting     []Host           `json:"waiting" nullable:"false"`
	Waits       []WaitReason     `json:"waits" nullable:"false" doc:"What its hosts wait for, all of them."`
	ETA         *float64         `json:"eta_seconds"`
	ETAReason   *string          `json:"eta_reason"`
	Binding     *string          `json:"binding" doc:"What most of the waiting work waits for."`
	Layers      []Layer          `json:"layers" nullable:"false"`
}

// HostCounts counts hosts by state.
type HostCounts struct {
	Ready   int `json:"ready"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Parked  int `json:"parked"`
	Idle    int `json:"idle"`
}

// Layer is one concurrency layer as a gauge.
type Layer struct {
	Name  string `json:"name"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
}

func (c *caller) liveView(s *crawl.Status, running bool) Live {
	v := Live{Running: running, Outcomes: map[string]int64{}, Busiest: c.hostViews(s.Busiest), Waiting: c.hostViews(s.Waiting),
		Waits: WaitViews(s.Waits), Layers: LayerViews(s.Layers)}
	if !running {
		return v
	}
	v.At, v.Elapsed, v.Queued, v.InFlight, v.Uncommitted = at(s.At), round(s.Elapsed.Seconds()), s.Queued, s.InFlight, s.Uncommitted
	v.PagesPerSec, v.BytesPerSec, v.Classes = round(s.PagesPerSec), round(s.BytesPerSec), s.StatusClasses
	for o, n := range s.Outcomes {
		v.Outcomes[o.String()] = n
	}
	v.Progress = liveProgress(s)
	v.ETA, v.ETAReason, v.Binding = v.Progress.ETA, v.Progress.ETAReason, text(s.Binding)
	v.Hosts = HostCounts(s.Hosts)
	return v
}

// LayerViews shows the engine's layers.
func LayerViews(layers []crawl.Layer) []Layer {
	list := make([]Layer, 0, len(layers))
	for _, l := range layers {
		list = append(list, Layer(l))
	}
	return list
}

// WaitViews shows what hosts wait for.
func WaitViews(waits []crawl.WaitingFor) []WaitReason {
	list := make([]WaitReason, 0, len(waits))
	for _, w := range waits {
		list = append(list, WaitReason{Reason: w.Reason, Hosts: int64(w.Hosts), URLs: int64(w.URLs)})
	}
	return list
}
