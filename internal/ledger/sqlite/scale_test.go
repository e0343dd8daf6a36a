package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/weburl"
)

// fill makes n pages inside the database, which is faster than to commit them.
func fill(t testing.TB, l *Ledger, n int) int64 {
	t.Helper()
	crawl, err := l.CreateCrawl(t.Context(), &ledger.Crawl{Status: ledger.Running})
	if err != nil {
		t.Fatal(err)
	}
	c := <-l.writer
	defer func() { l.writer <- c }()
	if err := exec(c, fmt.Sprintf(`INSERT INTO pages (id, crawl_id, fp, url, host, depth, tries, outcome, status, title, total_us)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT %d + i, %d, CAST(printf('%%016d', i) AS BLOB), 'https://a.example/page/' || i, 'a.example', 1, 1, 'ok', 200,
			'The title of page ' || i, (i * 7919) %% 1000003 FROM n`, n, ledger.BeforePages(crawl), crawl)); err != nil {
		t.Fatal(err)
	}
	return crawl
}

func TestAListingHoldsAFewHundredPagesInMemoryHoweverManyThereAre(t *testing.T) {
	const n = manyPages
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	crawl := fill(t, l, n)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, c := range map[string]struct {
		f     ledger.PageFilter
		bound uint64
	}{
		"as found": {ledger.PageFilter{}, 4 << 20},
		"slowest":  {ledger.PageFilter{Sort: ledger.ByTime, Desc: true}, 4<<20 + 3*8*n}, // and the ids, while their slice grows
	} {
		before, most, seen := live(), uint64(0), 0
		for p, err := range l.Pages(t.Context(), crawl, c.f) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen%(n/4) == 0 {
				most = max(most, live())
			}
			_ = p
		}
		if seen != n || most > before+c.bound {
			t.Errorf("%s: %d pages, %d KiB live, %d KiB before", name, seen, most>>10, before>>10)
		}
	}
}

func BenchmarkPages(b *testing.B) {
	l := openBench(b)
	crawl := fill(b, l, max(b.N, 1))
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for _, err := range l.Pages(b.Context(), crawl, ledger.PageFilter{}) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != max(b.N, 1) {
		b.Fatalf("%d pages", n)
	}
}

// BenchmarkLinksTo is one pass over the links of 20,000 pages, 60 each.
func BenchmarkLinksTo(b *testing.B) {
	l := openBench(b)
	crawl, err := l.CreateCrawl(b.Context(), &ledger.Crawl{Status: ledger.Running})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const pages = 20_000
	for i := 0; i < pages; i += 1000 {
		if err := l.Commit(b.Context(), ledgertest.BenchBatch(r, crawl, i, 1000)); err != nil {
			b.Fatal(err)
		}
	}
	targets := make([]uint64, 1000)
	for i := range targets {
		targets[i] = weburl.FromCanonical(fmt.Sprint(i)).Fingerprint().Lo
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := l.LinksTo(b.Context(), crawl, targets, 10); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*pages), "µs/page")
}

func TestAListingSeeksToItsCursorByOneBound(t *testing.T) {
	after := ledger.BeforePages(3) + 77
	choose := func(f ledger.PageFilter) (q query) {
		f.Choose(3, &q)
		return q
	}
	q := choose(ledger.PageFilter{After: after})
	if len(q.where) != 2 || q.where[0] != "id > ?" || q.args[0] != after || q.where[1] != "id < ?" || q.args[1] != ledger.AfterPages(3) {
		t.Errorf("%v %v: a second lower bound makes a listing quadratic", q.where, q.args)
	}
	if q := choose(ledger.PageFilter{After: 5}); q.args[0] != ledger.BeforePages(3) {
		t.Errorf("a cursor before the crawl leads into another: %v", q.args)
	}
}
