package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/testenv"
)

// BenchmarkCommit reports the CPU time of this process and of the server's
// processes, and wall time for each page, fsync included.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{200, 500, 1000} {
		b.Run(fmt.Sprintf("pages=%d", size), func(b *testing.B) { benchCommit(b, size, 1, 1) })
	}
	b.Run("pages=500/committers=4/crawls=1", func(b *testing.B) { benchCommit(b, 500, 4, 1) })
	b.Run("pages=500/committers=4/crawls=4", func(b *testing.B) { benchCommit(b, 500, 4, 4) })
}

func benchCommit(b *testing.B, size, committers, crawls int) {
	url := testenv.PostgresServer(b).Database(b)
	l := openLedger(b, url)
	var ids []int64
	for range crawls {
		ids = append(ids, create(b, l))
	}
	r := rand.New(rand.NewPCG(1, 2))
	var own, server time.Duration
	const ahead = 20
	for i := 0; i < b.N; {
		b.StopTimer()
		batches := make(chan *ledger.Batch, ahead)
		for k := 0; k < ahead && i < b.N; k, i = k+1, i+1 {
			batches <- ledgertest.BenchBatch(r, ids[i%crawls], i*size, size)
		}
		close(batches)
		own0, server0 := cpuTime(), serverTime(b, url)
		b.StartTimer()
		var wg sync.WaitGroup
		for range committers {
			wg.Go(func() {
				for batch := range batches {
					if err := l.Commit(context.Background(), batch); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		b.StopTimer()
		own, server = own+cpuTime()-own0, server+serverTime(b, url)-server0
	}
	pages := float64(b.N * size)
	b.ReportMetric(float64(own.Microseconds())/pages, "cpu-µs/page")
	b.ReportMetric(float64(server.Microseconds())/pages, "server-µs/page")
	b.ReportMetric(pages/b.Elapsed().Seconds(), "pages/s")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverTime is the CPU time of the server's processes so far; Linux only.
func serverTime(b *testing.B, url string) (total time.Duration) {
	c := client(b, url)
	defer c.Close(b.Context())
	for _, pid := range strings.Fields(query1[string](b, c, "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE pid <> pg_backend_pid()")) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		total += time.Duration(user+system) * 10 * time.Millisecond // clock ticks, 100 a second
	}
	return total
}

// BenchmarkOpen is the cost of start-up with a schema that is up to date.
func BenchmarkOpen(b *testing.B) {
	url := testenv.Postgres(b)
	for b.Loop() {
		l, err := Open(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
