package postgres

import (
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/testenv"
)

func TestJobContract(t *testing.T) {
	ledgertest.RunJobs(t, func(t *testing.T) ledgertest.JobStore { return openLedger(t, testenv.Postgres(t)) })
}

func Test_no_look_up_of_jobs_reads_those_that_have_ended(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	for _, q := range []string{
		"INSERT INTO tenants (id, weight) SELECT 't' || n, 1 FROM generate_series(0, 9) AS n",
		`INSERT INTO jobs (id, tenant_id, month, type, status, seeds, schedule_id, granted_ms, idempotency)
			SELECT 'j' || n, 't' || n % 10, '2026-03', 'crawl', CASE WHEN n % 997 = 0 THEN 'queued' WHEN n % 991 = 0 THEN 'running' ELSE 'completed' END,
				'[]', 's' || n % 1000, n, 'i' || n FROM generate_series(1, 20000) AS n`,
		"INSERT INTO job_events (tenant_id, job_id, type) SELECT 't1', 'j' || n % 200, 'x' FROM generate_series(1, 20000) AS n",
		`INSERT INTO webhook_deliveries (tenant_id, job_id, event, url, next_ms, done_ms)
			SELECT 't1', 'j' || n, 'x', 'x', CASE WHEN n % 1000 = 0 THEN n END, CASE WHEN n % 1000 > 0 THEN n END FROM generate_series(1, 20000) AS n`,
		`INSERT INTO schedules (id, tenant_id, rule, enabled, next_ms) SELECT 's' || n, 't' || n % 10, '6h', true, n FROM generate_series(1, 5000) AS n`,
		"ANALYZE",
	} {
		if _, err := l.pool.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	list := func(f ledger.JobFilter, status ledger.Status) (string, []any) {
		f.Limit = 20
		return jobQuery(f, status)
	}
	type lookUp struct {
		sql  string
		args []any
	}
	of := func(sql string, args []any) lookUp { return lookUp{sql, args} }
	for _, q := range []lookUp{
		{selectWaiting, nil}, {selectRunning, nil}, {selectServed, []any{19990}},
		of(list(ledger.JobFilter{}, "")), of(list(ledger.JobFilter{Before: 9000}, "running")), of(list(ledger.JobFilter{Tenant: "t7"}, "")),
		of(list(ledger.JobFilter{Tenant: "t7", Before: 5000}, "")), of(list(ledger.JobFilter{Tenant: "t7"}, "running")),
		of(list(ledger.JobFilter{Schedule: "s7"}, "")),
		{selectJob + byIdempotency, []any{"t7", "i7"}}, {selectJob + byID, []any{"j7", "t7"}},
		{selectEvents, []any{"j7", 100, 20}},
		{dueDeliveries, []any{math.MaxInt32, 5}}, {selectDelivery + "WHERE job_id = $1 ORDER BY id", []any{"j7"}},
		{dueSchedules, []any{math.MaxInt32, 5}},
	} {
		rows, err := l.pool.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+q.sql, append([]any{pgx.QueryExecModeSimpleProtocol}, q.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", q.sql, err)
		}
		text := strings.Join(plan, "\n")
		for _, bad := range []string{"Seq Scan on jobs", "Seq Scan on job_events", "Seq Scan on webhook_deliveries", "Seq Scan on schedules", "Rows Removed by"} {
			if strings.Contains(strings.ReplaceAll(text, "Rows Removed by Filter: 10\n", ""), bad) { // ten tenants, none disabled
				t.Errorf("%s\n%s", q.sql, text)
				break
			}
		}
	}
}

func Test_old_receipts_go_with_new_ones(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	if _, err := l.pool.Exec(t.Context(), "INSERT INTO receipts SELECT gen_random_uuid(), 1000 FROM generate_series(1, 8)"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.LogAction(t.Context(), ledger.Action{Action: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	left, _, err := one(t.Context(), l, ledger.Reader.Int, "SELECT count(*) FROM receipts")
	if err != nil || left != 2 {
		t.Errorf("%d receipts, %v; want those of the two actions", left, err)
	}
}
