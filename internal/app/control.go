package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/control"
	"tiptoe/internal/crawl"
	"tiptoe/internal/explain"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
)

// serveControl lets other processes ask this one. A crawl goes on without it.
func (a *App) serveControl() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.statuses(), nil) })
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.FormValue("crawl"), 10, 64)
		if err != nil && r.FormValue("crawl") != "" {
			http.Error(w, "crawl: not a number", http.StatusBadRequest)
			return
		}
		x, err := explain.Explain(r.Context(), a.sources(), r.FormValue("url"), id)
		answer(w, x, err)
	})
	var err error
	if a.control, err = control.Serve(a.Dir, mux); err != nil {
		a.Log.Warn("other commands cannot ask this crawl while it runs", "error", err)
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, ledger.ErrNoCrawl):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case errors.Is(err, explain.ErrBadURL):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked may have left
}

// status is crawl.Status with outcomes by name.
type status struct {
	crawl.Status
	Outcomes map[string]int64
}

func (a *App) statuses() []status {
	all := []status{}
	for _, s := range a.Engine.Statuses() {
		named := make(map[string]int64, len(s.Outcomes))
		for o, n := range s.Outcomes {
			named[o.String()] = n
		}
		all = append(all, status{s, named})
	}
	return all
}

// sources are what this process explains URLs from.
func (a *App) sources() explain.Sources {
	return explain.Sources{
		Ledger: a.Ledger, Frontier: explain.Live{Scheduler: a.Engine.Scheduler(), Store: a.Store}, Live: true,
		Now: a.Engine.Now(), Group: a.Engine.Group, Trapped: a.Engine.Trapped,
	}
}

// Explain asks the process that runs on a data directory about a URL; if there
// is none, it reads the directory itself.
func Explain(ctx context.Context, dir, input string, crawl int64) (*explain.Explanation, error) {
	if !Exists(dir) {
		l, err := OpenLedger(dir) // for its sentence
		if err == nil {
			l.Close()
		}
		return nil, err
	}
	x := new(explain.Explanation)
	q := url.Values{"url": {input}}
	if crawl != 0 {
		q.Set("crawl", strconv.FormatInt(crawl, 10))
	}
	err := control.Get(ctx, dir, "/explain", q, x)
	var no *control.Refusal
	switch {
	case errors.As(err, &no) && no.Status == http.StatusNotFound:
		return nil, ledger.ErrNoCrawl
	case errors.As(err, &no) && no.Status == http.StatusBadRequest:
		return nil, fmt.Errorf("%w: %s", explain.ErrBadURL, strings.TrimPrefix(no.Text, explain.ErrBadURL.Error()+": "))
	case !errors.Is(err, control.ErrNobody):
		return x, err
	}
	l, err := OpenLedger(dir)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return explainStored(ctx, dir, l, input, crawl)
}

func explainStored(ctx context.Context, dir string, l *sqlite.Ledger, input string, crawl int64) (*explain.Explanation, error) {
	src := explain.Sources{Ledger: l, Now: time.Now().UTC()}
	path := filepath.Join(dir, FrontierDir)
	if _, err := os.Stat(path); err != nil {
		src.Without = "the frontier's folder is not there, so nothing can be said about the queue"
		return explain.Explain(ctx, src, input, crawl)
	}
	store, err := pebblestore.Open(path, pebblestore.Options{SeenInMemory: -1})
	if err != nil {
		src.Without = "the queue and the hosts' clocks: " + err.Error()
		return explain.Explain(ctx, src, input, crawl)
	}
	defer store.Close()
	src.Frontier = explain.Stored{Store: store}
	return explain.Explain(ctx, src, input, crawl)
}
