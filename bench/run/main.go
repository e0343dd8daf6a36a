// Command run measures tiptoe against other crawlers on the same simulated
// site, on the same machine, in the same minutes.
//
// # What is fair
//
// The farm runs in a process of its own on one core; each crawler gets one
// other core, pinned the same way for everyone, and the same number of
// requests at once. Nobody's GOMAXPROCS is set: a Go program sees the one core
// it was given. The crawlers take turns (one round is one run of each, the
// order rotates), so that whatever else the machine does hits all of them.
// Medians over the rounds are reported. What the crawlers say about themselves
// is ignored: pages, duplicates and completeness come from the farm's books,
// wall time, processor time and memory from the kernel's account of the ended
// process (so starting up and writing results out is included).
//
// On a machine that others use too, a crawler may get less than its core; the
// column "core used" shows it. Then pages/s compares the neighbours, and only
// the processor time compares the crawlers.
//
// They do not do the same work: tiptoe obeys robots.txt, stores every page's
// outcome and evidence durably and can resume; Colly here keeps links in
// memory and stores nothing; wget2 writes the files and deletes them. The bare
// row fetches a given list and does nothing, as the floor.
//
// # Ends
//
// Exit code 0 when every run that was started ended well, 1 when tiptoe's
// crawl was incomplete or anything failed, 2 for usage. A crawler that is not
// there is skipped with a sentence.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type flags struct {
	Pages      int           `default:"20000" help:"Pages of the site."`
	Links      int           `default:"60" help:"Links per page."`
	PageSize   int           `default:"20480" help:"Bytes of a page."`
	Parallel   int           `default:"16" help:"Requests at once, for every crawler."`
	Rounds     int           `default:"3" help:"Runs of each crawler."`
	Seed       uint64        `default:"1" help:"Draws the site."`
	Latency    time.Duration `help:"Delay of every answer."`
	Only       []string      `help:"Crawlers to run (tiptoe, colly, wget2, bare); default: all that are there."`
	Bare       bool          `default:"true" negatable:"" help:"Run the bare client too, as the floor."`
	TiptoeArgs []string      `help:"Further arguments for tiptoe crawl." sep:" "`
	Core       int           `default:"0" help:"Core of the crawlers."`
	FarmCore   int           `default:"1" help:"Core of the farm."`
	Timeout    time.Duration `default:"15m" help:"Longest time for one run."`
	JSON       string        `name:"json" help:"File for all figures as JSON."`
	Keep       string        `help:"Folder to keep binaries and data in (default: a temporary one, removed)."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("run"), kong.Description("Measure tiptoe against Colly, wget2 and a bare client."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	dir := f.Keep
	if dir == "" {
		d, err := os.MkdirTemp("", "tiptoe-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(d)
		dir = d
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	all, err := prepare(ctx, f, dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no crawler to run")
	}
	farm, err := startFarm(ctx, f, dir)
	if err != nil {
		return err
	}
	defer farm.stop()

	report := Report{Site: Site{f.Pages, f.Links, f.PageSize, f.Latency.Seconds()}, Parallel: f.Parallel, Pinned: canPin(f.Core, f.FarmCore)}
	var runs []Run
	for round := range f.Rounds {
		for n := range all {
			c := all[(n+round)%len(all)]
			r, err := measure(ctx, f, c, farm, dir)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.Round = round + 1
			runs = append(runs, r)
			fmt.Fprintf(os.Stderr, "round %d  %-7s %7.0f pages/s  %6.1f ms CPU/1000 pages  complete %.2f %%%s\n",
				r.Round, r.Name, r.PagesPerSecond, r.CPUPer1000*1000, r.Complete*100, r.note())
		}
	}
	report.Runs = runs
	report.Medians = medians(all, runs)
	report.table(os.Stdout)
	if f.JSON != "" {
		b, err := json.MarshalIndent(report, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.JSON, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	return verdict(runs)
}

// verdict turns broken promises into an error.
func verdict(runs []Run) error {
	for _, r := range runs {
		if r.Failure != "" {
			return fmt.Errorf("round %d: %s failed: %s", r.Round, r.Name, r.Failure)
		}
		if r.Name == "tiptoe" && r.Complete < 1 {
			return fmt.Errorf("round %d: tiptoe fetched %d of %d pages", r.Round, r.Pages, r.Expected)
		}
	}
	return nil
}
