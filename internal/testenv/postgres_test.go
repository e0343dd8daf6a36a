//go:build unix

package testenv

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// query runs statements and returns the answer to the last.
func query(t *testing.T, url string, statements ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	last := len(statements) - 1
	for _, s := range statements[:last] {
		if _, err := c.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	var answer string
	if err := c.QueryRow(ctx, statements[last]).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func Test_every_call_gives_an_empty_database_on_one_server(t *testing.T) {
	a, b := Postgres(t), Postgres(t)
	if a == b {
		t.Fatal("two tests were given one database")
	}
	query(t, a, "CREATE TABLE x ()", "SELECT 'made'")
	if got := query(t, b, "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'"); got != "0" {
		t.Errorf("%s tables in a new database", got)
	}
	const started = "SELECT pg_postmaster_start_time()::text"
	if query(t, a, started) != query(t, b, started) {
		t.Error("the tests of one binary have two servers")
	}
}

func Test_a_server_that_was_stopped_crashed_or_killed_starts_again_with_its_data(t *testing.T) {
	s := PostgresServer(t)
	url := s.Database(t)
	query(t, url, "CREATE TABLE kept (n int)", "SELECT 'made'")
	for name, end := range map[string]func(testing.TB){"stop": s.Stop, "crash": s.Crash, "kill": s.Kill} {
		before := query(t, url, "SELECT pg_postmaster_start_time()::text")
		query(t, url, "INSERT INTO kept VALUES (1) RETURNING 'stored'")
		end(t)
		if c, err := pgx.Connect(t.Context(), url); err == nil {
			c.Close(t.Context())
			t.Errorf("%s: the server still answers", name)
		}
		s.Start(t)
		if query(t, url, "SELECT pg_postmaster_start_time()::text") == before {
			t.Errorf("%s: it is the same server", name)
		}
	}
	if got := query(t, url, "SELECT count(*)::text FROM kept"); got != "3" {
		t.Errorf("%s rows, want 3", got)
	}
}

const orphanEnv = "TIPTOE_TEST_POSTGRES_CHILD"

// Test_child_with_a_server is the victim of the next test.
func Test_child_with_a_server(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("runs only as the child of the next test")
	}
	fmt.Println("url", Postgres(t))
	select {}
}

func Test_a_server_does_not_outlive_a_test_binary_that_is_killed(t *testing.T) {
	postgresPrograms(t)
	cmd := exec.Command(os.Args[0], "-test.run=^Test_child_with_a_server$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url ")
	}
	_, dir, ok := strings.Cut(url, "?host=")
	if _, err := os.Stat(dir); !ok || err != nil {
		t.Errorf("the child has no server: %q, %v", url, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return // the directory goes after the server
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", dir)
		}
	}
}

func Test_a_server_that_is_deaf_when_its_test_binary_ends_is_killed_with_its_directory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// In the background of a shell sleep ignores QUIT, as a server does that
	// has just begun.
	sh := exec.Command("sh", "-c", supervise, dir, "sleep", "60")
	sh.Dir = dir // its input is at its end at once
	begun := time.Now()
	sh.Run()
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it ended after %s", took)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
}

func Test_the_newest_postgres_is_found_where_no_path_leads(t *testing.T) {
	root := t.TempDir()
	for _, v := range []string{"9", "15", "16"} {
		bin := filepath.Join(root, "postgresql", v, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if v == "16" { // a client without a server
			continue
		}
		if err := os.WriteFile(filepath.Join(bin, "initdb"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := postgresFolders(filepath.Join(root, "postgresql", "*", "bin"))
	want := []string{filepath.Join(root, "postgresql", "15", "bin"), filepath.Join(root, "postgresql", "9", "bin")}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
