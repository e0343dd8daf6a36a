package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
	"tiptoe/internal/weburl"
)

// client is another program, as a person would use.
func client(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec(t testing.TB, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func query1[T any](t testing.TB, c *pgx.Conn, statement string) (v T) {
	t.Helper()
	if err := c.QueryRow(t.Context(), statement).Scan(&v); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return v
}

func Test_ten_processes_that_start_at_once_migrate_once(t *testing.T) {
	url := testenv.Postgres(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			l, err := Open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			if _, err := l.Crawls(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c := client(t, url)
	if n := query1[int](t, c, "SELECT count(*) - count(DISTINCT version_id) FROM "+versionTable); n != 0 {
		t.Errorf("%d migrations were noted twice", n)
	}
	if n := query1[int](t, c, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
		t.Errorf("%d locks are still held", n)
	}
}

func Test_only_databases_that_this_program_understands_are_opened(t *testing.T) {
	fresh := func(statements ...string) string {
		url := testenv.Postgres(t)
		if len(statements) > 0 {
			exec(t, client(t, url), statements...)
		}
		return url
	}
	newer := fresh()
	openLedger(t, newer)
	exec(t, client(t, newer), "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (99, true)")
	older := fresh()
	openLedger(t, older)
	exec(t, client(t, older), "DELETE FROM "+versionTable+" WHERE version_id = (SELECT max(version_id) FROM "+versionTable+")")
	foreign := fresh("CREATE TABLE pages (bookmark text)")
	for name, c := range map[string]struct {
		url, want string
		open      func(context.Context, string) (*Ledger, error)
	}{
		"newer":           {newer, "newer tiptoe (schema version 99", Open},
		"newer, to read":  {newer, "newer tiptoe (schema version 99", OpenReadOnly},
		"foreign":         {foreign, "tables of another program", Open},
		"older, to read":  {older, "to upgrade it", OpenReadOnly},
		"empty, to read":  {fresh(), ErrEmpty.Error(), OpenReadOnly},
		"none":            {strings.Replace(fresh(), "/t_", "/no_such_", 1), "does not exist", Open},
		"not a URL":       {"postgres://[", "is not right", Open},
		"not a parameter": {"postgres:///?pool_max_conns=many", "is not right", Open},
	} {
		l, err := c.open(t.Context(), c.url)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := query1[string](t, client(t, foreign), "SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 'public'"); got != "pages "+versionTable {
		t.Errorf("the other program's database now has %s", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, "postgres:///x?host=/no-such-place"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no-such-place") {
		t.Errorf("a server that is not there: %v", err)
	}
}

func Test_the_migrations_lead_down_again(t *testing.T) {
	url := testenv.Postgres(t)
	openLedger(t, url).Close()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	p, err := provider(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var left sql.NullString
	if err := db.QueryRow("SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE $1", versionTable+"%").Scan(&left); err != nil || left.Valid {
		t.Errorf("left after going down: %s, %v", left.String, err)
	}
	openLedger(t, url)
}

func Test_any_client_can_query_the_ledger(t *testing.T) {
	url := testenv.Postgres(t)
	l := openLedger(t, url)
	crawl := create(t, l)
	p := ledgertest.FullPage(crawl, "https://a.example/x")
	blocked := ledger.Page{Crawl: crawl, URL: "https://a.example/y", Host: "a.example", Outcome: outcome.Robots,
		Robots: ledger.RobotsDecision{Decided: true, Rule: "Disallow: /y", Line: 2}}
	d := ledger.Domain{Host: "a.example", AdaptiveDelay: 1050 * time.Millisecond, AdaptiveFloor: 50 * time.Millisecond, CrawlDelay: 500 * time.Millisecond}
	if err := l.Commit(t.Context(), &ledger.Batch{Pages: []ledger.Page{p, blocked}, Domains: []ledger.Domain{d}}); err != nil {
		t.Fatal(err)
	}
	c := client(t, url)
	for query, want := range map[string]string{
		"SELECT (url, outcome, status, ttfb_us, redirect_to)::text FROM pages WHERE outcome = 'ok'":                                    "(https://a.example/x,ok,200,4,https://a.example/to)",
		"SELECT (status, size, fetched_ms, total_us, title)::text FROM pages WHERE outcome = 'robots'":                                 "(,,,,)",
		"SELECT string_agg(type || line, ' ' ORDER BY type) FROM evidence":                                                             "blocked_by_robots2 robots_allowed12",
		"SELECT content::jsonb ->> 'matchedRule' FROM evidence WHERE type = 'blocked_by_robots'":                                       "Disallow: /y",
		"SELECT content::jsonb ->> 'timestamp' FROM evidence WHERE type = 'robots_allowed'":                                            "2026-03-04T05:06:07.089Z",
		"SELECT (adaptive_delay_seconds, adaptive_delay_floor_seconds, crawl_delay_seconds, adaptive_delay_ms)::text FROM domains":     "(2,1,1,1050)",
		"SELECT (length(targets))::text FROM page_links JOIN pages ON id = page_id":                                                    "24",
		"SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY 1 DESC": "tiptoe",
	} {
		if got := query1[string](t, c, query); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
}

func Test_rows_are_ordered_byte_by_byte_whatever_the_database_speaks(t *testing.T) {
	url := testenv.Postgres(t)
	admin := client(t, url)
	name := query1[string](t, admin, "SELECT current_database()") + "_icu"
	exec(t, admin, "CREATE DATABASE "+name+" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
	defer exec(t, admin, "DROP DATABASE "+name+" WITH (FORCE)")
	l := openLedger(t, strings.Replace(url, strings.TrimSuffix(name, "_icu")+"?", name+"?", 1))
	defer l.Close()
	crawl := create(t, l)
	want := []string{"-", "B", "Z", "_", "a", "b", "ä"} // in English: _ - a ä b B Z
	b := &ledger.Batch{}
	for i := range want {
		h := want[(i*3)%len(want)]
		b.Domains = append(b.Domains, ledger.Domain{Host: h})
		b.Pages = append(b.Pages, ledger.Page{Crawl: crawl, FP: weburl.Fingerprint{Lo: uint64(i)}, URL: h, Host: h})
		b.Requests = append(b.Requests, ledger.Request{Crawl: crawl, Permit: uint64(i), Group: h, Started: time.Unix(1, 0)})
	}
	if err := l.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]func(func(string, error)){
		"domains": func(f func(string, error)) {
			for d, err := range l.Domains(t.Context(), ledger.DomainFilter{}) {
				f(d.Host, err)
			}
		},
		"pages by URL": func(f func(string, error)) {
			for p, err := range l.Pages(t.Context(), crawl, ledger.PageFilter{Sort: ledger.ByURL}) {
				f(p.URL, err)
			}
		},
		"pages by host": func(f func(string, error)) {
			for p, err := range l.Pages(t.Context(), crawl, ledger.PageFilter{Sort: ledger.ByHost}) {
				f(p.Host, err)
			}
		},
		"replay": func(f func(string, error)) {
			for r, err := range l.Replay(t.Context(), 0) {
				f(r.Group, err)
			}
		},
	} {
		var got []string
		list(func(s string, err error) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, s)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func Test_strangers_text_never_stops_a_batch(t *testing.T) {
	url := testenv.Postgres(t)
	l := openLedger(t, url)
	crawl := create(t, l)
	evil := "a\x00b\xff\xc0\x80'\\\"{},NULL\u202e"
	clean := ledger.Unbounded(evil)
	p := ledger.Page{Crawl: crawl, URL: evil, Host: evil, Kind: evil, Via: evil, FoundOn: evil, Error: evil, ContentType: evil, Charset: evil,
		RedirectTo: evil, Title: evil, Description: evil, Canonical: evil, Lang: evil, Hreflang: evil,
		Robots: ledger.RobotsDecision{Decided: true, Rule: evil}}
	q := ledger.Request{Crawl: crawl, Permit: 1, Group: evil, URL: evil, FP: weburl.Fingerprint{Lo: 5}, Kind: evil, Cause: evil, Error: evil, GapWhy: evil, RetryWhy: evil}
	e := ledger.Evidence{Crawl: crawl, URL: evil, Type: evil, Content: evil, Metadata: evil}
	b := &ledger.Batch{Pages: []ledger.Page{p}, Requests: []ledger.Request{q}, Evidence: []ledger.Evidence{e, {Crawl: crawl, URL: "2", Type: clean}},
		Domains: []ledger.Domain{{Host: evil, BlockReason: evil, State: []byte(evil)}, {Host: clean, ErrorStreak: 7}}, // one and the same when clean
		Crawls:  []ledger.Crawl{{ID: crawl, Status: ledger.Failed, Reason: evil}}}
	if err := l.Commit(soon(t), b); err != nil {
		t.Fatal(err)
	}
	if err := l.UpdateCrawl(soon(t), &ledger.Crawl{ID: crawl, Status: ledger.Failed, Spec: []byte(evil), Updated: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	got, ok, err := l.PageByFP(t.Context(), crawl, p.FP)
	want := ledger.Page{ID: got.ID, Crawl: crawl, URL: clean, Host: clean, Kind: clean, Via: clean, FoundOn: clean, Error: clean, ContentType: clean, Charset: clean,
		RedirectTo: clean, Title: clean, Description: clean, Canonical: clean, Lang: clean, Hreflang: clean,
		Robots: ledger.RobotsDecision{Decided: true, Rule: clean}}
	if d := cmp.Diff(want, got); d != "" || !ok || err != nil {
		t.Errorf("%v %v\n%s", ok, err, d)
	}
	if d, ok, err := l.Domain(t.Context(), evil); !ok || err != nil || d.ErrorStreak != 7 {
		t.Errorf("the last of two domains with one name: %+v, %v, %v", d, ok, err)
	}
	for _, f := range []ledger.PageFilter{{Match: evil}, {Match: evil + "*"}, {Host: evil}, {Kind: evil}} {
		n := 0
		for _, err := range l.Pages(t.Context(), crawl, f) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%+v finds %d pages", f, n)
		}
	}
}

func Test_commits_are_durable_even_where_the_server_would_not_wait(t *testing.T) {
	for set, want := range map[string]string{"off": "on", "remote_apply": "remote_apply"} {
		url := testenv.Postgres(t)
		c := client(t, url)
		exec(t, c, "ALTER DATABASE "+query1[string](t, c, "SELECT current_database()")+" SET synchronous_commit = "+set)
		l := openLedger(t, url)
		err := l.write(t.Context(), func(tx pgx.Tx) error {
			var got string
			if err := tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&got); err != nil || got != want {
				t.Errorf("%q, %v where the database says %q; want %q", got, err, set, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func Test_a_read_only_ledger_reads_along_and_refuses_to_write(t *testing.T) {
	url := testenv.Postgres(t)
	l := openLedger(t, url)
	ro, err := OpenReadOnly(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	crawl := create(t, l)
	if c, err := ro.LatestCrawl(t.Context()); err != nil || c.ID != crawl {
		t.Errorf("crawl %d, %v", c.ID, err)
	}
	if err := ro.Commit(t.Context(), &ledger.Batch{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("commit: %v", err)
	}
	if _, err := ro.CreateCrawl(t.Context(), &ledger.Crawl{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("create: %v", err)
	}
	if _, err := ro.pool.Exec(t.Context(), "DELETE FROM crawls"); code(err) != readOnlyServer {
		t.Errorf("the server let it write: %v", err)
	}
}

func Test_a_closed_ledger_says_so(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	crawl := create(t, l)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Commit(t.Context(), &ledger.Batch{}); !errors.Is(err, ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	if _, err := l.Crawl(t.Context(), crawl); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	for _, err := range l.Replay(t.Context(), 0) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("replay: %v", err)
		}
	}
}

func Test_readers_leave_a_connection_to_the_writer_and_listings_hold_none(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t)+"&pool_max_conns=2")
	crawl := create(t, l)
	commit := func(permit uint64) {
		t.Helper()
		b := &ledger.Batch{Pages: []ledger.Page{{Crawl: crawl, FP: weburl.Fingerprint{Lo: permit}}},
			Requests: []ledger.Request{{Crawl: crawl, Permit: permit, Started: time.Unix(1, 0)}}}
		if err := l.Commit(soon(t), b); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	for _, err := range l.Replay(soon(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for _, err := range l.Replay(ctx, 0) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second reader was given the last connection: %v", err)
			}
		}
		cancel()
		begun := time.Now()
		commit(2)
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("a commit waits for a reader: %s", took)
		}
	}
	n := 0
	for _, err := range l.Pages(soon(t), crawl, ledger.PageFilter{}) {
		if held := l.pool.Stat().AcquiredConns(); err != nil || held != 0 {
			t.Errorf("%d connections held, %v", held, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d pages", n)
	}
}

func Test_what_the_server_refuses_for_good_is_not_tried_again(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	tries := 0
	err := l.write(t.Context(), func(tx pgx.Tx) error {
		tries++
		_, err := tx.Exec(t.Context(), "SELECT * FROM no_such_table")
		return err
	})
	if code(err) != "42P01" || tries != 1 {
		t.Errorf("%d tries, %v", tries, err)
	}
	for c, want := range map[string]bool{"57P01": true, "57P02": true, "57P03": true, "08006": true, "08001": true, "40001": true, "40P01": true,
		"25006": true, "25P03": true, "53300": true, "53100": false, "28P01": false, "3D000": false, "23505": false, "57014": false} {
		if got := transient(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: c})); got != want {
			t.Errorf("%s: transient is %v", c, got)
		}
	}
	if transient(ledger.ErrNoCrawl) {
		t.Error("a missing crawl is waited for")
	}
}
