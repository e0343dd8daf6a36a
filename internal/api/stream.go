package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tiptoe/internal/ledger"
)

func (a *API) streamRoutes() {
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/events", id: "streamEvents", many: true, tag: "live", scope: ledger.ScopeRead, stream: true,
		summary: "Follow a job",
		doc: "Server-sent events: `status` (a Job), `warning`, `stalled`, `throttled` and `asked` (an object with at and message), `page` (a short Page), " +
			"`live` (a Live, once a second, without an id) and `end` (a Job; then the stream is over). " +
			"With the Last-Event-ID header, or ?last_event_id=, the stream goes on exactly behind that event. A comment comes every 15 s. " +
			"204 answers a client that has seen the end.",
		errors: []int{404, 422}, answers: map[string]*huma.Response{"200": {Description: "The events.",
			Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}}, a.events)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/export", id: "exportPages", many: true, tag: "results", scope: ledger.ScopeRead, stream: true,
		summary: "Download a job's pages", doc: "Streamed. An answer that breaks off is not whole.",
		errors: []int{404, 409, 422}, answers: map[string]*huma.Response{"200": {Description: "The file.", Content: map[string]*huma.MediaType{
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}}, "text/csv": {Schema: &huma.Schema{Type: huma.TypeString}},
			"application/xml": {Schema: &huma.Schema{Type: huma.TypeString}}}}}}, a.export)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/live", id: "getLive", tag: "live", scope: ledger.ScopeRead,
		summary: "A running job at this moment", doc: "For a job that does not run, running is false. Every server of a fleet gives the same picture.", errors: []int{404}}, a.getLive)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/hosts", id: "listHosts", many: true, tag: "live", scope: ledger.ScopeRead,
		summary: "The hosts of a running job", doc: "Those with the most waiting URLs and the busiest, with their pace and what they wait for. None for a job that does not run.",
		errors: []int{404}}, a.listHosts)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/series", id: "getSeries", many: true, tag: "live", scope: ledger.ScopeRead,
		summary: "A job over time", doc: "At most 600 points; each counts what happened since the one before it.", errors: []int{404}}, a.getSeries)
}

type eventsIn struct {
	JobID
	Last      string `header:"Last-Event-ID" maxLength:"60" doc:"The id of the last event that was seen."`
	LastQuery string `query:"last_event_id" maxLength:"60" doc:"The same, for a client that cannot send the header."`
}

// cursor is how far a client has come in the two lists that a stream reads.
type cursor struct {
	event, page int64
	end         bool // it has seen the end
}

func (c cursor) String() string {
	s := fmt.Sprintf("%d.%d", c.event, c.page)
	if c.end {
		s += ".end"
	}
	return s
}

func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	rest, end := strings.CutSuffix(s, ".end")
	event, page, ok := strings.Cut(rest, ".")
	var err1, err2 error
	c.end = end
	c.event, err1 = strconv.ParseInt(event, 10, 64)
	c.page, err2 = strconv.ParseInt(page, 10, 64)
	if !ok || err1 != nil || err2 != nil || c.event < 0 || c.page < 0 {
		return c, invalid("header.Last-Event-ID", "this is no id of an event: begin without one")
	}
	return c, nil
}

func (a *API) events(ctx context.Context, c *caller, in *eventsIn) (*huma.StreamResponse, error) {
	if in.Last == "" {
		in.Last = in.LastQuery
	}
	seen, err := parseCursor(in.Last)
	if err != nil {
		return nil, err
	}
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		if seen.end && j.Status.Done() {
			w.WriteHeader(http.StatusNoContent) // tells a browser not to come back
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no") // a proxy in front must not collect events
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodHead {
			return
		}
		f := &follower{a: a, c: c, id: j.ID, at: cursor{event: seen.event, page: seen.page},
			out: newEventWriter(w, a.cfg.WriteTimeout)}
		if err := f.follow(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errGone) {
			a.log.Warn("api: an event stream broke off", "job", j.ID, "error", err)
		}
	}}, nil
}

// errGone says that the client no longer reads.
var errGone = errors.New("the reader has gone")

const (
	// eventChunk and pageChunk bound what a stream holds in memory.
	eventChunk, pageChunk = 200, 500
	// gather is how long a stream lets news come together before it reads them.
	gather = 50 * time.Millisecond
)

// follower is one open event stream.
type follower struct {
	a   *API
	c   *caller
	id  string
	job ledger.Job // as it was last read
	at  cursor
	out *eventWriter
}

// follow writes events until the job has ended, the client leaves, its key is
// no longer good, or the server stops.
func (f *follower) follow(ctx context.Context) error {
	// Before the first look: what is committed after it fires.
	changed, unwatch := f.a.cfg.Service.Watch(f.id)
	defer unwatch()
	beat := time.NewTicker(f.a.cfg.Beat)
	defer beat.Stop()
	live := time.NewTicker(f.a.cfg.LiveEvery)
	defer live.Stop()
	if err := f.out.comment("tiptoe"); err != nil {
		return err
	}
	for {
		over, err := f.drain(ctx)
		if err != nil || over {
			return err
		}
		if err := f.wait(ctx, changed, beat.C, live.C); err != nil {
			return err
		}
	}
}

// wait returns when there may be news; an error ends the stream.
func (f *follower) wait(ctx context.Context, changed <-chan struct{}, beat, live <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.a.stop:
			return errGone
		case <-changed:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(gather):
				return nil
			}
		case <-live:
			if s, ok := f.a.liveOf(ctx, &f.job); ok {
				if err := f.out.send("live", "", f.c.liveView(&s, true)); err != nil {
					return err
				}
				if err := f.out.flush(); err != nil {
					return err
				}
			}
			if f.job.Status == ledger.Running && f.a.cfg.Service.Elsewhere(f.id) {
				return nil // and look; of one that only waits, with the beat
			}
		case <-beat:
			if _, err := f.a.keys.who(ctx, f.c.auth); errors.Is(err, errUnauthorized) {
				return errGone
			}
			return f.out.comment("")
		}
	}
}

// drain writes everything that is behind the cursor, and the end if the job
// has ended. Whether it has is read first: what it committed before its end is
// then there to be read.
func (f *follower) drain(ctx context.Context) (over bool, err error) {
	j, err := f.a.cfg.Store.Job(ctx, f.c.rows(), f.id)
	if errors.Is(err, ledger.ErrNoJob) {
		return true, nil // deleted
	}
	if err != nil {
		return false, err
	}
	f.job = j
	if err := f.drainEvents(ctx, &j); err != nil {
		return false, err
	}
	if err := f.drainPages(ctx, &j); err != nil {
		return false, err
	}
	if !j.Status.Done() {
		return false, f.out.flush()
	}
	v, err := f.a.jobView(ctx, &j)
	if err != nil {
		return false, err
	}
	f.at.end = true
	if err := f.out.send("end", f.at.String(), v); err != nil {
		return false, err
	}
	return true, f.out.flush()
}

func (f *follower) drainEvents(ctx context.Context, j *ledger.Job) error {
	for {
		list, err := f.a.cfg.Store.Events(ctx, f.id, f.at.event, eventChunk)
		if err != nil {
			return err
		}
		for i := range list {
			e := &list[i]
			data, err := f.eventData(ctx, j, e)
			if err != nil {
				return err
			}
			f.at.event = e.ID
			if err := f.out.send(e.Type, f.at.String(), data); err != nil {
				return err
			}
		}
		if len(list) < eventChunk {
			return nil
		}
	}
}

// eventData is the job for a status event, with the status it had, and for
// others what was stored with the time.
func (f *follower) eventData(ctx context.Context, j *ledger.Job, e *ledger.JobEvent) (any, error) {
	stored := map[string]any{}
	if json.Unmarshal([]byte(e.Data), &stored) != nil || stored == nil {
		stored = map[string]any{"message": e.Data}
	}
	if e.Type != "status" {
		stored["at"] = at(e.At)
		return stored, nil
	}
	v, err := f.a.jobView(ctx, j)
	if s, ok := stored["status"].(string); ok {
		v.Status = s
	}
	return v, err
}

func (f *follower) drainPages(ctx context.Context, j *ledger.Job) error {
	for {
		list, err := f.a.pages(ctx, j.Crawl, ledger.PageFilter{After: f.at.page, Limit: pageChunk})
		if err != nil {
			return err
		}
		for i := range list {
			f.at.page = list[i].ID
			if err := f.out.send("page", f.at.String(), pageEvent(&list[i])); err != nil {
				return err
			}
		}
		if len(list) < pageChunk {
			return nil
		}
	}
}

// eventWriter writes server-sent events. Each write has a deadline of its own.
type eventWriter struct {
	control *http.ResponseController
	buf     *bufio.Writer
	timeout time.Duration
}

func newEventWriter(w http.ResponseWriter, timeout time.Duration) *eventWriter {
	return &eventWriter{control: http.NewResponseController(w), buf: bufio.NewWriterSize(w, 16<<10), timeout: timeout}
}

// send collects one event; flush sends what was collected.
func (e *eventWriter) send(event, id string, data any) error {
	text, err := json.Marshal(data) // on one line
	if err != nil {
		return err
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	fmt.Fprintf(e.buf, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(e.buf, "id: %s\n", id)
	}
	if _, err := fmt.Fprintf(e.buf, "data: %s\n\n", text); err != nil {
		return errGone
	}
	return nil
}

// comment shows that somebody is there.
func (e *eventWriter) comment(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	fmt.Fprintf(e.buf, ": %s\n\n", text)
	return e.flush()
}

func (e *eventWriter) flush() error {
	if e.buf.Flush() != nil || e.control.Flush() != nil {
		return errGone
	}
	return nil
}

type liveOut struct{ Body Live }

func (a *API) getLive(ctx context.Context, c *caller, in *JobID) (*liveOut, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	s, running := a.liveOf(ctx, &j)
	return &liveOut{c.liveView(&s, running)}, nil
}

func (a *API) listHosts(ctx context.Context, c *caller, in *JobID) (*listOut[Host], error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	s, _ := a.liveOf(ctx, &j)
	var list []Host
	seen := map[string]bool{}
	for _, h := range append(c.hostViews(s.Waiting), c.hostViews(s.Busiest)...) {
		if !seen[h.Host] {
			seen[h.Host] = true
			list = append(list, h)
		}
	}
	return all(list), nil
}
