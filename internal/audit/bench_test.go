package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tiptoe/internal/audit"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// BenchmarkRun audits a log of one page a request on a thousand hosts.
func BenchmarkRun(b *testing.B) {
	const rows, hosts = 100_000, 1000
	ctx := context.Background()
	l, err := sqlite.Open(filepath.Join(b.TempDir(), "ledger.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	spec, err := json.Marshal(crawl.Spec{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2})
	if err != nil {
		b.Fatal(err)
	}
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := ledger.Crawl{Status: ledger.Running, Spec: spec, Started: t0}
	if _, err := l.CreateCrawl(ctx, &c); err != nil {
		b.Fatal(err)
	}
	var batch ledger.Batch
	for i := range rows {
		u := weburl.FromCanonical(fmt.Sprintf("https://h%d.example/page-%d", i%hosts, i/hosts))
		at := t0.Add(time.Duration(i/hosts)*300*time.Millisecond + time.Duration(i%hosts)*time.Microsecond)
		batch.Pages = append(batch.Pages, ledger.Page{Crawl: c.ID, URL: u.String(), FP: u.Fingerprint(), Host: u.HostKey(), Kind: "page",
			Outcome: outcome.OK, Status: 200, FetchedAt: at, Robots: ledger.RobotsDecision{Decided: true, Allowed: true, FetchedAt: t0, Confidence: 1}})
		batch.Requests = append(batch.Requests, ledger.Request{Crawl: c.ID, Permit: uint64(i + 1), Group: u.HostKey(), URL: u.String(),
			FP: u.Fingerprint(), Kind: "page", Cause: "first", Outcome: outcome.OK, Status: 200, Started: at, Granted: at,
			Ended: at.Add(20 * time.Millisecond), GapOwed: 250 * time.Millisecond, GapWhy: "base delay", InFlight: 1, Cap: 2})
		if len(batch.Requests) == 5000 || i == rows-1 {
			if err := l.Commit(ctx, &batch); err != nil {
				b.Fatal(err)
			}
			batch = ledger.Batch{}
		}
	}
	b.ResetTimer()
	for b.Loop() {
		r, err := audit.Run(ctx, l, 0)
		if err != nil {
			b.Fatal(err)
		}
		if !r.Kept || r.Requests != rows {
			b.Fatalf("kept %v, %d requests", r.Kept, r.Requests)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/rows, "µs/request")
}
