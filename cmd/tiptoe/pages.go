package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/term"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/report"
)

// pageFilter is the flags that choose pages, for every command that has them.
type pageFilter struct {
	Status  string `help:"HTTP status: 404, 4xx, 200-299, or none for no answer." placeholder:"S" group:"Filters"`
	Outcome string `help:"How it ended: ok, redirect, not_found, throttled, robots, timeout, ... or broken; comma-separated." placeholder:"O" group:"Filters"`
	Host    string `help:"Host with its port; * stands for anything." placeholder:"H" group:"Filters"`
	Slow    string `help:"Took at least so long, such as 3s." placeholder:"D" group:"Filters"`
	Type    string `help:"Content type: text/html, image/, or html, pdf, image." placeholder:"T" group:"Filters"`
	Depth   string `help:"Links from a seed: 2, 1-3, or 3- for 3 and more." placeholder:"N" group:"Filters"`
	Match   string `help:"Part of the URL; with a *, a pattern for all of it." placeholder:"P" group:"Filters"`
	Kind    string `help:"What was fetched: page, sitemap, or all." default:"page" enum:"page,sitemap,all" group:"Filters"`
	Skipped bool   `help:"Also URLs that were out of scope or set aside as a trap." group:"Filters"`
	Sort    string `help:"Order: found, url, host, status, size, time, depth, links; with a - in front the largest first (--sort=-time)." placeholder:"BY" group:"Filters"`
	Limit   int    `help:"At most so many; 0 is all." default:"0" group:"Filters"`
}

func (c *pageFilter) filter() (ledger.PageFilter, error) {
	f, err := report.Query{Status: c.Status, Outcome: c.Outcome, Host: c.Host, Slow: c.Slow, Type: c.Type,
		Depth: c.Depth, Match: c.Match, Sort: c.Sort, Limit: c.Limit}.Filter()
	if err != nil {
		return f, usageError{err}
	}
	if c.Kind != "all" {
		f.Kind = c.Kind
	}
	if c.Outcome == "" && !c.Skipped {
		f.Outcomes = slices.DeleteFunc(outcome.All(), skipped)
	}
	return f, nil
}

// skipped are links that do not belong to the crawl; most sites have more of
// them than pages.
func skipped(o outcome.Outcome) bool {
	return o == outcome.Scope || o == outcome.Trap || o == outcome.Budget
}

type pagesCmd struct {
	pageFilter
	JSON  bool  `help:"One JSON object a line."`
	Crawl int64 `help:"Which crawl; by default the newest. tiptoe crawls lists them." placeholder:"N" group:"Storage"`
	config.Results
}

func (c *pagesCmd) Help() string {
	return `Examples:
  tiptoe pages                                 all pages of the newest crawl
  tiptoe pages --status 4xx
  tiptoe pages --slow 3s --sort=-time --limit 20
  tiptoe pages --outcome robots                what robots.txt kept us from
  tiptoe pages --outcome scope                 links that lead elsewhere
  tiptoe pages --host shop.example.com --type html --json | jq -r .title

Works while the crawl is running, too.`
}

func (c *pagesCmd) Run(st *streams) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	return withCrawl(c.Results, c.Crawl, func(l app.Ledger, id int64) error {
		_, err := report.Pages(context.Background(), st.out, l, id, f, report.Options{JSON: c.JSON, Width: width(st.out)})
		return err
	})
}

// withCrawl opens results for reading and finds the crawl that a
// report is about: the named or the newest.
func withCrawl(r config.Results, id int64, f func(app.Ledger, int64) error) (err error) {
	ctx := context.Background()
	l, err := app.OpenLedger(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	cr, err := l.LatestCrawl(ctx)
	if id != 0 {
		cr, err = l.Crawl(ctx, id)
	}
	if errors.Is(err, ledger.ErrNoCrawl) {
		if id != 0 {
			return noSuchCrawl(id, r)
		}
		return noCrawl(r)
	}
	if err != nil {
		return err
	}
	return f(l, cr.ID)
}

func noSuchCrawl(id int64, r config.Results) error {
	return fmt.Errorf("there is no crawl %d in %s; tiptoe crawls lists them", id, r.Place())
}

func noCrawl(r config.Results) error { return fmt.Errorf("there is no crawl in %s yet", r.Place()) }

// width is the terminal's; 0, no cut, for files and pipes.
func width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		return w
	}
	return 0
}
