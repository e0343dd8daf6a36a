package audit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/app"
	"tiptoe/internal/audit"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/demo"
	ledgerfile "tiptoe/internal/ledger/sqlite"
)

// session crawls the demo web for a while as one process would.
func session(t *testing.T, web *demo.Web, dir string, spec func(*crawl.Spec), open func(context.Context, *app.App, crawl.Spec) (*crawl.Run, error)) {
	t.Helper()
	perHost := 2
	w := config.Web{Profile: "polite", UserAgent: "tiptoe/test", PerHost: &perHost, Delay: &config.Delay{Min: 20 * time.Millisecond, Max: 40 * time.Millisecond},
		Timeout: 10 * time.Second, MaxBody: 1 << 20, MaxRedirects: 10, Retries: 3, RelNofollow: "follow", Client: config.Client{Resolve: web.Resolve(), HTTP2: true}}
	var seeds []config.Seed
	for _, raw := range web.Seeds() {
		s, err := config.ParseSeed(raw, "demo")
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, s)
	}
	s, err := config.Spec(&w, &config.Bounds{Depth: -1, Scope: "domain", Seeding: "sitemap"}, seeds)
	if err != nil {
		t.Fatal(err)
	}
	spec(&s)
	w.Delay = &config.Delay{Min: s.DelayMin, Max: s.DelayMax}
	a, err := app.Open(app.Settings{Dir: dir, Web: w, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Machine: config.Machine{
			Process: config.Process{Workers: 64, Shards: 2, Parsers: 8, RobotsSlots: 8, FrontierURLs: 100_000, ReadyHosts: 1000, BodyBytes: 1 << 24},
			Seen:    config.Seen{SeenURLs: 100_000, SeenLookups: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run, err := open(ctx, a, s)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx) }()
	if _, err := run.Supervise(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func start(ctx context.Context, a *app.App, s crawl.Spec) (*crawl.Run, error) {
	return a.Engine.Start(ctx, s, crawl.Hooks{})
}

func resume(ctx context.Context, a *app.App, s crawl.Spec) (*crawl.Run, error) {
	row, err := a.Ledger.Crawl(ctx, 1)
	if err != nil {
		return nil, err
	}
	return a.Engine.Resume(ctx, row, func(r *crawl.Spec) { *r = s }, crawl.Hooks{})
}

func for_(d time.Duration) func(*crawl.Spec) { return func(s *crawl.Spec) { s.Duration = d } }

func run(t *testing.T, path string, only int64) *audit.Report {
	t.Helper()
	l, err := ledgerfile.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := audit.Run(context.Background(), l, only)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *audit.Report) string {
	t.Helper()
	var sb strings.Builder
	if err := r.Text(&sb, 0); err != nil {
		t.Fatal(err)
	}
	return sb.String()
}

// The promises are kept by a crawl, by its resumption in another process with
// another delay, and by a second crawl of the same hosts; and every promise
// that is then broken in the log is found.
func Test_a_real_crawl_kept_every_promise_and_every_planted_violation_is_found(t *testing.T) {
	web, err := demo.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	dir := t.TempDir()
	session(t, web, dir, for_(10*time.Second), start)
	session(t, web, dir, func(s *crawl.Spec) {
		s.Duration, s.DelayMin, s.DelayMax = 500*time.Millisecond, 5*time.Millisecond, 5*time.Millisecond
	}, resume)
	session(t, web, dir, for_(1500*time.Millisecond), start)
	path := filepath.Join(dir, app.LedgerFile)

	r := run(t, path, 0)
	if !r.Kept {
		t.Fatalf("a real crawl broke a promise:\n%s", text(t, r))
	}
	if r.Requests < 200 || len(r.Hosts) != 12 || len(r.Crawls) != 2 {
		t.Fatalf("%d requests to %d hosts by %d crawls; that is not the crawl that was made", r.Requests, len(r.Hosts), len(r.Crawls))
	}
	for _, h := range r.Hosts {
		name, _, _ := strings.Cut(h.Host, ".")
		switch {
		case name == "busy" && (h.Blocks == 0 || h.BlocksKept != h.Blocks):
			t.Errorf("busy: %d of %d blocks kept; it limits its visitors", h.BlocksKept, h.Blocks)
		case name == "patient" && (h.SmallestGap < 2*time.Second-time.Millisecond || h.LongestOwed != 2*time.Second):
			t.Errorf("patient: smallest gap %s, owed %s; its robots.txt asks for 2 s", h.SmallestGap, h.LongestOwed)
		case name == "dead" && (h.Requests != 0 || h.NotSent == 0):
			t.Errorf("dead: %d requests, %d not sent; nobody listens there", h.Requests, h.NotSent)
		}
	}
	if got := text(t, r); !strings.Contains(got, "Kept: every gap") {
		t.Error(got)
	}
	// A log that left requests out would prove nothing: the hosts counted, too.
	for _, b := range web.Books().Hosts {
		for _, h := range r.Hosts {
			if h.Host == b.Host && h.Requests != b.Requests {
				t.Errorf("%s was asked %d times; the log has %d requests", b.Host, b.Requests, h.Requests)
			}
		}
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) { p.try(t, path) })
	}
}

// plant is one lie in the log, or one deed that the log tells truly.
type plant struct {
	name string
	host string // first label
	sql  string // :host is the host, :a, :b and :c its first requests but for robots.txt
	kind audit.Kind
	want string
	only int64
}

var plants = []plant{
	{"a request moved next to the one before", "shop",
		"UPDATE requests SET started_us = (SELECT started_us + 1500 FROM requests WHERE permit = :a) WHERE permit = :b",
		audit.GapTooShort, "1.500 ms between the starts of two requests, where ", 0},
	{"a row that owes nothing does not hide a gap below the base delay", "shop",
		"UPDATE requests SET gap_owed_us = 0, started_us = (SELECT started_us + 2000 FROM requests WHERE permit = :a) WHERE permit = :b",
		audit.GapTooShort, "2.000 ms between the starts of two requests, where 20.0 ms were owed (base delay)", 0},
	{"a row that owes nothing does not hide a gap below the Crawl-delay", "patient",
		"UPDATE requests SET gap_owed_us = 0, started_us = (SELECT started_us + 900000 FROM requests WHERE permit = :a) WHERE permit = :b",
		audit.GapTooShort, "900.0 ms between the starts of two requests, where 2.000 s were owed (robots Crawl-delay)", 0},
	{"the robots.txt that was just read binds the first page", "patient",
		"UPDATE requests SET started_us = (SELECT started_us + 500000 FROM requests WHERE kind = 'robots' AND pace_group = :host ORDER BY started_us LIMIT 1) WHERE permit = :a",
		audit.GapTooShort, "500.0 ms between the starts of two requests, where 2.000 s were owed (robots Crawl-delay)", 0},
	{"a third request while two are in flight", "blog",
		"UPDATE requests SET ended_us = (SELECT started_us + 1 FROM requests WHERE permit = :c) WHERE permit IN (:a, :b)",
		audit.TooManyInFlight, "3 requests in flight, where at most 2 were allowed", 0},
	{"a cap that nobody set", "blog", "UPDATE requests SET cap = 9 WHERE permit = :b",
		audit.CapAboveSettings, "granted under a cap of 9, where the settings of crawl 1 allow 2", 0},
	{"a request in a time of quiet", "busy",
		`UPDATE requests SET started_us = (SELECT ended_us + 100000 FROM requests WHERE pace_group = :host AND asked_until_us IS NOT NULL ORDER BY started_us LIMIT 1),
			granted_us = (SELECT ended_us + 100000 FROM requests WHERE pace_group = :host AND asked_until_us IS NOT NULL ORDER BY started_us LIMIT 1)
			WHERE permit = (SELECT max(permit) FROM requests WHERE pace_group = :host)`,
		audit.BlockBroken, "a request 100.0 ms after an answer that asked for 3.000 s of quiet (Retry-After: 3)", 0},
	{"a Retry-After that was misread", "busy",
		"UPDATE requests SET asked_until_us = NULL WHERE pace_group = :host; UPDATE evidence_log SET content = json_set(content, '$.retryAfter', '600') WHERE type = 'throttled'",
		audit.BlockBroken, "after an answer that asked for 10m0s of quiet (Retry-After: 600)", 0},
	{"rate-limit headers that were not heeded", "shop", "UPDATE requests SET asked_until_us = ended_us + 10000000, asked_after = permit WHERE permit = :a",
		audit.BlockBroken, "after an answer that asked for 10.000 s of quiet (rate-limit headers)", 0},
	{"a page that robots.txt closes", "shop", "UPDATE pages SET robots_allowed = 0 WHERE fp = (SELECT fp FROM requests WHERE permit = :b)",
		audit.Disallowed, "a URL was requested that robots.txt disallows", 0},
	{"a request for what robots.txt closed", "museum",
		`INSERT INTO requests (crawl_id, permit, pace_group, kind, cause, outcome, started_us, ended_us, gap_owed_us, in_flight, cap, fp)
			SELECT 1, 77, host, 'page', 'first', 'ok', (SELECT max(started_us) + 9000000 FROM requests), (SELECT max(started_us) + 9100000 FROM requests), 0, 1, 2, fp
			FROM pages WHERE host = :host AND outcome = 'robots' AND crawl_id = 1 LIMIT 1`,
		audit.Disallowed, "a URL was requested that robots.txt disallows", 0},
	{"pages before robots.txt", "shop",
		"DELETE FROM requests WHERE kind = 'robots' AND pace_group = :host; UPDATE pages SET robots_fetched_ms = robots_fetched_ms + 600000 WHERE host = :host",
		audit.RobotsUnknown, "a URL was requested before the host's robots.txt was known", 0},
	{"a request for what scope had turned away", "shop", "UPDATE pages SET outcome = 'scope' WHERE fp = (SELECT fp FROM requests WHERE permit = :b)",
		audit.Refused, "a URL was requested that the crawl had turned away (scope)", 0},
	{"two crawls closer together than either promised", "shop",
		"UPDATE requests SET crawl_id = 2 WHERE permit = :b; UPDATE requests SET started_us = (SELECT started_us + 1000 FROM requests WHERE permit = :a) WHERE permit = :b",
		audit.GapTooShort, "1.000 ms between the starts of two requests", 2},
}

func (p *plant) try(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(planted, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.OpenConn(planted, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	host := one(t, c, fmt.Sprintf("SELECT pace_group FROM requests WHERE pace_group LIKE '%s.%%' LIMIT 1", p.host))
	q := strings.ReplaceAll(p.sql, ":host", "'"+host+"'")
	for i, name := range []string{":a", ":b", ":c"} {
		if strings.Contains(q, name) {
			q = strings.ReplaceAll(q, name, one(t, c, fmt.Sprintf("SELECT permit FROM requests WHERE pace_group = '%s' AND kind <> 'robots' AND crawl_id = 1"+
				" AND retry_at_us IS NULL AND outcome <> 'cancelled' ORDER BY started_us LIMIT 1 OFFSET %d", host, i)))
		}
	}
	if err := sqlitex.ExecuteScript(c, q, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	r := run(t, planted, p.only)
	if r.Kept {
		t.Fatalf("the lie was believed:\n%s", text(t, r))
	}
	for _, v := range r.Violations {
		if v.Kind == p.kind && v.Host == host && strings.Contains(v.Text, p.want) {
			if out := text(t, r); !strings.Contains(out, "BROKEN "+host) || !strings.Contains(out, v.Requests[0].URL) || v.Requests[0].URL == "" {
				t.Errorf("the text does not name the host and the request:\n%s", out)
			}
			return
		}
	}
	t.Errorf("no violation of kind %s says %q:\n%s", p.kind, p.want, text(t, r))
}

func one(t *testing.T, c *sqlite.Conn, q string) string {
	t.Helper()
	v, err := sqlitex.ResultText(c.Prep(q))
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return v
}
