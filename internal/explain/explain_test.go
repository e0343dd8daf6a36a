package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/demo"
	"tiptoe/internal/explain"
	"tiptoe/internal/ledger"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// site is a crawl of the demo web, running or ended.
type site struct {
	t    *testing.T
	dir  string
	port string
	dead string
}

func (s *site) url(u string) string {
	return strings.NewReplacer("DEAD", s.dead, "PORT", s.port).Replace(u)
}

func (s *site) explain(u string) *explain.Explanation {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	x, err := app.Explain(ctx, config.Stores{Results: config.In(s.dir)}, s.url(u), 0)
	if err != nil {
		s.t.Fatalf("%s: %v", u, err)
	}
	return x
}

var volatile = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "TIME"},
	{regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`less than 0\.1 ms`), "N ms"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ms|s)\b`), "N ms"},
	{regexp.MustCompile(`\b\d+ URLs?( waits?)?\b`), "N URLs"},
	{regexp.MustCompile(` is (idle|ready|owed no wait|(running|waiting)( until TIME)?( \((pace|retry backoff)\))?);`), " is STATE;"},
	{regexp.MustCompile(`now \d+;`), "now N;"},
	{regexp.MustCompile(`\(\d+ so far\)`), "(N so far)"},
}

// golden compares a text with what it is to be, times and counts aside.
func (s *site) golden(name string, x *explain.Explanation) {
	s.t.Helper()
	var sb strings.Builder
	if err := x.Text(&sb); err != nil {
		s.t.Fatal(err)
	}
	got := strings.NewReplacer(":"+s.port, ":PORT", ":"+s.dead, ":DEAD").Replace(sb.String())
	for _, v := range volatile {
		got = v.re.ReplaceAllString(got, v.with)
	}
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("%s is now:\n%s\nand was:\n%s", name, got, want)
	}
}

// Test_the_trail_of_every_kind_of_url asks about URLs of one crawl while it runs
// and again when it was stopped, and compares the texts.
func Test_the_trail_of_every_kind_of_url(t *testing.T) {
	web, err := demo.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	s := &site{t: t, dir: t.TempDir()}
	hosts := web.Describe()
	_, s.port, _ = strings.Cut(hosts[0].Name, ":")
	_, s.dead, _ = strings.Cut(hosts[len(hosts)-1].Name, ":")

	perHost := 2
	w := config.Web{Profile: "polite", UserAgent: "tiptoe/test", PerHost: &perHost, Delay: &config.Delay{Min: 20 * time.Millisecond, Max: 40 * time.Millisecond},
		Timeout: 10 * time.Second, MaxBody: 1 << 20, MaxRedirects: 10, Retries: 3, RelNofollow: "follow", Client: config.Client{Resolve: web.Resolve(), HTTP2: true}}
	var seeds []config.Seed
	for _, raw := range web.Seeds() {
		seed, err := config.ParseSeed(raw, "demo")
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	spec, err := config.Spec(&w, &config.Bounds{Depth: -1, Scope: "domain", Seeding: "sitemap", Exclude: []string{"/letters/"}}, seeds)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(app.Settings{Dir: s.dir, Web: w, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Machine: config.Machine{
			Process: config.Process{Workers: 64, Shards: 2, Parsers: 8, RobotsSlots: 8, FrontierURLs: 100_000, ReadyHosts: 1000, BodyBytes: 1 << 24},
			Seen:    config.Seen{SeenURLs: 100_000, SeenLookups: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run, err := a.Engine.Start(ctx, spec, crawl.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	served, ended := make(chan error, 1), make(chan error, 1)
	go func() { served <- a.Serve(ctx) }()
	go func() {
		_, err := run.Supervise(ctx)
		ended <- err
	}()

	// While it runs, the scheduler itself says what is waited for.
	x := await(s, "http://busy.demo.test:PORT/bread/rye-dark", func(x *explain.Explanation) bool { return x.Fate == explain.Ended })
	if !x.Live || x.Host == nil || x.Host.From != "scheduler" {
		t.Errorf("a running crawl did not answer for itself: live %v, host %+v", x.Live, x.Host)
	}
	x = await(s, "http://patient.demo.test:PORT/teas/last-leaf", func(x *explain.Explanation) bool {
		return x.Fate == explain.Waiting && x.Queue.Ahead > 0 && x.Host != nil && x.Host.Gap == 2*time.Second
	})
	s.golden("waiting-for-pace", x)
	if left := x.Waits.Until.Sub(x.At); !x.Waits.About || left < time.Duration(x.Queue.Ahead)*2*time.Second || left > time.Duration(x.Queue.Ahead+1)*2*time.Second {
		t.Errorf("with %d before it at one in 2 s, its turn is said to come in %s", x.Queue.Ahead, left)
	}
	x = await(s, "http://busy.demo.test:PORT/bread/bread-of-the-house", func(x *explain.Explanation) bool {
		return x.Fate == explain.Waiting && x.Host != nil && x.Host.BlockedBy == "Retry-After"
	})
	if left := x.Waits.Until.Sub(x.At); left <= 0 || left > 3*time.Second || !x.Waits.Until.Equal(x.Host.BlockedUntil) {
		t.Errorf("Retry-After said 3 s; the wait is said to end in %s", left)
	}
	s.golden("waiting-for-quiet", x)
	s.golden("unknown-outside", s.explain("http://example.com/page"))
	s.golden("unknown-closed", s.explain("http://museum.demo.test:PORT/storeroom/nobody-linked-this"))

	await(s, "http://flaky.demo.test:PORT/acts/the-ghost-forgets-a-line", func(x *explain.Explanation) bool { return x.Fate == explain.Ended })
	await(s, "http://moved.demo.test:PORT/corner-shop", func(x *explain.Explanation) bool { return x.Fate == explain.Ended })
	run.Stop("Interrupted, stopping crawl")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}

	// Afterwards, its data directory does.
	for name, u := range map[string]string{
		"fetched":        " HTTP://Shop.demo.test:PORT/./about#top",
		"retried":        "http://flaky.demo.test:PORT/acts/the-ghost-forgets-a-line",
		"disallowed":     "museum.demo.test:PORT/storeroom/crate-1",
		"redirect":       "http://moved.demo.test:PORT/corner-shop",
		"excluded":       "http://snail.demo.test:PORT/letters/letter-to-the-fox",
		"stopped":        "http://patient.demo.test:PORT/teas/last-leaf",
		"unknown-inside": "http://shop.demo.test:PORT/nobody-linked-this?x=1",
	} {
		x := s.explain(u)
		if x.Live || x.Without != "" {
			t.Errorf("%s: live %v, without %q", name, x.Live, x.Without)
		}
		s.golden(name, x)
	}
}

// await asks until the answer is as wanted: a crawl takes its time.
func await(s *site, u string, ok func(*explain.Explanation) bool) *explain.Explanation {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if x := s.explain(u); ok(x) {
			return x
		}
		time.Sleep(20 * time.Millisecond) // nobody tells when a URL moves on
	}
	x := s.explain(u)
	b, _ := json.MarshalIndent(x, "", " ")
	s.t.Fatalf("%s did not come to be as wanted in 20 s:\n%s", u, b)
	return nil
}

func Test_what_cannot_be_explained_is_an_error_of_its_kind(t *testing.T) {
	if _, err := app.Explain(context.Background(), config.Stores{Results: config.In(t.TempDir())}, "example.com", 0); err == nil || !strings.Contains(err.Error(), "there is no crawl in") {
		t.Errorf("an empty folder: %v", err)
	}
	l := noCrawl{}
	if _, err := explain.Explain(context.Background(), explain.Sources{Ledger: l}, "example.com", 7); !errors.Is(err, ledger.ErrNoCrawl) {
		t.Errorf("no such crawl: %v", err)
	}
}

type noCrawl struct{ explain.Ledger }

func (noCrawl) Crawl(context.Context, int64) (ledger.Crawl, error) {
	return ledger.Crawl{}, ledger.ErrNoCrawl
}
