package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
)

func TestJobContract(t *testing.T) {
	ledgertest.RunJobs(t, func(t *testing.T) ledgertest.JobStore { return open(t, filepath.Join(t.TempDir(), "ledger.db")) })
}

func TestALedgerOfVersionTwoIsUpgradedWithItsDataIntact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := client(t, path)
	known, err := parseMigrations()
	if err != nil {
		t.Fatal(err)
	}
	run := func(q string) {
		t.Helper()
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range known[:2] {
		run(m.up)
	}
	run(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	run("PRAGMA user_version = 2")
	run(`INSERT INTO crawls (status, seeds, spec, started_ms, processed) VALUES ('paused', '["https://a.example/"]', '{"depth":3}', 1000, 1)`)
	run(`INSERT INTO crawl_settings VALUES (1, 2000, '{"depth":4}')`)
	run(fmt.Sprintf(`INSERT INTO pages (id, crawl_id, fp, url, host, depth, tries, outcome, status, robots_allowed)
		VALUES (%d, 1, zeroblob(16), 'https://a.example/', 'a.example', 0, 1, 'ok', 200, 1)`, ledger.BeforePages(1)+1))
	run(fmt.Sprintf(`INSERT INTO page_links VALUES (%d, zeroblob(16))`, ledger.BeforePages(1)+1))
	run(`INSERT INTO requests (crawl_id, permit, pace_group, kind, outcome, gap_owed_us, in_flight, cap, fp) VALUES (1, 1, 'a.example', 'page', 'ok', 5, 1, 2, zeroblob(16))`)
	run(`INSERT INTO evidence_log VALUES (1, zeroblob(16), 'trap', 5, 'https://a.example/', '{}', '{}', 1)`)
	run(`INSERT INTO domains (host, adaptive_delay_ms) VALUES ('a.example', 1500)`)
	old := []string{"crawls", "crawl_settings", "pages", "page_links", "requests", "evidence_log", "evidence", "domains"}
	before := map[string][][]any{}
	for _, table := range old {
		before[table] = rows(t, db, "SELECT * FROM "+table)
	}

	l := open(t, path)
	for _, table := range old {
		after := rows(t, db, "SELECT * FROM "+table)
		for i := range after { // columns that came since are behind the others
			after[i] = after[i][:len(before[table][0])]
		}
		if d := cmp.Diff(before[table], after); d != "" {
			t.Errorf("%s (-before +after):\n%s", table, d)
		}
	}
	want := fmt.Sprint([][]any{{known[len(known)-1].version}})
	if got := fmt.Sprint(rows(t, db, "PRAGMA user_version")); got != want {
		t.Errorf("version %s, want %s", got, want)
	}
	c, err := l.LatestCrawl(t.Context())
	if err != nil || c.Status != ledger.Paused || c.Counters.Processed != 1 {
		t.Errorf("crawl %+v, %v", c, err)
	}
	if err := l.CreateTenant(t.Context(), ledger.Tenant{ID: "a"}); err != nil {
		t.Error(err)
	}
}

// A plan that searches an index reads what it returns; one that scans or sorts
// reads every job there ever was.
func TestNoLookUpOfJobsReadsThoseThatHaveEnded(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	all := func(f ledger.JobFilter, status ledger.Status) string {
		q := jobQuery(f, status)
		return q.text(selectJob, newestFirst)
	}
	for _, c := range []struct{ query, index string }{
		{selectWaiting, "jobs_by_status (status=?)"},
		{selectRunning, "jobs_by_status (status=?)"},
		{selectServed, "jobs_by_grant (granted_ms>?)"},
		{all(ledger.JobFilter{}, ""), "INTEGER PRIMARY KEY (rowid<?)"},
		{all(ledger.JobFilter{}, "x"), "jobs_by_status (status=? AND rowid<?)"},
		{all(ledger.JobFilter{Tenant: "x"}, ""), "jobs_by_tenant (tenant_id=? AND rowid<?)"},
		{all(ledger.JobFilter{Tenant: "x", Match: "x", Type: "x"}, ""), "jobs_by_tenant (tenant_id=? AND rowid<?)"},
		{all(ledger.JobFilter{Tenant: "x"}, "x"), "jobs_by_tenant_status (tenant_id=? AND status=? AND rowid<?)"},
		{all(ledger.JobFilter{Schedule: "x"}, ""), "jobs_by_schedule (schedule_id=? AND rowid<?)"},
		{selectJob + " " + byIdempotency, "jobs_by_idempotency (tenant_id=? AND idempotency=?)"},
		{selectJob + " " + byID, "jobs_by_id (id=?)"},
		{selectEvents, "job_events_by_job (job_id=? AND rowid>?)"},
		{"SELECT id " + dueDeliveries, "webhook_deliveries_due (next_ms<?)"},
		{"SELECT id FROM webhook_deliveries " + ofJob, "webhook_deliveries_by_job (job_id=?)"},
		{"SELECT id " + dueSchedules, "schedules_due (next_ms<?)"},
	} {
		var plan []string
		err := l.read(t.Context(), func(conn *sqlite.Conn) error {
			s, err := conn.Prepare("EXPLAIN QUERY PLAN " + c.query)
			if err != nil {
				return err
			}
			return each(s, func(ledger.Reader) error { plan = append(plan, s.ColumnText(3)); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "; ")
		sorts := strings.Contains(text, "TEMP B-TREE") && !strings.Contains(c.query, "GROUP BY") && !strings.Contains(c.query, "next_ms, id")
		if !strings.Contains(text, c.index) || strings.Contains(text, "SCAN jobs") || sorts {
			t.Errorf("%s\n\tis done by %s", c.query, text)
		}
	}
}
