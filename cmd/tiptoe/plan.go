package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/plan"
	"tiptoe/internal/tui"
)

type planCmd struct {
	URLs     []string      `arg:"" optional:"" name:"url" help:"Where the crawl would begin. A bare host name will do."`
	Seeds    []string      `help:"File with one URL a line, or - for standard input; repeatable." sep:"none" placeholder:"FILE" group:"Bounds"`
	StartURL []string      `name:"start-url" help:"Same as an argument; repeatable." env:"TIPTOE_START_URL" sep:"none" placeholder:"URL" group:"Bounds"`
	Patience time.Duration `help:"How long robots.txt and sitemaps may take to read." default:"2m" placeholder:"D"`
	JSON     bool          `help:"The plan as one JSON object."`

	config.Stores
	config.Bounds
	config.Web
}

func (c *planCmd) Help() string {
	return `Examples:
  tiptoe plan example.com
  tiptoe plan example.com --delay 1s --max-urls 5000
  tiptoe plan --seeds hosts.txt --json | jq .duration_seconds

Reads robots.txt, the sitemaps and what was learned about the hosts, and fetches nothing else. Says how many pages there are, how long they take at a polite pace, and what limits it. Takes the settings of a crawl and means the same by them. What no sitemap says is unknown.`
}

func (c *planCmd) Run(st *streams) error {
	seeds, err := (&crawlCmd{URLs: c.URLs, Seeds: c.Seeds, StartURL: c.StartURL}).readSeeds(st)
	if err != nil {
		return usageError{err}
	}
	spec, err := config.Spec(&c.Web, &c.Bounds, seeds)
	if err != nil {
		return usageError{err}
	}
	if err := checkWeb(c.Web); err != nil {
		return usageError{err}
	}
	if c.Patience <= 0 {
		return usageErrorf("--patience: %s is too short; write something like 2m", c.Patience)
	}
	if err := checkStores(&c.Stores); err != nil {
		return err
	}
	s := &session{st: st, log: config.Logging{LogLevel: "warn"}}
	p, err := app.Plan(context.Background(), app.Settings{Dir: c.DataDir, Web: c.Web, Log: s.logger(),
		Backends: config.Backends{Database: c.Database, Queue: c.Queue}}, spec, c.Patience)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(st.out)
	if c.JSON {
		writeJSON(w, newPlanAnswer(&p))
	} else {
		printPlan(w, &p)
	}
	return w.Flush()
}

// planAnswer is a plan for programs. What is not known is null.
type planAnswer struct {
	Pages    *int64           `json:"pages"`
	Named    int64            `json:"pages_named"`
	Requests *int64           `json:"requests"`
	Duration *float64         `json:"duration_seconds"`
	LimitBy  []string         `json:"limited_by"`
	Cut      bool             `json:"cut"` // not everything could be read: pages_named is a lower bound
	Asked    int64            `json:"requests_made"`
	Hosts    []planHostAnswer `json:"hosts"`
}

type planHostAnswer struct {
	Host       string   `json:"host"`
	Group      string   `json:"group"`
	Pages      *int64   `json:"pages"`
	Named      int64    `json:"pages_named"`
	Closed     int64    `json:"closed_by_robots"`
	Outside    int64    `json:"out_of_scope"`
	Sitemaps   int64    `json:"sitemaps"`
	Requests   *int64   `json:"requests"`
	Gap        float64  `json:"gap_seconds"`
	GapWhy     string   `json:"gap_because"`
	Blocked    float64  `json:"blocked_seconds"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Learned    *float64 `json:"learned_delay_seconds"`
	Duration   *float64 `json:"duration_seconds"`
	Trouble    *string  `json:"trouble"`
}

func newPlanAnswer(p *plan.Plan) planAnswer {
	a := planAnswer{Pages: p.Pages, Named: p.Named, Requests: p.Requests, Duration: inSeconds(p.Time),
		LimitBy: p.LimitBy, Cut: p.Cut, Asked: p.Asked, Hosts: []planHostAnswer{}}
	if a.LimitBy == nil {
		a.LimitBy = []string{}
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		ha := planHostAnswer{Host: h.Name, Group: h.Group, Named: h.Pages, Closed: h.Closed, Outside: h.Outside,
			Sitemaps: h.Sitemaps, Requests: h.Requests, Gap: h.Each.Seconds(), GapWhy: h.Why.String(),
			Blocked: h.Blocked.Seconds(), Duration: inSeconds(h.Time)}
		if h.Known {
			ha.Pages = &h.Pages
		}
		if h.CrawlDelay > 0 {
			ha.CrawlDelay = inSeconds(&h.CrawlDelay)
		}
		if h.Clocks.Learned > 0 {
			ha.Learned = inSeconds(&h.Clocks.Learned)
		}
		if h.Trouble != "" {
			ha.Trouble = &h.Trouble
		}
		a.Hosts = append(a.Hosts, ha)
	}
	return a
}

func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Round(time.Millisecond).Seconds()
	return &s
}

// planHosts is how many hosts the table shows; they are in the order of the
// time they take.
const planHosts = 30

func printPlan(w io.Writer, p *plan.Plan) {
	fmt.Fprintf(w, "%10s %8s %9s  %-34s %-14s %s\n", "pages", "closed", "sitemaps", "one request every", "time", "host")
	for i := range p.Hosts[:min(len(p.Hosts), planHosts)] {
		h := &p.Hosts[i]
		pages, span := "unknown", "unknown"
		if h.Known {
			pages, span = tui.Count(h.Pages), tui.Duration(*h.Time)
		}
		pace := tui.Duration(h.Each) + " (" + h.Why.String() + ")"
		fmt.Fprintf(w, "%10s %8s %9s  %-34s %-14s %s\n", pages, tui.Count(h.Closed), tui.Count(h.Sitemaps), pace, span, tui.Clean(h.Name, 0))
		if h.Trouble != "" {
			fmt.Fprintf(w, "%10s %s\n", "", tui.Clean(h.Trouble, 100))
		}
	}
	if n := len(p.Hosts) - planHosts; n > 0 {
		fmt.Fprintf(w, "%10s and %s that take less time\n", "", hosts(n))
	}
	fmt.Fprintln(w)
	line := func(name, text string) { fmt.Fprintf(w, "%-11s %s\n", name, text) }
	if p.Pages != nil {
		line("pages", tui.Count(*p.Pages))
		line("requests", tui.Count(*p.Requests)+", without redirects and retries")
		line("time", "about "+tui.Duration(*p.Time)+" at a polite pace")
	} else {
		line("pages", fmt.Sprintf("unknown; %s named", tui.Count(p.Named)))
		line("requests", "unknown")
		line("time", "unknown")
		if h := slowest(p); h != nil {
			line("", fmt.Sprintf("1,000 pages of %s would take %s", tui.Clean(h.Name, 0), tui.Duration(1000*h.Each)))
		}
	}
	for i, why := range p.LimitBy {
		name := ""
		if i == 0 {
			name = "limited by"
		}
		line(name, tui.Clean(why, 0))
	}
	if p.Cut {
		line("", "Not everything could be read in time; --patience allows more.")
	}
	line("asked", fmt.Sprintf("%s requests, for robots.txt and sitemaps only", tui.Count(p.Asked)))
}

// slowest is the host of unknown size with the longest gap.
func slowest(p *plan.Plan) (slow *plan.HostPlan) {
	for i := range p.Hosts {
		if h := &p.Hosts[i]; !h.Known && h.Each > 0 && (slow == nil || h.Each > slow.Each) {
			slow = h
		}
	}
	return slow
}
