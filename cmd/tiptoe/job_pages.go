package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	api "tiptoe/internal/client"
	"tiptoe/internal/explain"
	"tiptoe/internal/tui"
)

type jobPagesCmd struct {
	ID      string `arg:"" help:"ID of the job."`
	Status  string `help:"HTTP status: 404, or 400-499." placeholder:"S" group:"Filters"`
	Outcome string `help:"How it ended: ok, redirect, not_found, throttled, robots, timeout, ...; comma-separated." placeholder:"O" group:"Filters"`
	Host    string `help:"Host with its port." placeholder:"H" group:"Filters"`
	Match   string `help:"Part of the URL." placeholder:"P" group:"Filters"`
	Kind    string `help:"page or sitemap." placeholder:"K" group:"Filters"`
	Depth   string `help:"Links from where it began." placeholder:"N" group:"Filters"`
	Limit   int    `help:"At most so many; 0 is all." default:"0" group:"Filters"`
	service
}

func (c *jobPagesCmd) Help() string {
	return `Examples:
  tiptoe job pages ID --status 400-499
  tiptoe job pages ID --outcome robots --limit 20
  tiptoe job pages ID --json | jq -r 'select(.ms > 3000) | .url'

Works while the job is running, too.`
}

const pageHead = "STATUS  OUTCOME           TIME      SIZE        DEPTH  URL"

// pageLine is one page; room is how wide the URL may be, 0 is as it likes.
func pageLine(p *api.Page, room int) string {
	status, took, size := "-", "-", "-"
	if p.Status != nil {
		status = strconv.Itoa(*p.Status)
	}
	if p.MS != nil {
		took = tui.Duration(time.Duration(*p.MS * float64(time.Millisecond)))
	}
	if p.Bytes != nil {
		size = tui.Bytes(*p.Bytes)
	}
	where := tui.Clean(p.URL, room)
	if p.RedirectTo != "" {
		where += " → " + tui.Clean(p.RedirectTo, room)
	}
	return fmt.Sprintf("%-7s %-17s %-9s %-11s %5d  %s", status, tui.Clean(p.Outcome, 17), took, size, p.Depth, where)
}

func (c *jobPagesCmd) Run(st *streams) error {
	q := url.Values{}
	for name, v := range map[string]string{"status": c.Status, "outcome": c.Outcome, "host": c.Host, "q": c.Match, "kind": c.Kind, "depth": c.Depth} {
		set(q, name, v)
	}
	return list(st, &c.service, jobPath(c.ID, "/pages"), q, c.Limit, "No pages match.", pageHead, func(w io.Writer, p *api.Page) {
		fmt.Fprintln(w, pageLine(p, 0))
	})
}

type jobErrorsCmd struct {
	ID    string `arg:"" help:"ID of the job."`
	Limit int    `help:"At most so many; 0 is all." default:"0" group:"Filters"`
	service
}

func (c *jobErrorsCmd) Help() string {
	return `Examples:
  tiptoe job errors ID
  tiptoe job errors ID --json | jq -r .url

Pages that are broken, each with where it is linked from. Throttled is not
broken: the page is fine, the crawl was too fast.`
}

func (c *jobErrorsCmd) Run(st *streams) error {
	return list(st, &c.service, jobPath(c.ID, "/errors"), nil, c.Limit, "Nothing is broken.", "", func(w io.Writer, p *api.Page) {
		fmt.Fprintln(w, pageLine(p, 0))
		if p.Error != "" {
			fmt.Fprintf(w, "        %s\n", tui.Clean(p.Error, 0))
		}
		for _, from := range p.LinkedFrom {
			fmt.Fprintf(w, "        linked from %s\n", tui.Clean(from, 0))
		}
		if more := p.LinkedFromCount - int64(len(p.LinkedFrom)); more > 0 {
			fmt.Fprintf(w, "        and from %s more\n", tui.Count(more))
		}
	})
}

type jobExplainCmd struct {
	ID  string `arg:"" help:"ID of the job."`
	URL string `arg:"" name:"url" help:"The URL, as found or as typed."`
	service
}

func (c *jobExplainCmd) Help() string {
	return `Examples:
  tiptoe job explain ID https://example.com/docs/
  tiptoe job explain ID example.com/slow --json | jq .waits

Tells the whole trail of one URL, as tiptoe explain does.`
}

func (c *jobExplainCmd) Run(st *streams) error {
	return c.with(func(ctx context.Context, k *api.Client) error {
		var raw json.RawMessage
		if err := k.Get(ctx, jobPath(c.ID, "/explain"), url.Values{"url": {c.URL}}, &raw); err != nil {
			return err
		}
		if c.JSON {
			_, err := fmt.Fprintf(st.out, "%s\n", api.Plain(raw))
			return err
		}
		var x explain.Explanation
		if err := json.Unmarshal(raw, &x); err != nil {
			return fmt.Errorf("%s does not answer as tiptoe does: %w", c.Server, err)
		}
		return x.Text(st.out)
	})
}

type jobExportCmd struct {
	ID     string `arg:"" help:"ID of the job."`
	Format string `short:"f" help:"jsonl (everything), csv (for spreadsheets) or sitemap." default:"jsonl" enum:"jsonl,csv,sitemap"`
	Output string `short:"o" help:"File to write; one whose name ends in .gz is compressed. Without it: standard output." placeholder:"FILE" type:"path"`
	server
}

func (c *jobExportCmd) Help() string {
	return `Examples:
  tiptoe job export ID > pages.jsonl
  tiptoe job export ID --format csv -o pages.csv
  tiptoe job export ID --format sitemap -o sitemap.xml

The file appears only when it is whole.`
}

func (c *jobExportCmd) Run(st *streams) error {
	return c.with(func(ctx context.Context, k *api.Client) error {
		file := &exportCmd{Output: c.Output, Format: "jsonl"}
		if err := file.check(); err != nil {
			return usageError{err}
		}
		n, err := file.into(st.out, func(w io.Writer) (int64, error) {
			return k.Download(ctx, jobPath(c.ID, "/export"), url.Values{"format": {c.Format}}, w)
		})
		if err == nil && c.Output != "" {
			fmt.Fprintf(st.err, "%s in %s\n", tui.Bytes(n), strings.TrimSpace(c.Output))
		}
		return err
	})
}
