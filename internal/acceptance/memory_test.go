//go:build linux

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// Every host's home page links to all its other pages, so each host queues
// them as soon as it was asked once; at a slow pace they then stay queued.
func Test_many_queued_URLs_on_many_hosts_fit_in_memory(t *testing.T) {
	const mb = 1_000_000
	hosts, delay, most := 1_000, "2s-4s", int64(267*mb) // 230 MB for itself, and 370 bytes a URL
	if os.Getenv("TIPTOE_MEMORY") == "full" {
		hosts, delay, most = 10_000, "10s-20s", 600*mb
	}
	const perHost = 115
	queued := int64(hosts) * 100
	farm, err := webfarm.Start(webfarm.Config{
		Seed: 11, Hosts: hosts, Pages: perHost, Links: perHost - 1, Fanout: perHost - 1, Placement: webfarm.Names, NameFmt: "www.site-%05d.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	seeds := filepath.Join(t.TempDir(), "seeds.txt")
	if err := os.WriteFile(seeds, []byte(strings.Join(farm.Seeds(), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"crawl", "--seeds", seeds, "--resolve", farm.Resolve()[0], "--seeding", "none", "--delay", delay}
	began := time.Now()
	p := start(t, filepath.Join(t.TempDir(), "data"), args...)
	p.until(10*time.Minute, "enough is queued", func() bool {
		_, n := p.counts()
		return n >= queued
	})
	// A while longer, for whatever memory lags behind.
	filled := time.Since(began)
	time.Sleep(min(filled/4, 15*time.Second))
	done, n := p.counts()
	now, peak := p.procNumber("VmRSS"), p.procNumber("VmHWM")
	t.Logf("%d URLs queued on %d hosts after %s (%d pages done): resident %d MB, at most %d MB, allowed %d MB",
		n, hosts, filled.Round(time.Second), done, now/mb, peak/mb, most/mb)
	if n < queued {
		t.Errorf("only %d URLs are queued now; want %d at once", n, queued)
	}
	if peak > most {
		t.Errorf("%d MB resident; %d MB is the most", peak/mb, most/mb)
	}
}
