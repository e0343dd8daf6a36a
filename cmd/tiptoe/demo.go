package main

import (
	"context"
	"fmt"
	"os"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/demo"
)

type demoCmd struct {
	DataDir string `help:"Empty folder for the results; by default a new one among the temporary files." placeholder:"DIR" type:"path"`
	List    bool   `help:"Only say which hosts there are and what each shows."`

	config.Bounds
	config.Web
	config.Machine
	config.Logging
	uiFlags
}

func (c *demoCmd) Help() string {
	return `Examples:
  tiptoe demo
  tiptoe demo --max-urls 50
  tiptoe demo --ui
  tiptoe demo --list

A dozen hosts on this machine, each with a character: healthy, slow, rate-limited with Retry-After, with a Crawl-delay, flaky, closed by robots.txt, redirecting, an endless calendar, broken links, dead. Nothing leaves the machine, and every flag of a crawl can be tried here.`
}

func (c *demoCmd) Run(st *streams) error {
	if err := c.Machine.Check(); err != nil {
		return usageError{err}
	}
	if err := c.uiFlags.Check(); err != nil {
		return usageError{err}
	}
	if err := checkWeb(c.Web); err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	web, err := demo.Start(ctx)
	if err != nil {
		return fmt.Errorf("start the demo web: %w", err)
	}
	defer web.Close()
	if !c.Quiet && !c.JSON {
		fmt.Fprintln(st.out, "The demo web:")
		for _, h := range web.Describe() {
			fmt.Fprintf(st.out, "  %-26s %s\n", h.Name, h.Shows)
		}
		fmt.Fprintln(st.out)
	}
	if c.List {
		return nil
	}
	c.Web.Resolve = append(c.Web.Resolve, web.Resolve()...)
	var seeds []config.Seed
	for _, raw := range web.Seeds() {
		s, err := config.ParseSeed(raw, "demo")
		if err != nil {
			return err
		}
		seeds = append(seeds, s)
	}
	spec, err := config.Spec(&c.Web, &c.Bounds, seeds)
	if err != nil {
		return usageError{err}
	}
	if err := c.folder(); err != nil {
		return err
	}
	s := &session{st: st, log: c.Logging, ui: c.uiFlags, settings: app.Settings{Dir: c.DataDir, Machine: c.Machine, Web: c.Web}}
	return s.run(func(ctx context.Context, a *app.App, hooks crawl.Hooks) (*crawl.Run, error) {
		return a.Engine.Start(ctx, spec, hooks)
	})
}

// folder finds a place for the results. A folder that holds a crawl is left
// alone: it may be somebody's work.
func (c *demoCmd) folder() (err error) {
	if c.DataDir == "" {
		c.DataDir, err = os.MkdirTemp("", "tiptoe-demo-")
		return err
	}
	if app.Exists(c.DataDir) {
		return usageErrorf("--data-dir: %s holds a crawl already; name an empty folder", c.DataDir)
	}
	return nil
}
