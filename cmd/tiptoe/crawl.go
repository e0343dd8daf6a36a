package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/tui"
)

type crawlCmd struct {
	URLs     []string `arg:"" optional:"" name:"url" help:"Where to begin. A bare host name will do."`
	Seeds    []string `help:"File with one URL a line, or - for standard input; repeatable." sep:"none" placeholder:"FILE" group:"Bounds"`
	StartURL []string `name:"start-url" help:"Same as an argument; repeatable." env:"TIPTOE_START_URL" sep:"none" placeholder:"URL" group:"Bounds"`
	New      bool     `help:"Start anew although this crawl is unfinished." group:"Storage"`

	config.Data
	config.Backends
	config.Bounds
	config.Web
	config.Machine
	config.Logging
	uiFlags
}

func (c *crawlCmd) Help() string {
	return `Examples:
  tiptoe crawl example.com
  tiptoe crawl https://example.com/docs/ --include '/docs/' --depth 5
  tiptoe crawl --seeds hosts.txt --profile bulk --duration 12h
  tiptoe crawl example.com --max-urls 100 --json | jq .title
  tiptoe crawl example.com --ui
  tiptoe crawl http://localhost:3000 --delay 0 --per-host 16
  tiptoe crawl staging.example.com --resolve staging.example.com:443:10.1.2.3
  tiptoe crawl https://user:password@intranet.example.com

Results are in the data directory: tiptoe pages, tiptoe links, tiptoe export,
or any SQLite client on tiptoe-data/ledger.db, also while the crawl runs. With
--database-url they are in PostgreSQL, in the same tables, for the same commands
with the same flag; with --redis-url too, every tiptoe worker that has the same
two addresses helps.
Ctrl+C stops gently; tiptoe resume goes on. Exit codes: 0 complete, 1 error,
2 usage, 3 partial (a limit or Ctrl+C ended it).`
}

// Run checks everything before it touches anything.
func (c *crawlCmd) Run(st *streams) error {
	seeds, err := c.readSeeds(st)
	if err != nil {
		return usageError{err}
	}
	if err := c.Machine.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Backends.Check(); err != nil {
		return usageError{err}
	}
	if err := c.uiFlags.Check(); err != nil {
		return usageError{err}
	}
	spec, err := config.Spec(&c.Web, &c.Bounds, seeds)
	if err != nil {
		return usageError{err}
	}
	if err := checkEndpoints(spec); err != nil {
		return usageError{err}
	}
	if err := checkWeb(c.Web); err != nil {
		return usageError{err}
	}
	if err := remember(&spec, &c.Web); err != nil {
		return err
	}
	if err := shareable(&c.Backends, spec.HostHeaders); err != nil {
		return usageError{err}
	}
	if !c.New && c.DatabaseURL == "" {
		if err := refuseUnfinished(c.DataDir, spec.Seeds); err != nil {
			return err
		}
	}
	s := &session{st: st, log: c.Logging, ui: c.uiFlags, settings: app.Settings{Dir: c.DataDir, Machine: c.Machine, Web: c.Web, Backends: c.Backends}}
	return s.run(func(ctx context.Context, a *app.App, hooks crawl.Hooks) (*crawl.Run, error) {
		if spec.IgnoreRobots {
			a.Log.Warn("robots.txt is IGNORED on your request; do this only on sites that are yours")
		}
		if c.Insecure {
			a.Log.Warn("TLS certificates are NOT verified on your request")
		}
		warnOwnClient(a, &c.Client)
		return a.Engine.Start(ctx, spec, hooks)
	})
}

// shareable refuses to give a fleet what it cannot keep: passwords are not
// stored.
func shareable(b *config.Backends, logins map[string]string) error {
	if b.Redis() != "" && len(logins) > 0 {
		return errors.New("a password in a URL is not stored, so other workers would not have it; leave --redis-url out, or send it with --header")
	}
	return nil
}

// warnOwnClient tells somebody who crawls with a fleet of flags that every
// worker must have been given as well.
func warnOwnClient(a *app.App, c *config.Client) {
	var flags []string
	for _, f := range []struct {
		flag string
		set  bool
	}{{"--proxy", c.Proxy != ""}, {"--resolve", len(c.Resolve) > 0}, {"--cookies", c.Cookies}, {"--insecure", c.Insecure},
		{"--no-http2", !c.HTTP2}, {"--allow-private", c.AllowPrivate}} {
		if f.set {
			flags = append(flags, f.flag)
		}
	}
	if a.Fleet != nil && len(flags) > 0 {
		a.Log.Warn("these flags hold in this process only; every worker of the fleet needs them, too", "flags", strings.Join(flags, " "))
	}
}

// checkWeb is app.CheckWeb with the flag's name in front.
func checkWeb(w config.Web) error {
	err := app.CheckWeb(w)
	if err == nil || w.Proxy == "" || strings.HasPrefix(err.Error(), "--") {
		return err
	}
	return fmt.Errorf("--proxy: %w; write something like http://proxy.example.com:3128", err)
}

// checkEndpoints looks at the search services that seeding will ask.
func checkEndpoints(s crawl.Spec) error {
	for _, e := range []struct{ source, flag, url string }{
		{"ct", "--ct-endpoint", s.CTEndpoint}, {"commoncrawl", "--commoncrawl-endpoint", s.CCEndpoint}} {
		isHTTP := strings.HasPrefix(e.url, "https://") || strings.HasPrefix(e.url, "http://")
		if slices.Contains(s.Seeding, e.source) && (!isHTTP || strings.Count(e.url, "%s") != 1) {
			return fmt.Errorf("%s: %q is not a URL with %%s where the domain belongs", e.flag, e.url)
		}
	}
	return nil
}

func (c *crawlCmd) readSeeds(st *streams) ([]config.Seed, error) {
	var seeds []config.Seed
	for _, raw := range slices.Concat(c.URLs, c.StartURL) {
		s, err := config.ParseSeed(raw, "URL")
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, s)
	}
	for _, name := range c.Seeds {
		list, err := readSeedFile(name, st.in)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, list...)
	}
	if len(seeds) == 0 {
		return nil, errors.New("no URL to begin with; write tiptoe crawl example.com, or --seeds FILE")
	}
	return seeds, nil
}

func readSeedFile(name string, stdin io.Reader) ([]config.Seed, error) {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--seeds: %w", err)
		}
		defer f.Close()
		r = f
	} else {
		name = "standard input"
	}
	var seeds []config.Seed
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(sc.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := config.ParseSeed(line, fmt.Sprintf("--seeds: %s, line %d", name, n))
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, s)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("--seeds: %s: %w", name, err)
	}
	return seeds, nil
}

// refuseUnfinished keeps a second crawl of the same seeds from starting over
// what a resume would finish.
func refuseUnfinished(dir string, seeds []string) error {
	if !app.Exists(dir) {
		return nil
	}
	ctx := context.Background()
	l, err := app.UpgradeLedger(ctx, config.In(dir))
	if err != nil {
		return err
	}
	defer l.Close()
	all, err := l.Crawls(ctx)
	if err != nil {
		return err
	}
	for _, cr := range all {
		if !unfinished(cr) || !slices.Equal(cr.Seeds, seeds) {
			continue
		}
		return fmt.Errorf("%s holds an unfinished crawl of %s (crawl %d, %s, %s).\n"+
			"  Go on with it:   tiptoe resume%s --crawl %d\n"+
			"  Start anew:      add --new\n"+
			"  Keep both apart: use another --data-dir",
			shortPath(dir), cr.Seeds[0], cr.ID, pagesDone(cr.Counters.Processed), statusWords(cr), dirFlag(dir), cr.ID)
	}
	return nil
}

func pagesDone(n int64) string {
	if n == 1 {
		return "1 page done"
	}
	return tui.Count(n) + " pages done"
}

func statusWords(cr ledger.Crawl) string {
	if cr.Status == ledger.Running {
		return "it was cut off, or still runs"
	}
	return strings.ToLower(cr.Reason)
}
