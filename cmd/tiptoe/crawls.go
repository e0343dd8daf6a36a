package main

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
	"tiptoe/internal/tui"
)

type crawlsCmd struct {
	JSON bool `help:"One JSON object a line."`
	config.Results
}

type crawlAnswer struct {
	Crawl    int64           `json:"crawl"`
	Status   ledger.Status   `json:"status"`
	Reason   string          `json:"reason"`
	Seeds    []string        `json:"seeds"`
	Started  time.Time       `json:"started"`
	Ended    *time.Time      `json:"ended"` // null: not yet
	Counters ledger.Counters `json:"counters"`
}

func (c *crawlsCmd) Help() string {
	return `Examples:
  tiptoe crawls
  tiptoe crawls --json | jq -r 'select(.status == "partial") | .crawl'

The number in the first column is what --crawl of other commands takes.`
}

func (c *crawlsCmd) Run(st *streams) error {
	ctx := context.Background()
	l, err := app.OpenLedger(ctx, c.Results)
	if err != nil {
		return err
	}
	defer l.Close()
	all, err := l.Crawls(ctx)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(st.out)
	if !c.JSON {
		fmt.Fprintf(w, "%5s  %-10s %10s %8s %8s  %-19s  %s\n", "crawl", "status", "pages", "failed", "blocked", "started", "seeds")
	}
	for _, cr := range all {
		if c.JSON {
			writeJSON(w, crawlAnswer{cr.ID, cr.Status, cr.Reason, cr.Seeds, cr.Started, nullTime(cr.Ended), cr.Counters})
			continue
		}
		seeds := cr.Seeds[0]
		if n := len(cr.Seeds); n > 1 {
			seeds += fmt.Sprintf(" and %d more", n-1)
		}
		fmt.Fprintf(w, "%5d  %-10s %10s %8s %8s  %-19s  %s\n", cr.ID, cr.Status, tui.Count(cr.Counters.Processed),
			tui.Count(cr.Counters.Failed), tui.Count(cr.Counters.Blocked), cr.Started.Local().Format(time.DateTime), tui.Clean(seeds, 80))
	}
	return w.Flush()
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
