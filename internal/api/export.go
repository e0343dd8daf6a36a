package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type exportIn struct {
	JobID
	Format string `query:"format" enum:"jsonl,csv,sitemap" default:"jsonl"`
}

var exports = map[string]struct{ contentType, ending string }{
	"jsonl":   {"application/x-ndjson", "jsonl"},
	"csv":     {"text/csv; charset=utf-8", "csv"},
	"sitemap": {"application/xml", "xml"},
}

func (a *API) export(ctx context.Context, c *caller, in *exportIn) (*huma.StreamResponse, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	if a.cfg.Export == nil {
		return nil, unavailable("export")
	}
	if j.Crawl == 0 {
		return nil, problem(http.StatusConflict, "the job has not begun, so there is nothing to export yet: wait until it runs")
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		kind := exports[in.Format]
		out := &exportWriter{w: w, control: http.NewResponseController(w), timeout: a.cfg.WriteTimeout, begin: func() {
			w.Header().Set("Content-Type", kind.contentType)
			w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "tiptoe-"+j.ID+"."+kind.ending))
			w.WriteHeader(http.StatusOK)
		}}
		if r.Method == http.MethodHead {
			out.start()
			return
		}
		err := a.cfg.Export(ctx, out, in.Format, j.Crawl)
		switch {
		case err == nil:
			out.start() // an empty file is one too
		case ctx.Err() != nil || out.broken:
			panic(http.ErrAbortHandler)
		case out.begun:
			a.log.Error("api: an export broke off", "job", j.ID, "format", in.Format, "error", err)
			panic(http.ErrAbortHandler) // so that the client does not take it for whole
		default:
			if p, ok := a.toProblem(ctx, err).(*huma.ErrorModel); ok {
				writeProblem(w, p)
			}
		}
	}}, nil
}

// exportWriter begins the answer with the first byte, so that an error before
// it is still a problem, and gives the client time for each piece.
type exportWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	begin   func()
	begun   bool
	broken  bool // the client no longer reads
}

func (e *exportWriter) start() {
	if !e.begun {
		e.begun = true
		e.begin()
	}
}

func (e *exportWriter) Write(b []byte) (int, error) {
	e.start()
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	n, err := e.w.Write(b)
	e.broken = e.broken || err != nil
	return n, err
}
