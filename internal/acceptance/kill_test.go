package acceptance

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/outcome"
	"tiptoe/internal/webfarm"
)

// kills is how often the crawl is killed, and how many pages it has.
func kills(t *testing.T) (times, pages int) {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("TIPTOE_KILLS"))
	switch {
	case os.Getenv("TIPTOE_KILLS") == "":
		return 5, 3_000
	case err != nil || n < 1:
		t.Fatalf("TIPTOE_KILLS=%s is not a number of kills", os.Getenv("TIPTOE_KILLS"))
	}
	return n, 10_000
}

// seeded prints the seed of a test's draws, or takes the one from the
// environment, so that a failure can be had again.
func seeded(t *testing.T) (uint64, *rand.Rand) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TIPTOE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("TIPTOE_SEED: %v", err)
		}
	}
	t.Logf("TIPTOE_SEED=%d", seed)
	return seed, rand.New(rand.NewPCG(seed, 1))
}

func Test_kill_9_at_random_instants_loses_no_page_and_repeats_at_most_what_was_in_hand(t *testing.T) {
	const workers = 16
	times, pages := kills(t)
	seed, draw := seeded(t)
	const hosts = 4
	farm, err := webfarm.Start(webfarm.Config{
		Seed: seed, Hosts: hosts, Pages: pages / hosts, Links: 12, CrossHost: 0.3, Redirects: 0.05, ClosedLinks: true, Sitemap: true,
		Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	crawl := []string{"crawl", farm.Seeds()[0], "--delay", "0", "--per-host", "8", "--workers", strconv.Itoa(workers), "--resolve", farm.Resolve()[0]}

	// What an uninterrupted crawl finds, and how long it takes.
	whole := filepath.Join(t.TempDir(), "whole")
	began := time.Now()
	p := start(t, whole, crawl...)
	if code := p.wait(5 * time.Minute); code != 0 {
		t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	took := time.Since(began)
	books := farm.Books()
	if books.Missing != 0 || books.Duplicates != 0 {
		t.Fatalf("uninterrupted: %d pages missing, %d served twice", books.Missing, books.Duplicates)
	}
	needed := books.Requests

	// The longest waits together take less than that crawl, so it cannot be
	// done before the last kill.
	farm.Reset()
	dir := filepath.Join(t.TempDir(), "killed")
	args := crawl
	for n := range times {
		instant := time.Duration(draw.Float64() * 0.75 * float64(took) / float64(times))
		p := start(t, dir, args...)
		select {
		case <-p.Ended:
			t.Fatalf("run %d ended by itself with %d; tiptoe said:\n%s", n+1, p.Cmd.ProcessState.ExitCode(), p.Stderr)
		case <-time.After(instant):
		}
		if !p.Kill() {
			t.Fatalf("run %d was not killed; tiptoe said:\n%s", n+1, p.Stderr)
		}
		if resumable(dir) {
			args = []string{"resume", "--workers", strconv.Itoa(workers)}
		}
	}
	p = start(t, dir, args...)
	if code := p.wait(5 * time.Minute); code != 0 {
		t.Fatalf("exit code %d after the last kill; tiptoe said:\n%s", code, p.Stderr)
	}

	found := pagesOf(t, dir)
	sameSet(t, "the killed crawl", "the uninterrupted one", ends(found), ends(pagesOf(t, whole)))
	var expected, ok []string
	for u := range farm.URLs() {
		expected = append(expected, u)
	}
	for u, page := range found {
		if page.Outcome == outcome.OK && page.Kind == "page" {
			ok = append(ok, u)
		}
	}
	sameSet(t, "the killed crawl", "the farm", set(ok), set(expected))

	books = farm.Books()
	again := books.Requests - needed
	t.Logf("%d kills of a crawl of %d pages that takes %s: %d requests, %d more than without kills (at most %d allowed), of these robots.txt %d, sitemaps %d; ledger: %s",
		times, pages, took.Round(10*time.Millisecond), books.Requests, again, workers*times, books.Robots-hosts, books.Sitemaps-hosts, tally(found))
	if again > int64(workers*times) {
		t.Errorf("%d requests were repeated; %d kills with %d workers allow %d", again, times, workers, workers*times)
	}
	if books.Closed != 0 {
		t.Errorf("%d requests into what robots.txt closes", books.Closed)
	}
}

// resumable reports whether there is a crawl to go on with: one that is killed
// before that is started again, as a person would.
func resumable(dir string) bool {
	l, err := app.OpenLedger(context.Background(), config.In(dir))
	if err != nil {
		return false
	}
	defer l.Close()
	all, err := l.Crawls(context.Background())
	return err == nil && len(all) > 0
}

// The first moments of a crawl: its folder is made, then the ledger's tables,
// then the crawl's row, then its seeds are queued. Whoever is killed in between
// leaves something that both commands can go on with.
func Test_a_crawl_killed_in_its_first_moments_can_still_be_run(t *testing.T) {
	farm, err := webfarm.Start(webfarm.Config{Seed: 2, Pages: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	begin := []string{"crawl", farm.Seeds()[0], "--delay", "0", "--seeding", "none", "--quiet"}
	for _, moment := range []struct {
		name  string
		leave func(t *testing.T, dir string)
		args  []string
	}{
		{"the ledger's file is empty", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, app.LedgerFile), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, begin},
		{"the ledger has no crawl", func(t *testing.T, dir string) {
			leaveLedger(t, dir, nil)
		}, begin},
		{"the crawl has no seeds in the frontier", func(t *testing.T, dir string) {
			leaveLedger(t, dir, &crawl.Spec{Seeds: farm.Seeds(), Profile: "polite", UserAgent: "tiptoe-test", PerHost: 4, Depth: -1,
				Scope: "host", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxBody: 1 << 20, Timeout: 10 * time.Second, MaxRedirects: 10})
		}, []string{"resume", "--quiet"}},
	} {
		t.Run(moment.name, func(t *testing.T) {
			farm.Reset()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			moment.leave(t, dir)
			p := start(t, dir, moment.args...)
			if code := p.wait(time.Minute); code != 0 {
				t.Errorf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
			}
			if missing := farm.Books().Missing; missing != 0 {
				t.Errorf("%d of 20 pages are missing", missing)
			}
		})
	}
}

// leaveLedger makes a ledger, with a crawl if there is one.
func leaveLedger(t *testing.T, dir string, spec *crawl.Spec) {
	t.Helper()
	l, err := sqlite.Open(filepath.Join(dir, app.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if spec == nil {
		return
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	row := ledger.Crawl{Seeds: spec.Seeds, Spec: raw, Status: ledger.Running, Started: time.Now()}
	if _, err := l.CreateCrawl(context.Background(), &row); err != nil {
		t.Fatal(err)
	}
}
