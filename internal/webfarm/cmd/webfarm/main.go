// Command webfarm runs a simulated web until it is told to stop, and then
// writes what it saw.
//
// It prints three lines a script can read: the address, the first seed, and
// how to resolve the hosts (empty if they need no resolving). SIGTERM or
// SIGINT stops it; the books go to the file named by --books, or nowhere.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"tiptoe/internal/webfarm"
)

type flags struct {
	Listen      string        `default:"127.0.0.1:0" help:"Address to listen on."`
	Placement   string        `enum:",one,names,addresses,ports" default:"" help:"How hosts are told apart: one, names, addresses or ports."`
	NameFormat  string        `default:"h%04d.farm.test" help:"Pattern of host names for --placement=names."`
	Seed        uint64        `default:"1" help:"Draws the whole web."`
	Hosts       int           `default:"1" help:"Number of hosts."`
	Pages       int           `default:"1000" help:"Pages per host."`
	Links       int           `default:"60" help:"Links per page."`
	Fanout      int           `help:"Children of a page in the tree of pages (default: a sixth of the links)."`
	PageSize    int           `default:"20480" help:"Bytes of a page."`
	CrossHost   float64       `help:"Share of extra links that lead to other hosts."`
	Redirects   float64       `help:"Share of pages linked through a redirect."`
	Errors      float64       `help:"Share of page answers that are 503."`
	Latency     time.Duration `help:"Delay of every answer."`
	Jitter      time.Duration `help:"Random delay on top of it."`
	Rate        float64       `help:"Requests a second a host accepts (0: any number)."`
	Burst       int           `default:"1" help:"Requests at once the rate limit forgives."`
	RetryAfter  time.Duration `help:"Retry-After sent with 429 (0: none)."`
	CrawlDelay  string        `help:"Crawl-delay in robots.txt."`
	RobotsFile  string        `type:"existingfile" help:"File to serve as robots.txt."`
	NoRobots    bool          `help:"Answer 404 for robots.txt."`
	ClosedLinks bool          `help:"Link on every page into an area closed by robots.txt."`
	Sitemap     bool          `help:"Publish all pages in sitemaps."`
	Books       string        `help:"File to write the books to at the end."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("webfarm"), kong.Description("A simulated web that keeps its own books."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, f, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags, out io.Writer) error {
	c := webfarm.Config{
		Seed: f.Seed, Listen: f.Listen, Placement: webfarm.Placement(f.Placement), NameFmt: f.NameFormat,
		Hosts: f.Hosts, Pages: f.Pages, Links: f.Links, Fanout: f.Fanout, PageSize: f.PageSize,
		CrossHost: f.CrossHost, Redirects: f.Redirects, Errors: f.Errors, Latency: f.Latency, Jitter: f.Jitter,
		Rate:       webfarm.RateLimit{PerSecond: f.Rate, Burst: f.Burst, RetryAfter: f.RetryAfter},
		CrawlDelay: f.CrawlDelay, NoRobots: f.NoRobots, ClosedLinks: f.ClosedLinks, Sitemap: f.Sitemap,
	}
	if f.RobotsFile != "" {
		b, err := os.ReadFile(f.RobotsFile)
		if err != nil {
			return fmt.Errorf("webfarm: read robots.txt: %w", err)
		}
		c.RobotsTxt = string(b)
	}
	farm, err := webfarm.Start(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "address:", farm.Addr())
	fmt.Fprintln(out, "seed:", farm.Seeds()[0])
	fmt.Fprintln(out, "resolve:", strings.Join(farm.Resolve(), " "))
	<-ctx.Done()
	farm.Close()
	if f.Books == "" {
		return nil
	}
	b, err := json.MarshalIndent(farm.Books(), "", " ")
	if err != nil {
		return fmt.Errorf("webfarm: write books: %w", err)
	}
	if err := os.WriteFile(f.Books, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("webfarm: write books: %w", err)
	}
	return nil
}
