package app

import (
	"context"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier/redisstore"
)

// The machine as people see it is the whole fleet, whichever server they ask:
// every process shows its engine's gauges, and servers add them up when
// somebody looks.

const (
	// engineEvery is how often an engine is shown and how long a look at the
	// others is good for; engineFor is how long it stands.
	engineEvery, engineFor = 2 * time.Second, 10 * time.Second
	// engineLook bounds a look: somebody waits for it.
	engineLook = time.Second
)

func engineName(worker string) string { return "engine:" + worker }

// showEngine lets the servers of the fleet see this process's engine until ctx
// ends.
func (a *App) showEngine(ctx context.Context) {
	store, ok := a.Store.(*redisstore.Store)
	if !ok {
		return
	}
	tick := time.NewTicker(engineEvery)
	defer tick.Stop()
	for {
		v := a.Engine.View()
		if text, err := v.Shown(); err == nil {
			soon, cancel := context.WithTimeout(ctx, engineLook)
			_ = store.Show(soon, engineName(a.name), text, engineFor) // the list of workers says that Redis is away
			cancel()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// others are the engines of the fleet's other processes, as they were last seen.
type others struct {
	mu     sync.Mutex // held over a look, so that those who come meanwhile share it
	looked time.Time
	shown  [][]byte
}

// wholeView adds the engines of the fleet up. While Redis does not answer, the
// others are as they were.
func (sv *Service) wholeView() crawl.EngineView {
	v := sv.Engine.View()
	store, ok := sv.Store.(*redisstore.Store)
	if !ok {
		return v
	}
	o := &sv.others
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.looked.IsZero() || time.Since(o.looked) >= engineEvery {
		var names []string
		list, _ := sv.Fleet.Workers()
		for _, w := range list {
			if w.ID != sv.name {
				names = append(names, engineName(w.ID))
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), engineLook)
		defer cancel()
		if shown, err := store.ShownOf(ctx, names); err == nil {
			o.shown = shown
		}
		o.looked = time.Now()
	}
	for _, text := range o.shown {
		if text != nil {
			_ = v.Add(text) // one that cannot be read is of another version
		}
	}
	return v
}
