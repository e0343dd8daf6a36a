package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/outcome"
)

const (
	crashPathEnv = "TIPTOE_TEST_CRASH_LEDGER"
	crashSize    = 20
)

// TestCrashChild is the victim: it commits batches until it is killed and
// prints how many commits have returned.
func TestCrashChild(t *testing.T) {
	path := os.Getenv(crashPathEnv)
	if path == "" {
		t.Skip("runs only as the child of TestAKilledWriterLosesNoCommittedBatchAndLeavesNoHalfOne")
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.LatestCrawl(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	counts, err := l.PageCounts(context.Background(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := int(counts[outcome.OK]) / crashSize; ; i++ {
		if err := l.Commit(context.Background(), ledgertest.BenchBatch(r, c.ID, i*crashSize, crashSize)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("committed %d\n", i+1)
	}
}

func TestAKilledWriterLosesNoCommittedBatchAndLeavesNoHalfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	crawl, err := l.CreateCrawl(t.Context(), &ledger.Crawl{Status: ledger.Running})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		acked := killAfter(t, path, 3+7*round)
		// First by a reader that cannot write, as a person would look at it.
		ro, err := OpenReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		checkAfterCrash(t, ro, crawl, acked)
		if err := ro.Close(); err != nil {
			t.Fatal(err)
		}
		l, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		checkAfterCrash(t, l, crawl, acked)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter runs the child until it has acknowledged n commits of its own,
// kills it in the middle of the next, and returns the last number it printed.
func killAfter(t *testing.T, path string, n int) int {
	t.Helper()
	cmd := osexec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashPathEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var k int
		if _, err := fmt.Sscanf(lines.Text(), "committed %d", &k); err != nil {
			t.Fatalf("the child said %q", lines.Text())
		}
		acked = k
		if n--; n == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd.Wait()
	if n > 0 {
		t.Fatalf("the child ended by itself after %d commits", acked)
	}
	return acked
}

func checkAfterCrash(t *testing.T, l *Ledger, crawl int64, acked int) {
	t.Helper()
	counts, err := l.PageCounts(t.Context(), crawl)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := l.Totals(t.Context(), crawl)
	if err != nil {
		t.Fatal(err)
	}
	n := int(counts[outcome.OK])
	if n%crashSize != 0 || n < acked*crashSize || int(totals.Requests) != n {
		t.Errorf("%d pages and %d requests after %d acknowledged batches of %d", n, totals.Requests, acked, crashSize)
	}
	err = l.read(t.Context(), func(c *sqlite.Conn) error {
		verdict, err := sqlitex.ResultText(c.Prep("PRAGMA integrity_check"))
		if err == nil && verdict != "ok" {
			t.Error("integrity check: " + strconv.Quote(verdict))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
