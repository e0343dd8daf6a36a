package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	api "tiptoe/internal/client"
	"tiptoe/internal/limits"
	"tiptoe/internal/tui"
)

type jobLimitsCmd struct {
	whose
	service
}

func (c *jobLimitsCmd) Help() string {
	return `Examples:
  tiptoe job limits
  tiptoe job run example.com --pages 500 --dry-run   for one order

Safety comes first, then the plan, then what is left of the month, then what the
order asks for; the lowest holds. Only the operator can raise a cap.`
}

func (c *jobLimitsCmd) Run(st *streams) error {
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Get(ctx, "/v1/limits", c.query(), into)
	}, func(w io.Writer, l *api.Limits) {
		span := "no limit"
		if ms := l.Safety.TimeoutMS; ms > 0 {
			span = tui.Duration(time.Duration(ms) * time.Millisecond)
		}
		fmt.Fprintf(w, "%-20s %-14s %s\n", "", "SAFETY", "PLAN "+tui.Clean(l.Plan.Name, 40))
		fmt.Fprintf(w, "%-20s %-14s %s\n", "pages per crawl", most(l.Safety.MaxPages), most(l.Plan.Pages))
		fmt.Fprintf(w, "%-20s %-14s %s\n", "crawls at once", most(l.Safety.MaxCrawls), most(l.Plan.Crawls))
		fmt.Fprintf(w, "%-20s %-14s %s\n", "time per crawl", span, "-")
		fmt.Fprintf(w, "%-20s %-14s %s\n", "per host", "-", most(l.Plan.PerHost))
		fmt.Fprintf(w, "%-20s %-14s %d\n", "schedules", "-", l.Plan.Schedules)
		fmt.Fprintf(w, "%-20s %-14s %s\n\n", "pages per month", "-", most(l.Plan.Quota))
		showUsage(w, &l.Usage)
	})
}

type jobUsageCmd struct {
	Month string `help:"Year and month, such as 2026-11; by default this one." placeholder:"M"`
	whose
	service
}

func (c *jobUsageCmd) Run(st *streams) error {
	q := c.query()
	set(q, "month", c.Month)
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Get(ctx, "/v1/usage", q, into)
	}, showUsage)
}

func showUsage(w io.Writer, u *api.Usage) {
	fmt.Fprintf(w, "%s: %s used, %s reserved", tui.Clean(u.Month, 10), pageCount(u.Used), tui.Count(u.Reserved))
	if u.Quota == nil {
		fmt.Fprintln(w, "; there is no quota")
		return
	}
	fmt.Fprintf(w, " of %s", tui.Count(*u.Quota))
	if u.Left != nil {
		fmt.Fprintf(w, "; %s left", tui.Count(*u.Left))
	}
	fmt.Fprintf(w, " until %s UTC\n", u.Resets.UTC().Format(time.DateTime))
}

type jobPlansCmd struct{ service }

func (c *jobPlansCmd) Run(st *streams) error {
	row := "%-14s %-16s %-16s %-10s %-10s %s"
	head := fmt.Sprintf(row, "PLAN", "PAGES PER CRAWL", "CRAWLS AT ONCE", "PER HOST", "SCHEDULES", "PAGES PER MONTH")
	return list(st, &c.service, "/v1/plans", nil, api.Whole, "No plans.", head, func(w io.Writer, p *limits.Plan) {
		fmt.Fprintf(w, row+"\n", tui.Clean(p.Name, 14), most(p.Pages), most(p.Crawls), most(p.PerHost), tui.Count(int64(p.Schedules)), most(p.Quota))
	})
}

type jobSchedulesCmd struct {
	List   schedulesListCmd   `cmd:"" default:"withargs" help:"List schedules."`
	Add    schedulesAddCmd    `cmd:"" help:"Order something again and again."`
	Remove schedulesRemoveCmd `cmd:"" help:"Remove schedules; their jobs stay."`
}

func (c *jobSchedulesCmd) Help() string {
	return `Examples:
  tiptoe job schedules
  tiptoe job schedules add 24h example.com --name nightly --pages 200
  tiptoe job schedules add '0 3 * * 1' example.com    Mondays at 03:00 UTC
  tiptoe job schedules remove ID

A time that comes while the last job still runs is skipped and counted.`
}

type schedulesListCmd struct {
	whose
	service
}

func (c *schedulesListCmd) Run(st *streams) error {
	row := "%-26s  %-12s %-19s  %-26s  %7s  %s"
	head := fmt.Sprintf(row, "ID", "RULE", "NEXT", "LAST JOB", "SKIPPED", "NAME")
	return list(st, &c.service, "/v1/schedules", c.query(), api.Whole, "No schedules.", head, func(w io.Writer, s *api.Schedule) {
		next := clock(s.Next)
		if !s.Enabled {
			next = "rests"
		}
		fmt.Fprintf(w, row+"\n", tui.Clean(s.ID, 40), tui.Clean(s.Rule, 40), next, orNothing(word(s.LastJob)), tui.Count(s.Skipped), tui.Clean(s.Name, 60))
		if note := word(s.Note); note != "" {
			fmt.Fprintf(w, "%-26s  %s\n", "", note)
		}
	})
}

type schedulesAddCmd struct {
	Rule string   `arg:"" help:"6h, 12h, 24h, 48h, or five fields of cron in UTC, in quotes."`
	URL  []string `arg:"" name:"url" help:"Where to begin."`
	Name string   `help:"A name for people." placeholder:"TEXT"`
	order
	whose
	service
}

func (c *schedulesAddCmd) Run(st *streams) error {
	body := map[string]any{"name": c.Name, "rule": c.Rule, "job": c.request(c.URL), "enabled": true}
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Post(ctx, "/v1/schedules", c.query(), body, into)
	}, func(w io.Writer, s *api.Schedule) {
		fmt.Fprintln(w, tui.Clean(s.ID, 0))
		fmt.Fprintf(st.err, "first at %s\n", clock(s.Next))
	})
}

type schedulesRemoveCmd struct {
	ID []string `arg:"" help:"IDs of schedules."`
	server
}

func (c *schedulesRemoveCmd) Run(st *streams) error {
	return c.remove(st, "/v1/schedules/", c.ID, nil, "removed")
}

// remove deletes things, one after the other.
func (s *server) remove(st *streams, path string, ids []string, q url.Values, done string) error {
	return s.with(func(ctx context.Context, k *api.Client) error {
		for _, id := range ids {
			if err := k.Delete(ctx, path+api.Escape(id), q); err != nil {
				return err
			}
			fmt.Fprintf(st.err, "%s is %s\n", tui.Clean(id, 0), done)
		}
		return nil
	})
}

func orNothing(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type jobDomainsCmd struct {
	List   jobDomainsListCmd   `cmd:"" default:"withargs" help:"List hosts and what was learned about them."`
	Forget jobDomainsForgetCmd `cmd:"" help:"Forget what was learned about hosts; for the operator."`
}

func (c *jobDomainsCmd) Help() string {
	return `Examples:
  tiptoe job domains --job ID             the hosts of one job
  tiptoe job domains --learned            an operator's view of all
  tiptoe job domains forget example.com   the next crawl begins without it`
}

type jobDomainsListCmd struct {
	Job     string `help:"The hosts of this job; needed unless the key is an operator's." placeholder:"ID" group:"Filters"`
	Match   string `help:"Part of the host." placeholder:"P" group:"Filters"`
	Learned bool   `help:"Only hosts with a learned delay, a block or failures." group:"Filters"`
	Limit   int    `help:"At most so many; 0 is all." default:"0" group:"Filters"`
	service
}

func (c *jobDomainsListCmd) Run(st *streams) error {
	q := url.Values{}
	set(q, "job", c.Job)
	set(q, "q", c.Match)
	if c.Learned {
		q.Set("learned", "true")
	}
	row := "%-10s %-10s %-11s %-34s %s"
	head := fmt.Sprintf(row, "DELAY", "FLOOR", "CRAWL-DELAY", "BLOCKED", "HOST")
	return list(st, &c.service, "/v1/domains", q, c.Limit, "No hosts.", head, func(w io.Writer, d *api.Domain) {
		block := "-"
		if d.BlockedUntil != nil && d.BlockedUntil.After(time.Now()) {
			block = tui.Clean("until "+clock(d.BlockedUntil)+" "+word(d.BlockReason), 34)
		}
		fmt.Fprintf(w, row+"\n", millis(d.DelayMS), millis(d.FloorMS), millis(d.CrawlDelayMS), block, tui.Clean(d.Host, 0))
	})
}

type jobDomainsForgetCmd struct {
	Host []string `arg:"" help:"Hosts as they are listed."`
	server
}

func (c *jobDomainsForgetCmd) Run(st *streams) error {
	return c.remove(st, "/v1/domains/", c.Host, nil, "forgotten")
}
