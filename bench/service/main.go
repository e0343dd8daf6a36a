// Command service measures the API of tiptoe serve, and what it costs the
// crawls that run beside it.
//
// # What is measured
//
// A built tiptoe runs as a process of its own, with SQLite in a throw-away
// folder. It first crawls a site of --pages pages, so that there is something
// to list. Then, with the API's rate limit out of the way:
//
//   - requests a second, median and 99th percentile of reading a job, of the
//     first page of its list of pages, and of a page deep in that list;
//   - by wrk, if it is installed, the same reads again as a second witness.
//
// Then a crawl runs and its pages are counted by the web that it crawls, in
// phases that alternate: API left alone, API saturated (all connections ask
// as fast as they are answered), alone, saturated. Each saturated phase is
// compared with the two around it; the figure is the median. It is measured
// for a crawl at full speed, which wants all of the machine, and for a paced
// one, which is what a service mostly runs; with the API's limits as shipped
// and without them. Pages per second of tiptoe's own processor time are shown
// beside it.
//
// # What is fair
//
// The simulated web, the load client and tiptoe share the machine's cores, and
// maybe others too, so by the clock the client's own work counts against the
// crawl. Without limits a crawl at full speed must share its processor time
// with whoever asks the API as fast as it can; that figure is shown and not
// judged. The other three must keep 90 %.
//
// # Ends
//
// Exit code 0 if they do, 1 if not or if anything failed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type flags struct {
	Pages   int           `default:"100000" help:"Pages in the ledger that is listed."`
	Conns   int           `default:"32" help:"Connections of the load client."`
	For     time.Duration `default:"2s" help:"Length of one measurement and of one phase."`
	Rounds  int           `default:"9" help:"Phases with a saturated API; there is one more without."`
	Workers int           `default:"64" help:"Workers of tiptoe."`
	Full    bool          `help:"Only the crawl at full speed."`
	Pprof   string        `help:"Address for tiptoe's profiles."`
}

// keep is the share of its pace that a crawl must keep.
const keep = 0.9

func main() {
	var f flags
	kong.Parse(&f, kong.Name("service"), kong.Description("Measure the API of tiptoe serve, and what it costs the crawls beside it."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	dir, err := os.MkdirTemp("", "tiptoe-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBench(ctx, f, dir)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.start(unlimited...); err != nil {
		return err
	}
	if err := b.fill(); err != nil {
		return err
	}
	if err := b.reads(); err != nil {
		return err
	}
	slow := 0
	for _, limits := range []struct {
		name string
		args []string
	}{{"no API limits", unlimited}, {"API limits as shipped", nil}} {
		for _, c := range []crawling{fullSpeed, paced} {
			if f.Full && !c.full {
				continue
			}
			if err := b.start(limits.args...); err != nil {
				return err
			}
			ratio, err := b.beside(c)
			if err != nil {
				return err
			}
			verdict := "ok"
			switch {
			case ratio >= keep:
			case limits.args != nil && c.full:
				verdict = "not judged"
			default:
				verdict = "TOO LOW"
				slow++
			}
			fmt.Printf("%-22s %-25s keeps %5.1f %%  %s\n", limits.name, c.name, 100*ratio, verdict)
		}
	}
	if slow > 0 {
		return fmt.Errorf("a saturated API takes more than %.0f %% of a crawl's pace in %d of 3 cases", 100*(1-keep), slow)
	}
	return nil
}
