package main

import (
	"context"
	"fmt"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
)

type resumeCmd struct {
	Crawl    int64          `help:"Which crawl; by default the newest unfinished one." placeholder:"N" group:"Storage"`
	MaxURLs  *int64         `name:"max-urls" help:"New page limit, counted from the crawl's beginning; 0 is none." placeholder:"N" group:"Bounds"`
	Duration *time.Duration `help:"New time limit for this run; 0 is none." placeholder:"D" group:"Bounds"`

	config.Data
	config.Web
	config.Machine
	config.Logging
}

func (c *resumeCmd) Help() string {
	return `Examples:
  tiptoe resume                      the newest unfinished crawl in tiptoe-data
  tiptoe resume --crawl 3
  tiptoe resume --max-urls 2000      after a page limit ended it

The crawl goes on with the settings it was started with; --delay, --per-host,
--max-urls and --duration replace them when given. Hosts that were parked get
one more try.`
}

func (c *resumeCmd) Run(st *streams) error {
	if err := c.Machine.Check(); err != nil {
		return usageError{err}
	}
	if err := app.CheckWeb(c.Web); err != nil {
		return usageError{err}
	}
	row, err := findUnfinished(c.DataDir, c.Crawl)
	if err != nil {
		return err
	}
	override := func(s *crawl.Spec) {
		if c.PerHost != nil {
			s.PerHost = *c.PerHost
		}
		if c.Delay != nil {
			s.DelayMin, s.DelayMax = c.Delay.Min, c.Delay.Max
		}
		if c.MaxURLs != nil {
			s.MaxURLs = *c.MaxURLs
		}
		if c.Duration != nil {
			s.Duration = *c.Duration
		}
	}
	s := &session{st: st, log: c.Logging, settings: app.Settings{Dir: c.DataDir, Machine: c.Machine, Web: c.Web}}
	return s.run(func(ctx context.Context, a *app.App, onPage func(crawl.PageEvent)) (*crawl.Run, error) {
		a.Log.Info("resuming", "crawl", row.ID, "seed", row.Seeds[0], "done", row.Counters.Processed)
		return a.Engine.Resume(ctx, row, override, onPage)
	})
}

func findUnfinished(dir string, id int64) (ledger.Crawl, error) {
	l, err := app.OpenLedger(dir)
	if err != nil {
		return ledger.Crawl{}, err
	}
	defer l.Close()
	all, err := l.Crawls(context.Background())
	if err != nil {
		return ledger.Crawl{}, err
	}
	for _, cr := range all {
		if id != 0 && cr.ID != id {
			continue
		}
		if unfinished(cr) {
			return cr, nil
		}
		if id != 0 {
			return cr, fmt.Errorf("crawl %d is %s; there is nothing to resume", id, cr.Status)
		}
	}
	if id != 0 {
		return ledger.Crawl{}, fmt.Errorf("there is no crawl %d in %s; tiptoe crawls lists them", id, dir)
	}
	return ledger.Crawl{}, fmt.Errorf("all crawls in %s are complete; there is nothing to resume", dir)
}

func unfinished(cr ledger.Crawl) bool {
	return cr.Status == ledger.Running || cr.Status == ledger.Partial || cr.Status == ledger.Paused
}

// pickCrawl finds the crawl that a report is about: the named or the newest.
func pickCrawl(l *sqlite.Ledger, id int64) (ledger.Crawl, error) {
	if id == 0 {
		return l.LatestCrawl(context.Background())
	}
	return l.Crawl(context.Background(), id)
}
