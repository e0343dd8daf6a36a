package crawl

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The whole engine: dispatchers that race for workers, commits that set many of
// them free at one moment.
func Test_few_workers_of_a_running_engine_go_to_crawls_by_weight(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		const hosts, pages = 20, 30
		weights := []int{1, 2, 5}
		w.cfg.Workers, w.cfg.Shards = 4, 4
		body := ""
		for i := range pages {
			body += fmt.Sprintf(`<a href="/%d">`, i)
		}
		e := w.engine()
		defer w.store.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var runs []*Run
		for c, weight := range weights {
			spec := plainSpec()
			for h := range hosts {
				home := fmt.Sprintf("https://c%dh%d.example/", c, h)
				spec.Seeds = append(spec.Seeds, home)
				w.sites[home] = func(*hit) reply { return reply{body: body, took: 100 * time.Millisecond} }
				for i := range pages {
					w.sites[fmt.Sprint(home, i)] = func(*hit) reply { return reply{took: 100 * time.Millisecond} }
				}
			}
			spec.IgnoreRobots, spec.PerHost, spec.DelayMin, spec.DelayMax = true, 1, 0, 0
			spec.Share = e.Shares().Open(weight)
			r, err := e.Start(ctx, spec, Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		got := make([]float64, len(weights))
		_, err := w.drive(ctx, cancel, e, runs[0], func(*Run) {
			time.Sleep(20 * time.Second)
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, h := range w.hits {
				for c := range weights {
					if strings.HasPrefix(h.url, fmt.Sprintf("https://c%dh", c)) {
						got[c] += 8 / float64(len(w.hits))
					}
				}
			}
			for _, r := range runs {
				r.Stop("enough")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for c, weight := range weights {
			if due := float64(weight); got[c] < due*0.9 || got[c] > due*1.1 {
				t.Errorf("weights %d, had %.2f of 8 requests", weights, got)
				break
			}
		}
	})
}
