package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/webfarm"
)

// Hosts that always have work due must not keep others from their robots.txt:
// its slots are few, and once there were hosts that nobody had asked for it
// after a million pages of the rest.
func Test_no_host_waits_for_its_robots_txt_until_the_others_are_done(t *testing.T) {
	farm, err := webfarm.Start(webfarm.Config{Seed: 3, Hosts: 60, Pages: 80, Latency: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	seeds := filepath.Join(t.TempDir(), "seeds.txt")
	if err := os.WriteFile(seeds, []byte(strings.Join(farm.Seeds(), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir, "crawl", "--seeds", seeds, "--resolve", farm.Resolve()[0], "--seeding", "none",
		"--delay", "0", "--workers", "8", "--robots-slots", "2")
	if code := p.wait(2 * time.Minute); code != 0 {
		t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	rows := requestsOf(t, dir)
	slices.SortFunc(rows, func(a, b ledger.Request) int { return a.Started.Compare(b.Started) })
	last := 0
	for i, r := range rows {
		if r.Kind == "robots" {
			last = i
		}
	}
	t.Logf("the last of 60 robots.txt was request %d of %d", last+1, len(rows))
	if last > len(rows)/4 {
		t.Errorf("a host waited for its robots.txt until request %d of %d", last+1, len(rows))
	}
}
