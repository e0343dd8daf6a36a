package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/control"
	"tiptoe/internal/crawl"
	"tiptoe/internal/explain"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/frontier/redisstore"
	"tiptoe/internal/ledger"
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
	live := explain.Live{Scheduler: a.Engine.Scheduler(), Store: a.Store}
	src := explain.Sources{Ledger: a.Ledger, Live: true, Now: a.Engine.Now(), Group: a.Engine.Group, Trapped: a.Engine.Trapped}
	if store, ok := a.Store.(*redisstore.Store); ok {
		live.Fleet, live.Worker = store, a.Fleet.Worker()
		src.Crew = crewOf(store)
	}
	src.Frontier = live
	return src
}

// Explain asks the process that runs on a data directory about a URL; if there
// is none, or if the crawl is a fleet's, it reads the stores itself.
func Explain(ctx context.Context, s config.Stores, input string, crawl int64) (*explain.Explanation, error) {
	// A folder with a ledger of its own is not that of a crawl in a database.
	if s.Redis() == "" && Exists(s.DataDir) == (s.DatabaseURL == "") {
		x, err := ask(ctx, s.DataDir, input, crawl)
		if !errors.Is(err, control.ErrNobody) {
			return x, err
		}
	}
	l, err := OpenLedger(ctx, s.Results)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	src := explain.Sources{Ledger: l, Now: time.Now().UTC()}
	if s.Redis() != "" {
		store, err := readQueue(ctx, s.Queue, l)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		src.Frontier, src.Crew = explain.Stored{Store: store, Fleet: store}, crewOf(store)
	} else if !hasFrontier(s.DataDir) {
		src.Without = errElsewhere.Error()
	} else if store, err := pebblestore.Open(filepath.Join(s.DataDir, FrontierDir), pebblestore.Options{SeenInMemory: -1}); err != nil {
		src.Without = "the queue and the hosts' clocks: " + err.Error()
	} else {
		defer store.Close()
		src.Frontier = explain.Stored{Store: store}
	}
	return explain.Explain(ctx, src, input, crawl)
}

// ask puts the question to the process that runs on a data directory.
func ask(ctx context.Context, dir, input string, crawl int64) (*explain.Explanation, error) {
	q := url.Values{"url": {input}}
	if crawl != 0 {
		q.Set("crawl", strconv.FormatInt(crawl, 10))
	}
	x := new(explain.Explanation)
	err := control.Get(ctx, dir, "/explain", q, x)
	var no *control.Refusal
	switch {
	case errors.As(err, &no) && no.Status == http.StatusNotFound:
		return nil, ledger.ErrNoCrawl
	case errors.As(err, &no) && no.Status == http.StatusBadRequest:
		return nil, fmt.Errorf("%w: %s", explain.ErrBadURL, strings.TrimPrefix(no.Text, explain.ErrBadURL.Error()+": "))
	}
	return x, err
}
