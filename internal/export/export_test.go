package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

// pages is a source that makes its pages up as they are asked for.
type pages struct {
	n    int
	page func(i int) ledger.Page
	each func(i int) // before page i
	err  error       // at the end
}

func (s pages) Pages(context.Context, int64, ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		for i := range s.n {
			if s.each != nil {
				s.each(i)
			}
			if !yield(s.page(i), nil) {
				return
			}
		}
		if s.err != nil {
			yield(ledger.Page{}, s.err)
		}
	}
}

func list(all ...ledger.Page) pages {
	return pages{n: len(all), page: func(i int) ledger.Page { return all[i] }}
}

func html(i int) ledger.Page {
	return ledger.Page{URL: fmt.Sprintf("https://a.example/page/%d?a=1&b=2", i), Host: "a.example", Kind: "page", Via: "link",
		FoundOn: "https://a.example/", Depth: 1, Tries: 1, Outcome: outcome.OK, Status: 200, ContentType: "text/html",
		Size: 2000, Title: fmt.Sprintf("Page %d", i), FetchedAt: t0}
}

func sample() pages {
	full := ledger.Page{URL: "https://a.example/caf%C3%A9?a=1&b=<2>", Host: "a.example", Kind: "page", Via: "link",
		FoundOn: "https://user:secret@a.example/", Depth: 2, Tries: 3, Outcome: outcome.OK, Status: 200, Error: "cut short",
		ContentType: "text/html", Charset: "utf-8", Size: 20480, WireSize: 0,
		Timing: ledger.Timing{DNS: time.Millisecond, Connect: 2 * time.Millisecond, TLS: 3 * time.Millisecond, TTFB: 4500 * time.Microsecond,
			Transfer: 5 * time.Millisecond, Total: 6 * time.Second, Reused: true},
		FetchedAt: t0, RedirectTo: "https://a.example/to", Title: "A \"quoted\", long\ntitle \u202e", Description: "=1+1",
		Canonical: "https://a.example/caf%C3%A9", Lang: "de", Hreflang: `{"en": "https://a.example/en"}`, NoIndex: true,
		LastModified: t0.Add(-time.Hour), ContentHash: 0xff, LinkCount: 0,
		Robots: ledger.RobotsDecision{Decided: true, Allowed: true, Rule: "Allow: /", Line: 12, CrawlDelay: 1500 * time.Millisecond,
			FetchedAt: t0, Confidence: 1}}
	blocked := ledger.Page{URL: "https://a.example/private", Host: "a.example", Kind: "page", Via: "sitemap", Outcome: outcome.Robots,
		Robots: ledger.RobotsDecision{Decided: true, Rule: "Disallow: /private", Line: 3, FetchedAt: t0, Confidence: 1}}
	failed := ledger.Page{URL: "https://b.example/", Host: "b.example", Outcome: outcome.DNS, Error: "no such host", Tries: 1,
		Title: "\x1b]0;owned\x07\x1b[31mred"}
	return list(full, blocked, failed)
}

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

// writers are the two formats that go to one stream.
var writers = map[string]func(context.Context, io.Writer, Source, int64, ledger.PageFilter) (int64, error){
	"pages.jsonl": JSONL,
	"pages.csv":   CSV,
}

func TestTheOutputIsAsItAlwaysWas(t *testing.T) {
	for name, write := range writers {
		var buf bytes.Buffer
		n, err := write(t.Context(), &buf, sample(), 1, ledger.PageFilter{})
		if err != nil || n != 3 {
			t.Errorf("%s: %d pages, %v", name, n, err)
		}
		golden(t, name, buf.Bytes())
		if strings.Contains(buf.String(), "secret") {
			t.Errorf("%s holds a password", name)
		}
		for _, r := range buf.String() {
			if r < 0x20 && r != '\n' && r != '\r' || r == 0x202e {
				t.Errorf("%s holds %U", name, r)
			}
		}
	}
}

func TestJSONLinesKeepEveryValueAndSayNullForUnknown(t *testing.T) {
	var buf bytes.Buffer
	if _, err := JSONL(t.Context(), &buf, sample(), 1, ledger.PageFilter{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
	var full, blocked map[string]any
	for i, v := range []*map[string]any{&full, &blocked} {
		if err := json.Unmarshal([]byte(lines[i]), v); err != nil {
			t.Fatal(err)
		}
	}
	if full["title"] != "A \"quoted\", long\ntitle \u202e" || full["wire_bytes"] != 0.0 || full["links"] != 0.0 {
		t.Errorf("title %q, wire_bytes %v, links %v", full["title"], full["wire_bytes"], full["links"])
	}
	for _, name := range []string{"status", "bytes", "links", "timing", "title", "fetched_at", "noindex", "found_on", "hreflang", "content_hash"} {
		if v, ok := blocked[name]; !ok || v != nil {
			t.Errorf("%s of a page never fetched is %v, want null", name, v)
		}
	}
	if len(full) != reflect.TypeFor[record]().NumField() || len(blocked) != len(full) {
		t.Errorf("%d and %d fields", len(full), len(blocked))
	}
}

func TestCSVReadsBackAndHoldsNoFormula(t *testing.T) {
	var all []ledger.Page
	nasty := []string{"=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u200b=1", "\x1b[0m=1", "＝1", "a,b", "\"", "plain", ""}
	for _, s := range nasty {
		p := html(1)
		p.Title, p.Error, p.Lang = s, s, s
		all = append(all, p)
	}
	var buf bytes.Buffer
	if _, err := CSV(t.Context(), &buf, list(all...), 1, ledger.PageFilter{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&buf).ReadAll()
	if err != nil || len(rows) != len(nasty)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows[1:] {
		for k, c := range row {
			if formula(strings.TrimLeft(c, " \u00a0")) {
				t.Errorf("row %d, %s: %q is a formula", i, rows[0][k], c)
			}
		}
	}
	title := func(i int) string { return rows[i+1][18] }
	if rows[0][18] != "title" || title(11) != "a,b" || title(12) != "\"" || title(13) != "plain" || title(0) != "'=HYPERLINK(\"http://x\")" {
		t.Errorf("titles %q %q %q %q", title(11), title(12), title(13), title(0))
	}
}

func TestAReaderThatGoesAwayIsAClosedPipe(t *testing.T) {
	for name, write := range writers {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.ReadFull(r, make([]byte, 100)); r.Close() }()
		_, err = write(t.Context(), w, pages{n: 100_000, page: html}, 1, ledger.PageFilter{})
		if !errors.Is(err, ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
		w.Close()
	}
	if err := output(errors.New("disk full")); errors.Is(err, ErrClosedPipe) {
		t.Error("any error is a closed pipe")
	}
}

func TestAnErrorOfTheSourceEndsTheExport(t *testing.T) {
	boom := errors.New("boom")
	for name, write := range writers {
		n, err := write(t.Context(), io.Discard, pages{n: 2, page: html, err: boom}, 1, ledger.PageFilter{})
		if !errors.Is(err, boom) || n != 2 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	dir := t.TempDir()
	if _, err := Sitemap(t.Context(), pages{n: 2, page: html, err: boom}, 1, ledger.PageFilter{}, SitemapOptions{Dir: dir}); !errors.Is(err, boom) {
		t.Errorf("sitemap: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("a failed export left %v", files)
	}
}

func TestMemoryDoesNotGrowWithTheNumberOfPages(t *testing.T) {
	const n = 100_000
	for name, write := range map[string]func(Source) error{
		"jsonl": func(s Source) error { _, err := JSONL(t.Context(), io.Discard, s, 1, ledger.PageFilter{}); return err },
		"csv":   func(s Source) error { _, err := CSV(t.Context(), io.Discard, s, 1, ledger.PageFilter{}); return err },
		"sitemap": func(s Source) error {
			_, err := Sitemap(t.Context(), s, 1, ledger.PageFilter{}, SitemapOptions{Dir: t.TempDir()})
			return err
		},
	} {
		live := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := live()
		var most uint64
		src := pages{n: n, page: html, each: func(i int) {
			if i%(n/4) == n/4-1 {
				most = max(most, live())
			}
		}}
		if err := write(src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if most > before+2<<20 {
			t.Errorf("%s: %d KiB live, %d KiB before", name, most>>10, before>>10)
		}
	}
}

func TestCredentialsAreCutOutOfURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example/":                "https://a.example/",
		"https://u:p@a.example/x@y":         "https://a.example/x@y",
		"https://u@a.example?mail=me@x.org": "https://a.example?mail=me@x.org",
		"https://a.example/?m=me@x.org":     "https://a.example/?m=me@x.org",
		"https://u:p@@a.example":            "https://a.example",
		"/relative@x":                       "/relative@x",
		"":                                  "",
	} {
		if got := publicURL(in); got != want {
			t.Errorf("publicURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzCell(f *testing.F) {
	f.Add("=1\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := cell(s)
		if !utf8.ValidString(got) || formula(got) || strings.ContainsAny(got, "\x00\x1b\r\n\t\u202e") {
			t.Fatalf("cell(%q) = %q", s, got)
		}
	})
}

func FuzzJSONKeepsItsValue(f *testing.F) {
	f.Add("a\u009b\u202e\x7f\x1b\"\\u1234日本")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		enc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		safe := escapeInvisible(enc)
		var back string
		if err := json.Unmarshal(safe, &back); err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
		for _, r := range string(safe) {
			if r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x202e {
				t.Fatalf("%q still has %U", safe, r)
			}
		}
	})
}

func BenchmarkFormats(b *testing.B) {
	for name, write := range writers {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			src := sample()
			page := src.page(0)
			if _, err := write(b.Context(), io.Discard, pages{n: b.N, page: func(int) ledger.Page { return page }}, 1, ledger.PageFilter{}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
