package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// resumeCmd has only flags that may change in the middle of a crawl; the rest
// is what the crawl was started with.
type resumeCmd struct {
	Crawl       int64          `help:"Which crawl; by default the newest unfinished one." placeholder:"N" group:"Storage"`
	MaxURLs     *int64         `name:"max-urls" help:"New page limit, counted from the crawl's beginning; 0 is none." placeholder:"N" group:"Bounds"`
	Duration    *time.Duration `help:"New time limit for this run; 0 is none." placeholder:"D" group:"Bounds"`
	PerHost     *int           `help:"Requests in flight per host." placeholder:"N" group:"Politeness"`
	Concurrency *int64         `help:"Requests in flight of the whole crawl; 0 is no bound." placeholder:"N" group:"Politeness"`
	Delay       *config.Delay  `help:"Least time between request starts on one host: 500ms, or a random 200ms-500ms." placeholder:"D" group:"Politeness"`
	Auth        []string       `help:"A URL with user name and password, for the host in it; passwords are never stored. Repeatable." sep:"none" placeholder:"URL" group:"Requests"`
	Proxy       *string        `help:"Another http, https or socks5 proxy; an empty one is none." placeholder:"URL" group:"Requests"`
	Resolve     []string       `help:"Connect to this address for a host, besides those of the beginning; repeatable." sep:"none" placeholder:"HOST:PORT:ADDR" group:"Requests"`

	ReleaseTraps *string `help:"Also fetch URLs that were set aside as traps and contain this text; an empty one is all of them." placeholder:"TEXT" group:"Bounds"`

	config.Data
	config.Backends
	config.Machine
	config.Logging
	uiFlags
}

func (c *resumeCmd) Help() string {
	return `Examples:
  tiptoe resume                    the newest unfinished crawl in tiptoe-data
  tiptoe resume --crawl 3
  tiptoe resume --max-urls 2000    after a page limit ended it
  tiptoe resume --delay 2s         more gently than before
  tiptoe resume --release-traps /calendar/
  tiptoe resume --database-url postgres://... --redis-url redis://...

The crawl goes on with the settings it was started with, except for what is
given here. Hosts that were parked get one more try.`
}

func (c *resumeCmd) Run(st *streams) error {
	if err := c.Machine.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Backends.Check(); err != nil {
		return usageError{err}
	}
	if err := c.uiFlags.Check(); err != nil {
		return usageError{err}
	}
	logins, err := c.logins()
	if err != nil {
		return usageError{err}
	}
	row, err := c.find()
	if err != nil {
		return err
	}
	spec, web, err := c.settings(row, logins)
	if err != nil {
		return err
	}
	if err := shareable(&c.Backends, logins); err != nil {
		return usageError{err}
	}
	if err := checkWeb(web); err != nil {
		return usageError{err}
	}
	s := &session{st: st, log: c.Logging, ui: c.uiFlags, settings: app.Settings{Dir: c.DataDir, Machine: c.Machine, Web: web, Backends: c.Backends}}
	return s.run(func(ctx context.Context, a *app.App, hooks crawl.Hooks) (*crawl.Run, error) {
		if err := a.Unsupervised(ctx, row.ID); err != nil {
			return nil, err
		}
		warnOwnClient(a, &web.Client)
		a.Log.Info("resuming", "crawl", row.ID, "seed", row.Seeds[0], "done", row.Counters.Processed)
		r, err := a.Engine.Resume(ctx, row, func(s *crawl.Spec) { *s = spec }, hooks)
		if err != nil || c.ReleaseTraps == nil {
			return r, err
		}
		traps := a.Ledger.Pages(ctx, row.ID, ledger.PageFilter{Outcomes: []outcome.Outcome{outcome.Trap}})
		n, err := r.ReleaseTraps(ctx, traps, *c.ReleaseTraps)
		a.Log.Info("released from quarantine", "urls", n)
		return r, err
	})
}

// find picks the crawl to go on with. One that is complete has nothing to go
// on with but what was set aside.
func (c *resumeCmd) find() (ledger.Crawl, error) {
	r := config.Results{Data: c.Data, Database: c.Database}
	if c.ReleaseTraps == nil {
		return findUnfinished(r, c.Crawl)
	}
	ctx := context.Background()
	l, err := app.UpgradeLedger(ctx, r)
	if err != nil {
		return ledger.Crawl{}, err
	}
	defer l.Close()
	if c.Crawl != 0 {
		return l.Crawl(ctx, c.Crawl)
	}
	return l.LatestCrawl(ctx)
}

// logins reads the credentials that are given again, by origin.
func (c *resumeCmd) logins() (map[string]string, error) {
	m := map[string]string{}
	for _, raw := range c.Auth {
		seed, err := config.ParseSeed(raw, "--auth")
		if err != nil {
			return nil, err
		}
		if seed.Auth == "" {
			return nil, fmt.Errorf("--auth: %q holds no password; write https://user:password@%s/", raw, seed.URL.HostKey())
		}
		m[seed.URL.Origin()] = seed.Auth
	}
	return m, nil
}

// settings are those of the crawl's beginning with this command's flags on top.
func (c *resumeCmd) settings(row ledger.Crawl, logins map[string]string) (crawl.Spec, config.Web, error) {
	var s crawl.Spec
	var k client
	if err := json.Unmarshal(row.Spec, &s); err != nil {
		return s, config.Web{}, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
	}
	if len(s.Client) > 0 {
		if err := json.Unmarshal(s.Client, &k); err != nil {
			return s, config.Web{}, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
		}
	}
	for _, origin := range k.Logins {
		if logins[origin] == "" {
			scheme, host, _ := strings.Cut(origin, "://")
			return s, config.Web{}, fmt.Errorf("crawl %d was started with a password for %s, and passwords are not stored.\n"+
				"  Give it again:   tiptoe resume --auth '%s://user:password@%s/'", row.ID, host, scheme, host)
		}
	}
	if k.SecretProxy && c.Proxy == nil {
		return s, config.Web{}, fmt.Errorf("crawl %d was started with a proxy that has a password, and passwords are not stored.\n"+
			"  Give it again:   tiptoe resume --proxy URL   ('' is none)", row.ID)
	}
	s.HostHeaders = logins
	if c.PerHost != nil {
		s.PerHost = *c.PerHost
	}
	if c.Concurrency != nil {
		s.Concurrency = *c.Concurrency
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
	switch {
	case s.PerHost < 1:
		return s, config.Web{}, usageErrorf("--per-host: %d is too small; the least is 1", s.PerHost)
	case s.Concurrency < 0:
		return s, config.Web{}, usageErrorf("--concurrency: %d is negative; 0 means no bound of its own", s.Concurrency)
	case s.MaxURLs < 0:
		return s, config.Web{}, usageErrorf("--max-urls: %d is negative; 0 means no limit", s.MaxURLs)
	case s.Duration < 0:
		return s, config.Web{}, usageErrorf("--duration: %s is negative; 0 means no limit", s.Duration)
	}
	web := config.Web{
		Profile: s.Profile, PerHost: &s.PerHost, Delay: &config.Delay{Min: s.DelayMin, Max: s.DelayMax},
		UserAgent: s.UserAgent, Timeout: s.Timeout, MaxBody: config.Bytes(s.MaxBody),
		Client: config.Client{Proxy: k.Proxy, Resolve: slices.Concat(c.Resolve, k.Resolve), Cookies: k.Cookies, Insecure: k.Insecure,
			HTTP2: !k.HTTP1, AllowPrivate: k.AllowPrivate, Group: k.Group, Groups: k.Groups},
	}
	if c.Proxy != nil {
		web.Proxy = *c.Proxy
	}
	return s, web, nil
}

// findUnfinished picks the crawl to go on with.
func findUnfinished(r config.Results, id int64) (ledger.Crawl, error) {
	ctx := context.Background()
	l, err := app.UpgradeLedger(ctx, r)
	if err != nil {
		return ledger.Crawl{}, err
	}
	defer l.Close()
	all, err := l.Crawls(ctx)
	if err != nil {
		return ledger.Crawl{}, err
	}
	jobs, err := l.Jobs(ctx, ledger.JobFilter{Statuses: []ledger.Status{ledger.Queued, ledger.Running, ledger.Paused}})
	if err != nil {
		return ledger.Crawl{}, err
	}
	ordered := map[int64]ledger.Job{} // whoever drives a job goes on with its crawl
	for _, j := range jobs {
		if j.Crawl != 0 && j.Type != ledger.TypeCommand {
			ordered[j.Crawl] = j
		}
	}
	for _, cr := range all {
		j, order := ordered[cr.ID]
		switch {
		case id != 0 && cr.ID != id:
		case order && id == 0:
		case order:
			return cr, fmt.Errorf("crawl %d belongs to a job that is %s; tiptoe job resume %s goes on with it when it is paused", id, j.Status, j.ID)
		case unfinished(cr):
			return cr, nil
		case id != 0:
			return cr, fmt.Errorf("crawl %d is %s; there is nothing to resume", id, cr.Status)
		}
	}
	if id != 0 {
		return ledger.Crawl{}, noSuchCrawl(id, r)
	}
	if len(all) == 0 {
		return ledger.Crawl{}, noCrawl(r)
	}
	if len(ordered) > 0 {
		return ledger.Crawl{}, fmt.Errorf("the unfinished crawls in %s belong to jobs; tiptoe job list shows them, and tiptoe job resume goes on with one that is paused", r.Place())
	}
	return ledger.Crawl{}, fmt.Errorf("all crawls in %s are complete; there is nothing to resume", r.Place())
}

func unfinished(cr ledger.Crawl) bool {
	return cr.Status == ledger.Running || cr.Status == ledger.Partial || cr.Status == ledger.Paused
}
