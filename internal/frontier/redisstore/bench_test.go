package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

// benchEntry spreads URLs over 10,000 hosts, as long as real ones are.
func benchEntry(i int) frontier.Entry {
	host := fmt.Sprintf("www.site-%d.example", i*7919%10_000)
	return benchEntryOn(host, i)
}

func benchEntryOn(host string, i int) frontier.Entry {
	return frontier.Entry{
		Crawl: 1, Group: host, Prio: uint8(1 + i%4), Via: frontier.ViaLink, Depth: uint16(i % 9),
		URL:     fmt.Sprintf("https://%s/articles/2024/section-%d/a-title-of-some-length-%d.html", host, i%50, i),
		FoundOn: fmt.Sprintf("https://%s/articles/2024/section-%d/", host, i%50),
	}
}

func benchStore(b *testing.B, opts Options, args ...string) (*Store, *testenv.Redis) {
	b.Helper()
	r := testenv.StartRedis(b, append([]string{"--appendfsync", "everysec"}, args...)...)
	opts.URL = r.URL()
	s := openTest(b, opts)
	if err := s.OpenCrawl(ctx, 1); err != nil {
		b.Fatal(err)
	}
	return s, r
}

// info reads one number of INFO.
func info(b *testing.B, r *testenv.Redis, section, field string) float64 {
	b.Helper()
	text, err := r.Do("INFO", section)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("redis tells nothing of %s", field)
	return 0
}

// cpu is what Redis' main thread has used, in seconds.
func cpu(b *testing.B, r *testenv.Redis) float64 {
	return info(b, r, "cpu", "used_cpu_user_main_thread") + info(b, r, "cpu", "used_cpu_sys_main_thread")
}

// measure reports Redis' time for each operation beside the caller's.
func measure(b *testing.B, r *testenv.Redis, run func()) {
	before := cpu(b, r)
	b.ReportAllocs()
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric((cpu(b, r)-before)*1e6/float64(b.N), "redis-µs/op")
}

// One operation queues ten new URLs of one host.
func BenchmarkAddTen(b *testing.B) {
	s, r := benchStore(b, Options{Exclusive: true})
	batch := &frontier.Batch{Add: make([]frontier.Entry, 10)}
	measure(b, r, func() {
		for i := range b.N {
			host := fmt.Sprintf("www.site-%d.example", i%1000)
			for j := range batch.Add {
				batch.Add[j] = benchEntryOn(host, 10*i+j)
			}
			if added, err := s.Commit(ctx, batch); err != nil || len(added) != 10 {
				b.Fatal(len(added), err)
			}
		}
	})
}

// One operation is the commit of one page under a lease: ten new URLs and
// twenty known ones of its host, its acknowledgement and its host's clocks.
func BenchmarkCommitPage(b *testing.B) {
	s, r := benchStore(b, Options{})
	const hosts = 100
	waiting := make([][]frontier.Entry, hosts)
	for h := range waiting {
		added, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{benchEntryOn(fmt.Sprintf("www.site-%d.example", h), -1-h)}})
		if err != nil {
			b.Fatal(err)
		}
		waiting[h] = added
	}
	if leases, err := s.Acquire(ctx, "w", time.Hour, hosts, nil); err != nil || len(leases) != hosts {
		b.Fatal(len(leases), err)
	}
	measure(b, r, func() {
		for i := range b.N {
			h := i % hosts
			batch := pageBatch(waiting[h], i)
			added, err := s.Commit(ctx, batch)
			if err != nil {
				b.Fatal(err)
			}
			waiting[h] = append(waiting[h][1:], added...)
		}
	})
}

func pageBatch(waiting []frontier.Entry, i int) *frontier.Batch {
	host := waiting[0].Group
	batch := &frontier.Batch{
		Ack:   []frontier.Ref{waiting[0].Ref()},
		Notes: []frontier.Note{{Group: host, Name: "clocks", Value: make([]byte, 120)}},
	}
	for j := -20; j < 10; j++ {
		batch.Add = append(batch.Add, benchEntryOn(host, max(10*i+j, 0)*1000+int(host[9])))
	}
	return batch
}

// A worker's day: 1,000 pages of 1,000 hosts, fifty in a commit, each with ten
// new links of its host and one to another. One operation is one page.
func BenchmarkPages(b *testing.B) {
	s, r := benchStore(b, Options{})
	const hosts, together = 1000, 50
	waiting := make([][]frontier.Entry, hosts)
	for h := range waiting {
		added, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{benchEntryOn(fmt.Sprintf("www.site-%d.example", h), -1-h)}})
		if err != nil {
			b.Fatal(err)
		}
		waiting[h] = added
	}
	if leases, err := s.Acquire(ctx, "w", time.Hour, hosts, nil); err != nil || len(leases) != hosts {
		b.Fatal(len(leases), err)
	}
	calls := s.Calls()
	measure(b, r, func() {
		for i := 0; i < b.N; i += together {
			var batch frontier.Batch
			for j := i; j < min(i+together, b.N); j++ {
				page := pageBatch(waiting[j%hosts], j)
				waiting[j%hosts] = waiting[j%hosts][1:]
				batch.Add = append(batch.Add, page.Add...)
				batch.Add = append(batch.Add, benchEntryOn(fmt.Sprintf("www.site-%d.example", j*31%hosts), -hosts-j))
				batch.Ack = append(batch.Ack, page.Ack...)
				batch.Notes = append(batch.Notes, page.Notes...)
			}
			added, err := s.Commit(ctx, &batch)
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range added {
				var h int
				fmt.Sscanf(e.Group, "www.site-%d.example", &h)
				waiting[h] = append(waiting[h], e)
			}
		}
	})
	b.ReportMetric(float64(s.Calls()-calls)/float64(b.N), "calls/page")
}

// One operation reads 100 entries out of the middle of 10,000.
func BenchmarkWindow(b *testing.B) {
	s, r := benchStore(b, Options{Exclusive: true})
	var batch frontier.Batch
	for i := range 10_000 {
		batch.Add = append(batch.Add, benchEntryOn("www.site-1.example", i))
	}
	added, err := s.Commit(ctx, &batch)
	if err != nil {
		b.Fatal(err)
	}
	after := added[5000].Pos()
	dst := make([]frontier.Entry, 0, 100)
	measure(b, r, func() {
		for range b.N {
			if got, err := s.Window(ctx, "www.site-1.example", 1, after, 100, dst[:0]); err != nil || len(got) != 100 {
				b.Fatal(len(got), err)
			}
		}
	})
}

// One operation leases 100 groups and gives them back.
func BenchmarkLeaseHundred(b *testing.B) {
	s, r := benchStore(b, Options{})
	var batch frontier.Batch
	for i := range 1000 {
		batch.Add = append(batch.Add, benchEntry(i))
	}
	if _, err := s.Commit(ctx, &batch); err != nil {
		b.Fatal(err)
	}
	measure(b, r, func() {
		for range b.N {
			leases, err := s.Acquire(ctx, "w", time.Hour, 100, nil)
			if err != nil || len(leases) != 100 {
				b.Fatal(len(leases), err)
			}
			if err := s.Release(ctx, leases); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One operation renews 1,000 leases.
func BenchmarkRenewThousand(b *testing.B) {
	s, r := benchStore(b, Options{})
	var batch frontier.Batch
	for i := range 1000 {
		batch.Add = append(batch.Add, benchEntry(i))
	}
	if _, err := s.Commit(ctx, &batch); err != nil {
		b.Fatal(err)
	}
	if leases, err := s.Acquire(ctx, "w", time.Hour, 1000, nil); err != nil || len(leases) != 1000 {
		b.Fatal(len(leases), err)
	}
	measure(b, r, func() {
		for range b.N {
			if _, _, err := s.Renew(ctx, "w", time.Hour); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A million URLs seen, then a million queued: bytes of Redis' memory for each.
func BenchmarkMillion(b *testing.B) {
	const n = 1_000_000
	for range b.N {
		s, r := benchStore(b, Options{Exclusive: true, SeenCache: 1}, "--appendonly", "no")
		before := info(b, r, "memory", "used_memory_dataset")
		all := info(b, r, "memory", "used_memory")
		start := time.Now()
		for i := 0; i < n; i += 5000 {
			var batch frontier.Batch
			for j := i; j < i+5000; j++ {
				e := benchEntry(j)
				batch.Mark = append(batch.Mark, frontier.Mark{Crawl: 1, FP: e.Fingerprint(), Host: e.Group})
			}
			if _, err := s.Commit(ctx, &batch); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "marks/s")
		b.ReportMetric((info(b, r, "memory", "used_memory_dataset")-before)/n, "seen-dataset-B/url")
		b.ReportMetric((info(b, r, "memory", "used_memory")-all)/n, "seen-B/url")
		all = info(b, r, "memory", "used_memory")
		start = time.Now()
		for i := n; i < 2*n; i += 5000 {
			var batch frontier.Batch
			for j := i; j < i+5000; j++ {
				batch.Add = append(batch.Add, benchEntry(j))
			}
			if added, err := s.Commit(ctx, &batch); err != nil || len(added) != 5000 {
				b.Fatal(len(added), err)
			}
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "adds/s")
		b.ReportMetric((info(b, r, "memory", "used_memory")-all)/n, "queued-B/url")
	}
}
