package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the golden files")

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func page(url string, o outcome.Outcome, status int, links ...string) ledger.Page {
	u := weburl.FromCanonical(url)
	p := ledger.Page{Crawl: 1, URL: url, FP: u.Fingerprint(), Host: u.HostKey(), Kind: "page", Via: "link", FoundOn: "https://a.example/",
		Tries: 1, Outcome: o, Status: status, FetchedAt: t0, LinkCount: len(links)}
	if status != 0 {
		p.ContentType, p.Size, p.Timing.Total = "text/html", 20480, 91*time.Millisecond
	}
	for _, l := range links {
		p.Links = append(p.Links, weburl.FromCanonical(l).Fingerprint().Lo)
	}
	return p
}

// site is a small crawl with everything that can be wrong.
func site(t *testing.T) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := l.CreateCrawl(t.Context(), &ledger.Crawl{Status: ledger.Completed}); err != nil {
		t.Fatal(err)
	}
	const a = "https://a.example"
	home := page(a+"/", outcome.OK, 200, a+"/gone", a+"/old", a+"/about", a+"/limited", "https://down.example/")
	home.Via, home.FoundOn, home.Title = "seed", "", "Home \x1b[31mred\x1b[0m\u202e"
	about := page(a+"/about", outcome.OK, 200, a+"/gone", a+"/loop1")
	about.Depth, about.Size, about.Timing.Total = 1, 12, 3200*time.Millisecond
	again := page(a+"/again", outcome.OK, 200, a+"/gone")
	again.Depth, again.Size, again.ContentType = 2, 5<<30, "application/vnd.openxmlformats-officedocument"
	gone := page(a+"/gone", outcome.NotFound, 404)
	down := page("https://down.example/", outcome.DNS, 0)
	down.Error = "no such host\x1b]0;x\x07"
	lonely := page(a+"/lonely", outcome.ServerError, 500)
	lonely.Via, lonely.FoundOn = "sitemap", a+"/sitemap.xml"
	limited := page(a+"/limited", outcome.Throttled, 429)
	denied := page(a+"/denied", outcome.Robots, 0)
	hop := func(from, to, via string) ledger.Page {
		p := page(a+from, outcome.Redirect, 301)
		p.RedirectTo, p.Via = a+to, via
		return p
	}
	nowhere := page(a+"/nowhere", outcome.Redirect, 300)
	batch := &ledger.Batch{Pages: []ledger.Page{home, about, again, gone, down, lonely, limited, denied,
		hop("/old", "/older", "link"), hop("/older", "/gone", "redirect"), hop("/loop1", "/loop2", "link"),
		hop("/loop2", "/loop1", "redirect"), hop("/out", "/never", "seed"), nowhere}}
	if err := l.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTablesAndJSONAreAsTheyAlwaysWere(t *testing.T) {
	l := site(t)
	for name, write := range map[string]func(w io.Writer) (int64, error){
		"pages.txt": func(w io.Writer) (int64, error) { return Pages(t.Context(), w, l, 1, ledger.PageFilter{}, Options{}) },
		"pages100.txt": func(w io.Writer) (int64, error) {
			return Pages(t.Context(), w, l, 1, ledger.PageFilter{}, Options{Width: 100})
		},
		"pages.jsonl": func(w io.Writer) (int64, error) {
			return Pages(t.Context(), w, l, 1, ledger.PageFilter{}, Options{JSON: true})
		},
		"broken.txt": func(w io.Writer) (int64, error) { return Broken(t.Context(), w, l, 1, ledger.PageFilter{}, Options{}) },
		"broken2.txt": func(w io.Writer) (int64, error) {
			return Broken(t.Context(), w, l, 1, ledger.PageFilter{}, Options{Sources: 2, Width: 40})
		},
		"broken.jsonl": func(w io.Writer) (int64, error) {
			return Broken(t.Context(), w, l, 1, ledger.PageFilter{}, Options{JSON: true})
		},
		"redirects.txt": func(w io.Writer) (int64, error) {
			return Redirects(t.Context(), w, l, 1, ledger.PageFilter{}, Options{})
		},
		"redirects.jsonl": func(w io.Writer) (int64, error) {
			return Redirects(t.Context(), w, l, 1, ledger.PageFilter{}, Options{JSON: true})
		},
	} {
		var buf bytes.Buffer
		n, err := write(&buf)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, ".jsonl") {
			lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
			for _, line := range lines {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: not JSON: %s", name, line)
				}
			}
			if int64(len(lines)) != n {
				t.Errorf("%s: %d lines, said %d", name, len(lines), n)
			}
		}
		if strings.ContainsAny(buf.String(), "\x1b\u202e") {
			t.Errorf("%s can drive a terminal", name)
		}
		golden(t, name, buf.Bytes())
	}
}

func TestThrottledAndDisallowedAreNotBroken(t *testing.T) {
	for _, o := range brokenOutcomes() {
		if f := o.Fact(); f.Success {
			t.Errorf("%v is a success and broken", o)
		}
	}
	for _, o := range []outcome.Outcome{outcome.Throttled, outcome.Blocked, outcome.Robots, outcome.Scope, outcome.Budget, outcome.Parked} {
		for _, b := range brokenOutcomes() {
			if o == b {
				t.Errorf("%v counts as broken", o)
			}
		}
	}
}

func TestReportsOfNothingSaySo(t *testing.T) {
	l, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for want, write := range map[string]func(w io.Writer) (int64, error){
		"No pages match.\n":  func(w io.Writer) (int64, error) { return Pages(t.Context(), w, l, 1, ledger.PageFilter{}, Options{}) },
		"No broken links.\n": func(w io.Writer) (int64, error) { return Broken(t.Context(), w, l, 1, ledger.PageFilter{}, Options{}) },
		"No redirects.\n": func(w io.Writer) (int64, error) {
			return Redirects(t.Context(), w, l, 1, ledger.PageFilter{}, Options{})
		},
	} {
		var buf bytes.Buffer
		if n, err := write(&buf); err != nil || n != 0 || buf.String() != want {
			t.Errorf("%q, %d, %v; want %q", buf.String(), n, err, want)
		}
	}
}

// made is a source of made-up pages, all broken.
type made struct {
	n      int
	each   func(i int)
	asked  *int
	failAt int
}

var errSource = errors.New("source failed")

func (m made) Pages(context.Context, int64, ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		for i := range m.n {
			if m.each != nil {
				m.each(i)
			}
			if m.failAt > 0 && i == m.failAt {
				yield(ledger.Page{}, errSource)
				return
			}
			p := ledger.Page{URL: fmt.Sprintf("https://a.example/%d", i), FP: weburl.Fingerprint{Lo: uint64(i)}, Outcome: outcome.NotFound, Status: 404}
			if !yield(p, nil) {
				return
			}
		}
	}
}

func (m made) Page(context.Context, int64, string) (ledger.Page, bool, error) {
	return ledger.Page{}, false, nil
}

func (m made) LinksTo(_ context.Context, _ int64, targets []uint64, _ int) (map[uint64]ledger.LinkSources, error) {
	if m.asked != nil {
		*m.asked++
	}
	if len(targets) > linkWindow {
		return nil, errors.New("too many targets at once")
	}
	return map[uint64]ledger.LinkSources{targets[0]: {Count: 1, URLs: []string{"https://a.example/"}}}, nil
}

func TestMemoryDoesNotGrowWithTheNumberOfPages(t *testing.T) {
	const n = 100_000
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	passes := 0
	for name, c := range map[string]struct {
		bound uint64
		write func(made) (int64, error)
	}{
		"pages": {1 << 20, func(m made) (int64, error) {
			return Pages(t.Context(), io.Discard, m, 1, ledger.PageFilter{}, Options{})
		}},
		// A window of pages, twice while its slice grows.
		"broken": {64 << 20, func(m made) (int64, error) {
			return Broken(t.Context(), io.Discard, m, 1, ledger.PageFilter{}, Options{JSON: true})
		}},
	} {
		before, most := live(), uint64(0)
		src := made{n: n, asked: &passes, each: func(i int) {
			if i%(n/5) == n/5-1 {
				most = max(most, live())
			}
		}}
		if got, err := c.write(src); err != nil || got != n {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		if most > before+c.bound {
			t.Errorf("%s: %d KiB live, %d KiB before", name, most>>10, before>>10)
		}
	}
	if passes != n/linkWindow {
		t.Errorf("%d passes over the links, want %d", passes, n/linkWindow)
	}
}

type brokenWriter struct{ err error }

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

func TestErrorsOfSourceAndWriterReachTheCaller(t *testing.T) {
	gone := errors.New("the reader has gone")
	src := made{n: 30_000, failAt: 25_000}
	for name, write := range map[string]func(w io.Writer, s LinkSource) (int64, error){
		"pages": func(w io.Writer, s LinkSource) (int64, error) {
			return Pages(t.Context(), w, s, 1, ledger.PageFilter{}, Options{})
		},
		"broken": func(w io.Writer, s LinkSource) (int64, error) {
			return Broken(t.Context(), w, s, 1, ledger.PageFilter{}, Options{})
		},
	} {
		if _, err := write(io.Discard, src); !errors.Is(err, errSource) {
			t.Errorf("%s: source: %v", name, err)
		}
		if n, err := write(brokenWriter{gone}, src); !errors.Is(err, gone) || n > 1000 {
			t.Errorf("%s: writer: %v after %d", name, err, n)
		}
	}
}

func TestSizesAndTimesAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := size(n, true); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "-", 12 * time.Microsecond: "12 µs", 999 * time.Millisecond: "999 ms",
		3200 * time.Millisecond: "3.2 s", 90 * time.Second: "1m30s"} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %q, want %q", d, got, want)
		}
	}
}
