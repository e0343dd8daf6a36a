//go:build linux

package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func Test_a_hundred_thousand_URLs_that_wait_for_one_slow_host_use_no_processor(t *testing.T) {
	const urls, perPage = 100_000, 50_000
	links := func(from int) string {
		var b strings.Builder
		b.WriteString("<!doctype html><title>list</title>\n<a href=/more>more</a>\n")
		for i := range perPage {
			fmt.Fprintf(&b, "<a href=/page/%d>%[1]d</a>\n", from+i)
		}
		return b.String()
	}
	home, more := links(0), links(perPage)
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/":
			fmt.Fprint(w, home)
		case "/more":
			fmt.Fprint(w, more)
		default:
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "come back in an hour", http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(site.Close)
	pprof := "127.0.0.1:" + freePort(t)
	p := start(t, filepath.Join(t.TempDir(), "data"), "crawl", site.URL+"/", "--delay", "100ms", "--per-host", "1", "--seeding", "none", "--pprof", pprof)
	p.until(3*time.Minute, "all URLs are queued", func() bool {
		_, n := p.counts()
		return n >= urls-2
	})
	// The store tidies up behind the flood of new URLs.
	settled := p.cpu()
	p.until(time.Minute, "it has settled", func() bool {
		time.Sleep(time.Second)
		before := settled
		settled = p.cpu()
		return settled-before <= 20*time.Millisecond
	})
	long := 5 * time.Second
	if os.Getenv("TIPTOE_MEMORY") == "full" {
		long = 10 * time.Second
	}
	requests, before := asked.Load(), p.cpu()
	time.Sleep(long)
	used := p.cpu() - before
	running := goroutines(t, pprof)
	t.Logf("%d URLs wait: %s of processor time in %s (%.2f %% of a core), %d goroutines, %d MB resident",
		urls, used, long, 100*used.Seconds()/long.Seconds(), running, p.procNumber("VmRSS")/1_000_000)
	if used > long/100 {
		t.Errorf("%s of processor time in %s is more than 1 %% of a core", used, long)
	}
	if running > 100 {
		t.Errorf("%d goroutines for one host; want fewer than 100", running)
	}
	if n := asked.Load() - requests; n > 0 {
		t.Errorf("%d requests while Retry-After ran", n)
	}
}
