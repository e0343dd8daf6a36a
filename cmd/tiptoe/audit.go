package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"tiptoe/internal/app"
	"tiptoe/internal/audit"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
)

type auditCmd struct {
	Dir   string `arg:"" optional:"" name:"dir" help:"Data directory; the same as --data-dir." type:"path"`
	Crawl int64  `help:"Judge only what this crawl took part in; by default all crawls. tiptoe crawls lists them." placeholder:"N" group:"Storage"`
	JSON  string `help:"Write the whole report as JSON to this file; - is standard output, instead of the table." placeholder:"FILE"`
	Hosts int    `help:"Hosts in the table; 0 is all. Those with a broken promise come first." default:"40" placeholder:"N"`
	config.Results
}

func (c *auditCmd) Help() string {
	return `Examples:
  tiptoe audit                       all crawls in tiptoe-data
  tiptoe audit /var/lib/crawls --crawl 3
  tiptoe audit --json audit.json

Replays the log of requests and proves, or disproves, for each host: that no
two requests started closer together than was owed (base delay, robots
Crawl-delay, learned delay), that no more were in flight than allowed, that
nothing was asked for in a time of quiet that the server wanted (Retry-After,
rate-limit headers), and that no URL was requested that robots.txt or the
crawl's own rules turn away. Several crawls, and the parts of a resumed one,
are judged together. Works while a crawl runs, too.

Exit code 0 if every promise was kept, 1 otherwise.`
}

func (c *auditCmd) Run(st *streams) error {
	if c.Hosts < 0 {
		return usageErrorf("--hosts: %d is negative; 0 means all", c.Hosts)
	}
	if c.Dir != "" {
		if c.DatabaseURL != "" {
			return usageErrorf("audit reads either a folder or the database of --database-url; leave one of them out")
		}
		c.DataDir = c.Dir
	}
	ctx := context.Background()
	l, err := app.OpenLedger(ctx, c.Results)
	if err != nil {
		return err
	}
	defer l.Close()
	if c.Crawl != 0 {
		if _, err := l.Crawl(ctx, c.Crawl); errors.Is(err, ledger.ErrNoCrawl) {
			return noSuchCrawl(c.Crawl, c.Results)
		} else if err != nil {
			return err
		}
	}
	r, err := audit.Run(ctx, l, c.Crawl)
	if err != nil {
		return err
	}
	if c.JSON != "-" {
		if err := r.Text(st.out, c.Hosts); err != nil {
			return err
		}
	}
	if c.JSON != "" {
		if err := writeReport(st.out, c.JSON, r); err != nil {
			return err
		}
	}
	if !r.Kept {
		return exitWith(exitError)
	}
	return nil
}

func writeReport(out *os.File, name string, r *audit.Report) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	if name == "-" {
		_, err := out.Write(buf.Bytes())
		return err
	}
	if err := os.WriteFile(name, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}
