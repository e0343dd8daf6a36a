package api

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// middle is the median time of n calls.
func middle(n int, call func()) time.Duration {
	var took []time.Duration
	for range n {
		began := time.Now()
		call()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[n/2]
}

func Test_the_last_page_of_a_long_list_costs_as_much_as_the_first(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	id, crawlID := w.begin(w.ann, "https://h0.example/")
	const pages = 30_000
	w.crowd(crawlID, 0, pages)
	cursor := ""
	for p := range w.db.Pages(w.ctx(), crawlID, ledger.PageFilter{}) {
		if p.URL == fmt.Sprintf("https://h%d.example/p%d", (pages-60)%5, pages-60) {
			cursor = fmt.Sprintf("&cursor=%d", p.ID)
		}
	}
	path := "/v1/jobs/" + id + "/pages?limit=50"
	read := func(path string) func() {
		return func() {
			if l := get[List[Page]](w, w.ann, path); len(l.Items) != 50 {
				t.Fatalf("%d pages", len(l.Items))
			}
		}
	}
	first, last := middle(21, read(path)), middle(21, read(path+cursor))
	t.Logf("first %v, last %v", first, last)
	if last > 4*first+5*time.Millisecond {
		t.Errorf("the last page takes %v, the first %v", last, first)
	}
}

// BenchmarkReads is the API under load: 16 clients on loopback, a job of
// 100,000 pages.
func BenchmarkReads(b *testing.B) {
	w := newWorld(b, openSQLite(b), nil)
	id, crawlID := w.begin(w.ann, "https://h0.example/")
	w.crowd(crawlID, 0, 100_000)
	cursor := ""
	n := 0
	for p := range w.db.Pages(w.ctx(), crawlID, ledger.PageFilter{}) {
		if n++; n == 90_000 {
			cursor = fmt.Sprint(p.ID)
		}
	}
	for _, c := range []struct{ name, path string }{
		{"health", "/v1/health"},
		{"me", "/v1/me"},
		{"job", "/v1/jobs/" + id},
		{"jobs", "/v1/jobs"},
		{"pages_first_50", "/v1/jobs/" + id + "/pages"},
		{"pages_50_behind_90000", "/v1/jobs/" + id + "/pages?cursor=" + cursor},
		{"pages_500", "/v1/jobs/" + id + "/pages?limit=500"},
		{"pages_404_50", "/v1/jobs/" + id + "/pages?status=404"},
		{"errors_50", "/v1/jobs/" + id + "/errors"},
		{"domains", "/v1/domains?job=" + id},
	} {
		b.Run(c.name, func(b *testing.B) { load(b, w, c.path, 16) })
	}
}

// load reads a path from some clients at once and reports rate and p99.
func load(b *testing.B, w *world, path string, clients int) {
	client := w.srv.Client()
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	each := max(b.N/clients, 1)
	b.ResetTimer()
	began := time.Now()
	for range clients {
		wg.Go(func() {
			own := make([]time.Duration, 0, each)
			for range each {
				start := time.Now()
				resp, err := client.Do(w.request(w.ann, path))
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					b.Errorf("%s: %d", path, resp.StatusCode)
					return
				}
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	wg.Wait()
	all := time.Since(began)
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(len(took))/all.Seconds(), "req/s")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	}
}
