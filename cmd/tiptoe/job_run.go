package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	api "tiptoe/internal/client"
	"tiptoe/internal/limits"
	"tiptoe/internal/tui"
)

// order is what is asked for. None of it can raise a cap.
type order struct {
	Pages       *int64        `help:"Pages at most." placeholder:"N" group:"Order"`
	Duration    time.Duration `help:"Time at most, from the moment the job has its slot." placeholder:"D" group:"Order"`
	Depth       *int          `help:"Links from where it begins." placeholder:"N" group:"Order"`
	Scope       string        `help:"What belongs: host, domain or any." enum:",host,domain,any" default:"" placeholder:"S" group:"Order"`
	Include     []string      `help:"Only URLs that match; repeatable. /path prefix, glob with *, re:REGEXP, or a substring." sep:"none" placeholder:"P" group:"Order"`
	Exclude     []string      `help:"No URL that matches; repeatable." sep:"none" placeholder:"P" group:"Order"`
	Seeding     string        `help:"Where URLs come from besides links: none or sitemap." placeholder:"S" group:"Order"`
	Profile     string        `help:"Bundle of defaults: polite, guarded, audit or bulk." enum:",polite,guarded,audit,bulk" default:"" placeholder:"P" group:"Order"`
	Type        string        `help:"crawl, or warm to fill a cache: what it did not have is asked for again." enum:"crawl,warm" default:"crawl" group:"Order"`
	PerHost     *int          `help:"Requests in flight per host." placeholder:"N" group:"Order"`
	Concurrency *int64        `help:"Requests in flight of the whole job, over all hosts and workers." placeholder:"N" group:"Order"`
	Delay       time.Duration `help:"Least time between requests to one host; robots.txt may lengthen it." placeholder:"D" group:"Order"`
	Priority    int           `help:"-10 to 10: among your own jobs that wait, higher goes first." default:"0" group:"Order"`
	Webhook     string        `help:"Told, signed, when the job ends." placeholder:"URL" group:"Order"`
	Label       string        `help:"A name for people." placeholder:"TEXT" group:"Order"`
}

func (o *order) request(urls []string) *api.Request {
	r := &api.Request{Pages: o.Pages, Depth: o.Depth, Scope: o.Scope, Include: o.Include, Exclude: o.Exclude, Seeding: o.Seeding,
		Profile: o.Profile, Type: o.Type, PerHost: o.PerHost, Concurrency: o.Concurrency, Priority: o.Priority, Webhook: o.Webhook, Label: o.Label}
	if r.URL = urls[0]; len(urls) > 1 {
		r.URL, r.URLs = "", urls
	}
	if o.Duration != 0 {
		s := o.Duration.Seconds()
		r.Seconds = &s
	}
	if o.Delay != 0 {
		ms := o.Delay.Milliseconds()
		r.DelayMS = &ms
	}
	return r
}

type jobRunCmd struct {
	URL    []string `arg:"" name:"url" help:"Where to begin; a bare host name will do."`
	Follow bool     `short:"f" help:"Watch the job to its end."`
	DryRun bool     `help:"Show what it would get, and why, without ordering it."`
	Once   string   `help:"A name of your own: the same order under the same name is placed once, however often it is sent." placeholder:"NAME"`
	order
	whose
	service
}

func (c *jobRunCmd) Help() string {
	return `Examples:
  tiptoe job run example.com --follow
  tiptoe job run example.com --pages 500 --dry-run   what would I get?
  tiptoe job run example.com --exclude /search --exclude 're:\?sort='
  tiptoe job run example.com --once nightly-2026-11-15
  id=$(tiptoe job run example.com) && tiptoe job watch $id

The id goes to standard output; what was granted, and why if it is less than
was asked for, to standard error. No order can raise the operator's caps.`
}

func (c *jobRunCmd) Run(st *streams) error {
	r := c.request(c.URL)
	if c.DryRun {
		return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
			return k.Post(ctx, "/v1/limits/preview", c.query(), r, into)
		}, func(w io.Writer, p *api.Preview) {
			showLimits(w, p.Limits)
			switch {
			case !p.OK:
				fmt.Fprintf(w, "it would be refused: %s\n", tui.Clean(p.Message, 0))
			case p.Position == 0:
				fmt.Fprintln(w, "it would begin at once")
			default:
				fmt.Fprintf(w, "it would be number %d in the queue\n", p.Position)
			}
		})
	}
	return c.with(func(ctx context.Context, k *api.Client) error {
		var raw json.RawMessage
		if err := k.Order(ctx, c.query(), c.Once, r, &raw); err != nil {
			return err
		}
		var j api.Job
		if err := json.Unmarshal(raw, &j); err != nil {
			return fmt.Errorf("%s does not answer as tiptoe does: %w", c.Server, err)
		}
		if c.JSON {
			fmt.Fprintf(st.out, "%s\n", api.Plain(raw))
		} else {
			fmt.Fprintln(st.out, tui.Clean(j.ID, 0))
			showLimits(st.err, j.Limits)
		}
		if !c.Follow {
			fmt.Fprintf(st.err, "%s; \"tiptoe job watch %s\" follows it\n", stateOf(&j), tui.Clean(j.ID, 0))
			return nil
		}
		return follow(ctx, st, k, j.ID, c.JSON, false)
	})
}

// showLimits says what an order gets, and why if that is less than it asked for.
func showLimits(w io.Writer, e *limits.Effective) {
	if e == nil {
		return
	}
	by := func(b limits.By) string {
		if b == limits.ByNobody {
			return ""
		}
		return " (" + tui.Clean(string(b), 40) + ")"
	}
	span := "no limit"
	if e.TimeMS > 0 {
		span = tui.Duration(e.Time())
	}
	fmt.Fprintf(w, "pages     %s%s\n", most(e.Pages), by(e.PagesBy))
	fmt.Fprintf(w, "time      %s%s\n", span, by(e.TimeBy))
	fmt.Fprintf(w, "per host  %s\n", most(e.PerHost))
	for _, r := range e.Reasons {
		fmt.Fprintf(w, "note: %s\n", tui.Clean(r.Message, 0))
	}
}

// stateOf is a job's status with what a person wants to know beside it.
func stateOf(j *api.Job) string {
	s := tui.Clean(j.Status, 20)
	if t := word(j.WaitingFor); t != "" {
		s += ", waits: " + t
	} else if j.Position != nil {
		s += fmt.Sprintf(", number %d in the queue", *j.Position)
	}
	if t := word(j.Error); t != "" {
		s += ": " + t
	}
	return s
}

// jobPath is where a job, or a part of it, is.
func jobPath(id, part string) string { return "/v1/jobs/" + api.Escape(id) + part }

// change is a POST on a job.
func (s *service) change(st *streams, id, verb string) error {
	return one(st, s, func(ctx context.Context, k *api.Client, into any) error {
		return k.Post(ctx, jobPath(id, "/"+verb), nil, nil, into)
	}, func(w io.Writer, j *api.Job) { fmt.Fprintf(w, "%s  %s\n", tui.Clean(j.ID, 0), stateOf(j)) })
}

type jobPauseCmd struct {
	ID string `arg:"" help:"ID of the job."`
	service
}

func (c *jobPauseCmd) Run(st *streams) error { return c.change(st, c.ID, "pause") }

type jobResumeCmd struct {
	ID string `arg:"" help:"ID of the job."`
	service
}

func (c *jobResumeCmd) Run(st *streams) error { return c.change(st, c.ID, "resume") }

type jobCancelCmd struct {
	ID string `arg:"" help:"ID of the job."`
	service
}

func (c *jobCancelCmd) Run(st *streams) error { return c.change(st, c.ID, "cancel") }

type jobDeleteCmd struct {
	ID []string `arg:"" help:"IDs of jobs that have ended."`
	server
}

func (c *jobDeleteCmd) Run(st *streams) error { return c.remove(st, "/v1/jobs/", c.ID, nil, "deleted") }

type jobListCmd struct {
	Status   string `help:"queued, running, paused, completed, partial, failed, cancelled; comma-separated." placeholder:"S" group:"Filters"`
	Type     string `help:"crawl or warm." placeholder:"T" group:"Filters"`
	Schedule string `help:"Those that this schedule ordered." placeholder:"ID" group:"Filters"`
	Match    string `help:"Part of a URL or of the id." placeholder:"P" group:"Filters"`
	Limit    int    `help:"At most so many; 0 is all." default:"20" group:"Filters"`
	whose
	service
}

func (c *jobListCmd) Help() string {
	return `Examples:
  tiptoe job list
  tiptoe job list --status queued,running
  tiptoe job list --tenant '*' --status failed     an operator's view of all
  tiptoe job list --json | jq -r 'select(.success == false) | .id'`
}

func (c *jobListCmd) Run(st *streams) error {
	q := c.query()
	for name, v := range map[string]string{"status": c.Status, "type": c.Type, "schedule": c.Schedule, "q": c.Match} {
		set(q, name, v)
	}
	head := fmt.Sprintf("%-26s  %-10s %9s %8s  %-19s  %s", "ID", "STATUS", "PAGES", "FAILED", "ORDERED", "BEGINS AT")
	return list(st, &c.service, "/v1/jobs", q, c.Limit, "No jobs.", head, func(w io.Writer, j *api.Job) {
		where := ""
		if len(j.URLs) > 0 {
			where = tui.Clean(j.URLs[0], 70)
		}
		if n := len(j.URLs); n > 1 {
			where += fmt.Sprintf(" and %d more", n-1)
		}
		if j.Label != "" {
			where += "  (" + tui.Clean(j.Label, 40) + ")"
		}
		fmt.Fprintf(w, "%-26s  %-10s %9s %8s  %-19s  %s\n", tui.Clean(j.ID, 40), tui.Clean(j.Status, 10), tui.Count(j.Progress.Processed),
			tui.Count(j.Progress.Failed), clock(&j.Created), where)
	})
}

type jobShowCmd struct {
	ID string `arg:"" help:"ID of the job."`
	service
}

func (c *jobShowCmd) Run(st *streams) error {
	return one(st, &c.service, func(ctx context.Context, k *api.Client, into any) error {
		return k.Get(ctx, jobPath(c.ID, ""), url.Values{}, into)
	}, showJob)
}

func showJob(w io.Writer, j *api.Job) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-9s %s\n", name, text)
		}
	}
	line("job", tui.Clean(j.ID, 0))
	line("label", tui.Clean(j.Label, 0))
	line("status", stateOf(j))
	kind := tui.Clean(j.Type, 0)
	if j.Profile != "" {
		kind += ", profile " + tui.Clean(j.Profile, 0)
	}
	line("type", kind)
	for i, u := range j.URLs {
		if i == 5 {
			line("", fmt.Sprintf("and %d more", len(j.URLs)-i))
			break
		}
		line([]string{"begins at", ""}[min(i, 1)], tui.Clean(u, 0))
	}
	line("ordered", clock(&j.Created))
	line("began", clock(j.Started))
	end := clock(j.Ended)
	if j.Started != nil && j.Ended != nil {
		end += ", after " + tui.Duration(j.Ended.Sub(*j.Started))
	}
	line("ended", end)
	line("schedule", word(j.Schedule))
	line("webhook", word(j.Webhook))
	showLimits(w, j.Limits)
	line("budget", fmt.Sprintf("%s spent, %s reserved", pageCount(j.Pages.Spent), tui.Count(j.Pages.Reserved)))
	line("progress", progress(&j.Progress))
	if j.Progress.Queued != nil {
		line("", tui.Count(*j.Progress.Queued)+" URLs wait")
	}
	if eta := j.Progress.ETA; eta != nil {
		line("left", tui.Duration(time.Duration(*eta*float64(time.Second)))+" ("+word(j.Progress.ETAReason)+")")
	}
}

// progress is a job's counters in one line; what is 0 is not worth a word.
func progress(p *api.Progress) string {
	s := pageCount(p.Processed) + ", " + tui.Count(p.Successful) + " successful"
	for _, x := range []struct {
		n    int64
		what string
	}{{p.Failed, "failed"}, {p.Throttled, "throttled"}, {p.Blocked, "blocked by robots.txt"}, {p.Timeouts, "timeouts"}, {p.HTTP429, "answers of 429"}, {p.Retries, "retries"}} {
		if x.n > 0 {
			s += ", " + tui.Count(x.n) + " " + x.what
		}
	}
	return s + ", " + tui.Bytes(p.Bytes)
}

func pageCount(n int64) string {
	if n == 1 {
		return "1 page"
	}
	return tui.Count(n) + " pages"
}
