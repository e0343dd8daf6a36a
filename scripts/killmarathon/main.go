// Command killmarathon crawls a simulated web on real sockets, kills the
// crawler with kill -9 at random instants, resumes it, and asks the web whether
// every page was fetched and how many were fetched again. make kill-marathon
// runs it.
//
// The tests do this for a fixed number of kills; this goes on for as long as
// it is given, another web each round. A broken promise ends it with exit code
// 1, the round's seed, and the data directory left in place.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/webfarm"
)

// patience bounds one life of the crawler. Nothing here takes so long unless
// it hangs.
const patience = 3 * time.Minute

type options struct {
	seed   uint64
	rounds int
	long   time.Duration
	kills  int
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "the first round's seed")
	flag.IntVar(&o.rounds, "rounds", 0, "how many rounds; 0 is as many as the time allows")
	flag.DurationVar(&o.long, "for", 10*time.Minute, "how long")
	flag.IntVar(&o.kills, "kills", 20, "kills in a round, at most")
	flag.Parse()
	if err := marathon(o); err != nil {
		fmt.Fprintln(os.Stderr, "BROKEN", err)
		os.Exit(1)
	}
}

func marathon(o options) error {
	dir, err := os.MkdirTemp("", "tiptoe-kill-")
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "tiptoe")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/tiptoe").CombinedOutput(); err != nil {
		return fmt.Errorf("build tiptoe: %w\n%s", err, out)
	}
	end := time.Now().Add(o.long)
	for n := 0; time.Now().Before(end) && (o.rounds == 0 || n < o.rounds); n++ {
		seed := o.seed + uint64(n)
		data := filepath.Join(dir, fmt.Sprint("round-", seed))
		if err := round(bin, data, seed, o.kills); err != nil {
			return fmt.Errorf("seed %d: %w (data directory kept: %s)", seed, err, data)
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// round crawls one web to its end, however often it is killed on the way.
func round(bin, data string, seed uint64, most int) error {
	r := rand.New(rand.NewPCG(seed, 0))
	c := webfarm.Config{
		Seed: seed, Hosts: 1 + r.IntN(12), Pages: 200 + r.IntN(800), Links: 20, PageSize: 2048 + r.IntN(8192),
		CrossHost: 0.2, Redirects: 0.1, ClosedLinks: true, Sitemap: r.IntN(2) == 0, Latency: time.Duration(r.IntN(10)) * time.Millisecond,
	}
	farm, err := webfarm.Start(c)
	if err != nil {
		return err
	}
	defer farm.Close()
	workers := 4 + r.IntN(60)
	common := []string{"--data-dir", data, "--workers", strconv.Itoa(workers), "--quiet"}
	first := append([]string{"crawl", "--new", "--delay", "0", "--per-host", "8"}, common...)
	for _, v := range farm.Resolve() {
		first = append(first, "--resolve", v)
	}
	first = append(first, farm.Seeds()...)
	again := append([]string{"resume"}, common...)

	kills, begun := 0, time.Now()
	for done := false; !done; {
		args := first
		switch status(bin, data) {
		case "": // killed before it was written down
		case "completed": // killed between its last word and its exit
			done = true
			continue
		default:
			args = again
		}
		wait := time.Duration(0) // to the end
		if kills < most {
			wait = 30*time.Millisecond + time.Duration(r.Int64N(int64(400*time.Millisecond)))
		}
		if done, err = life(bin, args, wait); err != nil {
			return err
		}
		if !done {
			kills++
		}
	}
	b := farm.Books()
	fmt.Printf("seed %d: %d pages on %d hosts, %d workers, %d kills, %d fetched again, %s\n",
		seed, b.Expected, c.Hosts, workers, kills, b.Duplicates, time.Since(begun).Round(time.Millisecond))
	switch {
	case b.Missing > 0:
		return fmt.Errorf("%d pages were never fetched, such as %s", b.Missing, strings.Join(farm.Missing(3), " "))
	case b.Duplicates > int64(workers*kills):
		return fmt.Errorf("%d pages were fetched again; %d kills and %d workers explain %d", b.Duplicates, kills, workers, workers*kills)
	case b.Closed > 0:
		return fmt.Errorf("%d requests for what robots.txt closes", b.Closed)
	}
	return nil
}

// status is what the ledger says of the crawl; empty if it knows of none.
func status(bin, data string) string {
	out, err := exec.Command(bin, "crawls", "--json", "--data-dir", data).Output()
	var c struct{ Status string }
	if err != nil || json.Unmarshal(out, &c) != nil {
		return ""
	}
	return c.Status
}

// life runs the crawler until it ends or, with a wait, is killed.
func life(bin string, args []string, wait time.Duration) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if wait > 0 {
		t := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() }) // it may have ended just before
		defer t.Stop()
	}
	err = cmd.Wait()
	switch {
	case err == nil:
		return true, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, fmt.Errorf("%s did not end in %s\n%s", args[0], patience, out.Bytes())
	case cmd.ProcessState.ExitCode() == -1: // by a signal, and the signal was ours
		return false, nil
	}
	return false, fmt.Errorf("%s: %w\n%s", args[0], err, out.Bytes())
}
