package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
)

// These two are the ways not taken into the same engine: the batches of
// BenchmarkCommit through database/sql, and through the driver beneath it.
// They bind the same columns, without the cleaning of texts.

const altBatch = 500

func BenchmarkDatabaseSQL(b *testing.B) {
	db, batches := alternative(b)
	ctx := context.Background()
	measureAlternative(b, batches, func(batch *ledger.Batch) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		var st [3]*sql.Stmt
		for i, q := range []string{insertPage, putLinks, putRequest} {
			if st[i], err = tx.PrepareContext(ctx, q); err != nil {
				return err
			}
			defer st[i].Close()
		}
		run := func(i int, args []any) error { _, err := st[i].ExecContext(ctx, args...); return err }
		if err := writeAlternative(batch, run); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func BenchmarkDriverStatements(b *testing.B) {
	db, batches := alternative(b)
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(dc any) error {
		c := dc.(driver.Conn)
		var st [5]driver.Stmt
		for i, q := range []string{insertPage, putLinks, putRequest, "BEGIN IMMEDIATE", "COMMIT"} {
			if st[i], err = c.Prepare(q); err != nil {
				return err
			}
			defer st[i].Close()
		}
		var named []driver.NamedValue
		run := func(i int, args []any) error {
			named = named[:0]
			for k, a := range args {
				named = append(named, driver.NamedValue{Ordinal: k + 1, Value: a})
			}
			_, err := st[i].(driver.StmtExecContext).ExecContext(ctx, named)
			return err
		}
		measureAlternative(b, batches, func(batch *ledger.Batch) error {
			if err := run(3, nil); err != nil {
				return err
			}
			if err := writeAlternative(batch, run); err != nil {
				return err
			}
			return run(4, nil)
		})
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func alternative(b *testing.B) (*sql.DB, func(i int) *ledger.Batch) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "ledger.db")
	l, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(4000)&_pragma=cache_size(-65536)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	return db, func(i int) *ledger.Batch { return ledgertest.BenchBatch(r, 1, i*altBatch, altBatch) }
}

func measureAlternative(b *testing.B, batches func(int) *ledger.Batch, commit func(*ledger.Batch) error) {
	var cpu time.Duration
	var mallocs uint64
	var before, after runtime.MemStats
	for i := range b.N {
		b.StopTimer()
		batch := batches(i)
		runtime.ReadMemStats(&before)
		start := cpuTime()
		b.StartTimer()
		if err := commit(batch); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cpu += cpuTime() - start
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		b.StartTimer()
	}
	pages := float64(b.N * altBatch)
	b.ReportMetric(float64(cpu.Microseconds())/pages, "cpu-µs/page")
	b.ReportMetric(float64(mallocs)/pages, "allocs/page")
}

func writeAlternative(batch *ledger.Batch, run func(int, []any) error) error {
	var args []any
	var blob []byte
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	for i := range batch.Pages {
		p := &batch.Pages[i]
		id := ledger.BeforePages(1) + int64(batch.Requests[i].Permit)
		fp := ledger.AppendFP(nil, p.FP)
		t := &p.Timing
		args = append(args[:0], p.Crawl, fp, p.URL, p.Host, p.Kind, p.Via, text(p.FoundOn), int64(p.Depth), int64(p.Tries),
			p.Outcome.String(), int64(p.Status), text(p.Error), text(p.ContentType), text(p.Charset), p.Size, p.WireSize,
			nil, nil, nil, t.TTFB.Microseconds(), t.Transfer.Microseconds(), t.Total.Microseconds(), t.Reused,
			p.FetchedAt.UnixMilli(), text(p.RedirectTo), text(p.Title), text(p.Description), text(p.Canonical), text(p.Lang), text(p.Hreflang),
			p.NoIndex, p.NoFollow, nil, int64(p.ContentHash), int64(p.LinkCount),
			p.Robots.Allowed, text(p.Robots.Rule), nil, nil, p.Robots.FetchedAt.UnixMilli(), p.Robots.Confidence, p.Robots.Ignored, id)
		if err := run(0, args); err != nil {
			return err
		}
		blob = ledger.EncodeLinks(blob[:0], p.Links)
		if err := run(1, append(args[:0], id, blob)); err != nil {
			return err
		}
		r := &batch.Requests[i]
		args = append(args[:0], r.Crawl, int64(r.Permit), r.Group, r.Kind, r.Cause, r.Outcome.String(), int64(r.Status),
			r.Started.UnixMicro(), r.Ended.UnixMicro(), r.GapOwed.Microseconds(), int64(r.InFlight), int64(r.Cap), fp[:], nil, nil)
		if err := run(2, args); err != nil {
			return err
		}
	}
	return nil
}
