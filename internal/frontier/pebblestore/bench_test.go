package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/frontier"
)

// benchEntry spreads URLs over 10,000 hosts, as long as real ones are.
func benchEntry(i int) frontier.Entry {
	host := fmt.Sprintf("www.site-%d.example", i*7919%10_000)
	return frontier.Entry{
		Crawl: 1, Group: host, Prio: uint8(1 + i%4), Via: frontier.ViaLink, Depth: uint16(i % 9),
		URL:     fmt.Sprintf("https://%s/articles/2024/section-%d/a-title-of-some-length-%d.html", host, i%50, i),
		FoundOn: fmt.Sprintf("https://%s/articles/2024/section-%d/", host, i%50),
	}
}

func benchStore(b *testing.B, disk vfs.FS, opts Options) *Store {
	b.Helper()
	dir := "frontier"
	if disk == nil {
		dir = b.TempDir()
	}
	opts.FS = disk
	s, err := Open(dir, opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.OpenCrawl(ctx, 1); err != nil {
		b.Fatal(err)
	}
	return s
}

// load adds n URLs in batches of 500 and acknowledges one in ten.
func load(b *testing.B, s *Store, from, n int) {
	b.Helper()
	var acks []frontier.Ref
	rnd := rand.New(rand.NewPCG(1, 1))
	batch := &frontier.Batch{Add: make([]frontier.Entry, 0, 500)}
	for i := from; i < from+n; {
		b.StopTimer()
		batch.Add = batch.Add[:0]
		for range 500 {
			batch.Add = append(batch.Add, benchEntry(i))
			i++
		}
		batch.Ack = acks
		b.StartTimer()
		added, err := s.Commit(ctx, batch)
		if err != nil {
			b.Fatal(err)
		}
		acks = acks[:0]
		for _, e := range added {
			if rnd.IntN(10) == 0 {
				acks = append(acks, e.Ref())
			}
		}
	}
}

// One operation is one commit of 500 additions and 50 acknowledgements.
func BenchmarkCommit(b *testing.B) {
	for _, bm := range []struct {
		name string
		disk func() vfs.FS
		opts Options
	}{
		{"memory", func() vfs.FS { return vfs.NewMem() }, Options{}},
		{"disk", func() vfs.FS { return nil }, Options{}},
		{"above-budget", func() vfs.FS { return vfs.NewMem() }, Options{SeenInMemory: -1}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := benchStore(b, bm.disk(), bm.opts)
			b.ReportAllocs()
			b.ResetTimer()
			load(b, s, 0, 500*b.N)
			b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "adds/s")
		})
	}
}

func BenchmarkAck(b *testing.B) {
	s := benchStore(b, vfs.NewMem(), Options{})
	var refs []frontier.Ref
	for i := 0; len(refs) < b.N; i += 500 {
		var batch frontier.Batch
		for j := range 500 {
			batch.Add = append(batch.Add, benchEntry(i+j))
		}
		added, err := s.Commit(ctx, &batch)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range added {
			refs = append(refs, e.Ref())
		}
	}
	b.ResetTimer()
	for i := 0; i < b.N; i += 500 {
		if _, err := s.Commit(ctx, &frontier.Batch{Ack: refs[i:min(i+500, b.N)]}); err != nil {
			b.Fatal(err)
		}
	}
}

// The known URLs of a page: 500 duplicates in one commit, from memory and,
// above the budget, from disk.
func BenchmarkCommitDuplicates(b *testing.B) {
	for name, budget := range map[string]int{"memory": 0, "disk": -1} {
		b.Run(name, func(b *testing.B) {
			s := benchStore(b, vfs.NewMem(), Options{SeenInMemory: budget})
			load(b, s, 0, 200_000)
			batch := &frontier.Batch{}
			for i := range 500 {
				batch.Add = append(batch.Add, benchEntry(i*397))
			}
			b.ResetTimer()
			for range b.N {
				if added, err := s.Commit(ctx, batch); err != nil || len(added) != 0 {
					b.Fatal(len(added), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(500*b.N), "ns/url")
		})
	}
}

func BenchmarkSeen(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000, 10_000_000} {
		set := newSeenSet()
		s := &Store{}
		s.crawls.Store(&map[frontier.CrawlID]*seenSet{1: set})
		known, unknown := randomFPs(size, 1), randomFPs(1<<16, 2)
		for _, fp := range known {
			set.insert(fp)
		}
		b.Run(fmt.Sprintf("known/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				s.Seen(1, known[i*7919%size])
			}
		})
		b.Run(fmt.Sprintf("unknown/%d", size), func(b *testing.B) {
			for i := range b.N {
				s.Seen(1, unknown[i&(1<<16-1)])
			}
		})
		n, bytes := set.resident()
		b.Logf("%d fingerprints, %.1f bytes each", n, float64(bytes)/float64(n))
	}
}

func BenchmarkWindow(b *testing.B) {
	s := benchStore(b, vfs.NewMem(), Options{})
	load(b, s, 0, 500_000)
	dst := make([]frontier.Entry, 0, 48)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		got, err := s.Window(ctx, fmt.Sprintf("www.site-%d.example", i*31%10_000), 1, frontier.Pos{}, 48, dst[:0])
		if err != nil || len(got) < 30 {
			b.Fatal(len(got), err)
		}
	}
}

// A host with a million finished URLs and one left, read from its start.
func BenchmarkWindowOfADrainedQueue(b *testing.B) {
	s := benchStore(b, vfs.NewMem(), Options{})
	const n = 1_000_000
	for i := 0; i < n; i += 1000 {
		var batch frontier.Batch
		for j := range 1000 {
			e := benchEntry(i + j)
			e.Group = "www.one.example"
			batch.Add = append(batch.Add, e)
		}
		added, err := s.Commit(ctx, &batch)
		if err != nil {
			b.Fatal(err)
		}
		batch = frontier.Batch{}
		for j, e := range added {
			if i+j != n/2 {
				batch.Ack = append(batch.Ack, e.Ref())
			}
		}
		if _, err := s.Commit(ctx, &batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for i := range b.N {
		before := b.Elapsed()
		got, err := s.Window(ctx, "www.one.example", 1, frontier.Pos{}, 48, nil)
		if err != nil || len(got) != 1 {
			b.Fatal(len(got), err)
		}
		if i < 2 {
			b.Logf("window %d: %v", i+1, b.Elapsed()-before)
		}
	}
}

// A million entries queued on 10,000 groups, on disk: memory, bytes a URL,
// and the time to count them and to read the seen set back.
func BenchmarkMillion(b *testing.B) {
	for range b.N {
		dir := b.TempDir()
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.OpenCrawl(ctx, 1); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		load(b, s, 0, 1_000_000)
		b.ReportMetric(1e6/b.Elapsed().Seconds(), "adds/s")

		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapInuse)/(1<<20), "heap-MB")
		st := s.Stats()
		b.ReportMetric(float64(st.SeenBytes)/1e6, "seen-B/url")
		at := b.Elapsed()
		groups, total := 0, 0
		if err := s.Queues(ctx, 1, func(q frontier.Queue) error { groups++; total += q.Count; return nil }); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((b.Elapsed()-at).Seconds()*1e3, "queues-ms")
		if groups != 10_000 || total < 850_000 {
			b.Fatal(groups, total)
		}
		s.CloseCrawl(1)
		at = b.Elapsed()
		if err := s.OpenCrawl(ctx, 1); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((b.Elapsed()-at).Seconds()*1e3, "open-ms")
		if err := s.db.Flush(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Stats().DiskBytes)/1e6, "disk-B/url")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
