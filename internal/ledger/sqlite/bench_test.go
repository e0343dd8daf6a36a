package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
)

// BenchmarkCommit reports CPU time (user and system, of the whole process)
// and wall time for each page, fsync included.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{200, 500, 1000} {
		b.Run(fmt.Sprintf("pages=%d", size), func(b *testing.B) {
			l := openBench(b)
			ctx := context.Background()
			crawl := &ledger.Crawl{Status: ledger.Running}
			if _, err := l.CreateCrawl(ctx, crawl); err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			const distinct = 20
			b.ReportAllocs()
			var cpu time.Duration
			var mallocs uint64
			var before, after runtime.MemStats
			b.ResetTimer()
			for i := 0; i < b.N; {
				b.StopTimer()
				var batches []*ledger.Batch
				for k := 0; k < distinct && i < b.N; k, i = k+1, i+1 {
					batches = append(batches, ledgertest.BenchBatch(r, crawl.ID, i*size, size))
				}
				runtime.GC()
				runtime.ReadMemStats(&before)
				start := cpuTime()
				b.StartTimer()
				for _, batch := range batches {
					if err := l.Commit(ctx, batch); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				cpu += cpuTime() - start
				runtime.ReadMemStats(&after)
				mallocs += after.Mallocs - before.Mallocs
				b.StartTimer()
			}
			pages := float64(b.N * size)
			b.ReportMetric(float64(cpu.Microseconds())/pages, "cpu-µs/page")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/pages, "wall-µs/page")
			b.ReportMetric(float64(mallocs)/pages, "allocs/page")
			b.ReportMetric(pages/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

func openBench(b *testing.B) *Ledger {
	b.Helper()
	l, err := Open(filepath.Join(b.TempDir(), "ledger.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOpen is the cost of start-up: a fresh ledger and one that exists.
func BenchmarkOpen(b *testing.B) {
	b.Run("fresh", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			l, err := Open(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				b.Fatal(err)
			}
			l.Close()
		}
	})
	b.Run("existing", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "ledger.db")
		for b.Loop() {
			l, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			l.Close()
		}
	})
}
