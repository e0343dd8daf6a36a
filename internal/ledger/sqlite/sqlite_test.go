package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/outcome"
)

func create(t *testing.T, l *Ledger) int64 {
	t.Helper()
	id, err := l.CreateCrawl(t.Context(), &ledger.Crawl{Status: ledger.Running})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// client is another program with another driver, as a person would use.
func client(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func rows(t *testing.T, db *sql.DB, query string) [][]any {
	t.Helper()
	r, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cols, _ := r.Columns()
	var all [][]any
	for r.Next() {
		row, ptr := make([]any, len(cols)), make([]any, len(cols))
		for i := range row {
			ptr[i] = &row[i]
		}
		if err := r.Scan(ptr...); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnyClientCanQueryTheLedgerWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	crawl := create(t, l)
	p := ledgertest.FullPage(crawl, "https://a.example/x")
	blocked := ledger.Page{Crawl: crawl, URL: "https://a.example/y", Host: "a.example", Outcome: outcome.Robots,
		Robots: ledger.RobotsDecision{Decided: true, Rule: "Disallow: /y", Line: 2}}
	d := ledger.Domain{Host: "a.example", AdaptiveDelay: 1050 * time.Millisecond, AdaptiveFloor: 50 * time.Millisecond, CrawlDelay: 500 * time.Millisecond}
	if err := l.Commit(t.Context(), &ledger.Batch{Pages: []ledger.Page{p, blocked}, Domains: []ledger.Domain{d}}); err != nil {
		t.Fatal(err)
	}
	db := client(t, path)
	for _, c := range []struct {
		query string
		want  [][]any
	}{
		{"SELECT url, outcome, status, ttfb_us, found_on, redirect_to FROM pages WHERE outcome = 'ok'",
			[][]any{{p.URL, "ok", int64(200), int64(4), p.FoundOn, p.RedirectTo}}},
		{"SELECT status, size, fetched_ms, total_us, title FROM pages WHERE outcome = 'robots'", [][]any{{nil, nil, nil, nil, nil}}},
		{"SELECT type, line FROM evidence ORDER BY type", [][]any{{"blocked_by_robots", int64(2)}, {"robots_allowed", int64(12)}}},
		{"SELECT json_extract(content, '$.matchedRule') FROM evidence WHERE type = 'blocked_by_robots'", [][]any{{"Disallow: /y"}}},
		{"SELECT adaptive_delay_seconds, adaptive_delay_floor_seconds, crawl_delay_seconds, adaptive_delay_ms FROM domains",
			[][]any{{int64(2), int64(1), int64(1), int64(1050)}}},
		{"SELECT length(targets) FROM page_links JOIN pages ON id = page_id", [][]any{{int64(24)}}},
		{"PRAGMA journal_mode", [][]any{{"wal"}}},
	} {
		if d := cmp.Diff(c.want, rows(t, db, c.query)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.query, d)
		}
	}
}

func TestAReaderThatLingersDoesNotStopTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	crawl := create(t, l)
	db := client(t, path)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM pages").Scan(&n); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	if err := l.Commit(t.Context(), ledgertest.BenchBatch(r, crawl, 0, 10)); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT count(*) FROM pages").Scan(&n); err != nil || n != 0 {
		t.Errorf("the reader's snapshot moved: %d pages, %v", n, err)
	}
}

func TestACommitBehindAnothersLockEndsWithItsContextAndWorksAfterwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	crawl := create(t, l)
	db := client(t, path)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	b := ledgertest.BenchBatch(rand.New(rand.NewPCG(1, 2)), crawl, 0, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Commit(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	if _, err := db.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(t.Context(), b); err != nil {
		t.Errorf("after the lock was gone: %v", err)
	}
}

func TestAFullDiskFailsTheBatchWholeAndTheLedgerWorksOnceThereIsRoom(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	crawl := create(t, l)
	limit := func(pages string) {
		c := <-l.writer
		defer func() { l.writer <- c }()
		if err := exec(c, "PRAGMA max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	limit("40")
	r := rand.New(rand.NewPCG(1, 2))
	b := ledgertest.BenchBatch(r, crawl, 0, 1000)
	err := l.Commit(t.Context(), b)
	if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultFull {
		t.Fatalf("error %v, want SQLITE_FULL", err)
	}
	counts, err := l.PageCounts(t.Context(), crawl)
	if err != nil || len(counts) != 0 {
		t.Errorf("%v pages of a failed batch, %v", counts, err)
	}
	limit("100000")
	if err := l.Commit(t.Context(), b); err != nil {
		t.Error(err)
	}
	if counts, err = l.PageCounts(t.Context(), crawl); err != nil || counts[outcome.OK] != 1000 {
		t.Errorf("%v pages, %v", counts, err)
	}
}

func TestOnlyLedgersThatThisProgramUnderstandsAreOpened(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if _, err := client(t, foreign).Exec("CREATE TABLE bookmarks (url)"); err != nil {
		t.Fatal(err)
	}
	newer := newLedger(t, dir, "newer", "PRAGMA user_version = 99")
	for _, c := range []struct{ path, want string }{
		{newer, "newer tiptoe (schema version 99"},
		{text, "not a tiptoe ledger"},
		{foreign, "another program"},
	} {
		for name, open := range map[string]func(string) (*Ledger, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
			l, err := open(c.path)
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s(%s): %v, want %q", name, filepath.Base(c.path), err, c.want)
			}
		}
	}
	older := newLedger(t, dir, "older", "PRAGMA user_version = 0")
	if _, err := OpenReadOnly(older); err == nil || !strings.Contains(err.Error(), "to upgrade it") {
		t.Errorf("an older schema: %v", err)
	}
	if _, err := OpenReadOnly(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "no", "such", "directory")); err == nil {
		t.Error("a ledger in a directory that does not exist was opened")
	}
	if got := rows(t, client(t, foreign), "SELECT name FROM sqlite_schema"); len(got) != 1 {
		t.Errorf("the other program's database was changed: %v", got)
	}
}

func newLedger(t *testing.T, dir, name string, statements ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db := client(t, path)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestAReadOnlyLedgerReadsAlongAndRefusesToWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	ro, err := OpenReadOnly(path)
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
}

func TestAClosedLedgerIsOneFileAndOpensAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a ledger?x=%20#.db") // nothing in a path is special
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	crawl := create(t, l)
	want := ledgertest.BenchBatch(rand.New(rand.NewPCG(1, 2)), crawl, 0, 10)
	if err := l.Commit(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != filepath.Base(path) {
		t.Errorf("files %v, %v", files, err)
	}
	if err := l.Commit(t.Context(), want); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
	if _, err := l.Crawls(t.Context()); err == nil {
		t.Error("a read after close")
	}
	if err := l.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	again := open(t, path)
	counts, err := again.PageCounts(t.Context(), crawl)
	if err != nil || counts[outcome.OK] != 10 {
		t.Errorf("%v, %v", counts, err)
	}
}

func TestTheMigrationsAreGooseFilesThatGiveTheSameSchema(t *testing.T) {
	dir := t.TempDir()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := client(t, filepath.Join(dir, "goose"))
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	const schema = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%' ORDER BY name"
	ours := client(t, newLedger(t, dir, "ours"))
	if d := cmp.Diff(rows(t, db, schema), rows(t, ours, schema)); d != "" {
		t.Errorf("schema (-goose +ours):\n%s", d)
	}
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if left := rows(t, db, schema); len(left) != 0 {
		t.Errorf("left after going down: %v", left)
	}
}

func TestAMigrationMustSayItsVersionAndItsWayUp(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"first.sql", "-- +goose Up\nSELECT 1;"},
		{"0_x.sql", "-- +goose Up\nSELECT 1;"},
		{"1_x.sql", "SELECT 1;"},
	} {
		if _, err := parseMigration(c.name, c.text); err == nil {
			t.Errorf("%s %q was taken", c.name, c.text)
		}
	}
	m, err := parseMigration("00012_x.sql", "-- +goose Up\nUP;\n-- +goose Down\nDOWN;")
	if err != nil || m.version != 12 || strings.TrimSpace(m.up) != "UP;" {
		t.Errorf("%+v, %v", m, err)
	}
}
