package main

import (
	"context"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/report"
)

type linksCmd struct {
	Broken    bool   `help:"URLs that lead nowhere: 404, 5xx, no answer, redirect loop, ... (the default)" xor:"what"`
	Redirects bool   `help:"URLs that redirect, with the chain to the end." xor:"what"`
	From      int    `help:"Linking pages named for each URL; 0 is all." default:"10"`
	JSON      bool   `help:"One JSON object a line."`
	Status    string `help:"HTTP status: 404, 4xx, 500-599, or none for no answer." placeholder:"S" group:"Filters"`
	Host      string `help:"Host of the URL, with its port; * stands for anything." placeholder:"H" group:"Filters"`
	Match     string `help:"Part of the URL; with a *, a pattern for all of it." placeholder:"P" group:"Filters"`
	Limit     int    `help:"At most so many URLs; 0 is all." default:"0" group:"Filters"`
	Crawl     int64  `help:"Which crawl; by default the newest. tiptoe crawls lists them." placeholder:"N" group:"Storage"`
	config.Results
}

func (c *linksCmd) Help() string {
	return `Examples:
  tiptoe links                       broken links, and the pages they are on
  tiptoe links --status 404 --match /docs/
  tiptoe links --redirects           links that take a detour
  tiptoe links --json | jq -r '.linked_from[]' | sort | uniq -c

Throttled is not broken: the page is fine, the crawl was too fast. Nor is what
robots.txt or the server denies to crawlers: tiptoe pages --outcome blocked.`
}

func (c *linksCmd) Run(st *streams) error {
	filter := pageFilter{Status: c.Status, Host: c.Host, Match: c.Match, Limit: c.Limit, Kind: "page"}
	f, err := filter.filter()
	if err != nil {
		return err
	}
	if c.From < 0 {
		return usageErrorf("--from: %d is negative; 0 means all", c.From)
	}
	list := report.Broken
	if c.Redirects {
		list = report.Redirects
	}
	return withCrawl(c.Results, c.Crawl, func(l app.Ledger, id int64) error {
		_, err := list(context.Background(), st.out, l, id, f, report.Options{JSON: c.JSON, Width: width(st.out), Sources: c.From})
		return err
	})
}
