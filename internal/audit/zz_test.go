package audit_test

import (
	"context"
	"os"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
	"tiptoe/internal/audit"
	lsq "tiptoe/internal/ledger/sqlite"
)

func TestZZ(t *testing.T) {
	path := os.Getenv("ZZ")
	if path == "" { t.Skip() }
	for _, cache := range []string{"-16384", "-131072"} {
		c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
		if err != nil { t.Fatal(err) }
		sqlitex.ExecuteTransient(c, "PRAGMA cache_size = "+cache, nil)
		for _, q := range []string{
			"SELECT r.* FROM requests r",
			"SELECT r.permit, p.outcome, p.robots_allowed FROM requests AS r LEFT JOIN pages AS p ON p.crawl_id = r.crawl_id AND p.fp = r.fp",
			"SELECT r.permit, r.started_us, r.pace_group FROM requests AS r ORDER BY r.pace_group, r.started_us, r.permit",
			"SELECT r.* FROM requests AS r ORDER BY r.pace_group, r.started_us, r.permit",
			"SELECT host, robots_fetched_ms, max(crawl_delay_ms), min(robots_allowed), max(robots_ignored) FROM pages GROUP BY 1,2",
			"SELECT count(*) FROM pages WHERE robots_allowed = 0 OR outcome IN ('scope','trap','budget')",
		} {
			t0 := time.Now(); n := 0
			err := sqlitex.ExecuteTransient(c, q, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { n++; return nil }})
			t.Log(cache, time.Since(t0), n, err, q[:60])
		}
		c.Close()
	}
	l, _ := lsq.OpenReadOnly(path)
	t0 := time.Now()
	r, err := audit.Run(context.Background(), l, 0)
	t.Log(time.Since(t0), r.Requests, err)
}
