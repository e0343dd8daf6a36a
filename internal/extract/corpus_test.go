package extract

import (
	"bytes"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type realPage struct {
	name string
	body []byte
}

// realPages collects the HTML pages of the Go distribution and of the
// documentation packages a Debian machine may have. Links between packages'
// folders are followed by real path, so that no page comes twice.
func realPages(tb testing.TB, maxFiles int) []realPage {
	var pages []realPage
	for _, dir := range []string{filepath.Join(build.Default.GOROOT, "doc"), "/usr/share/doc"} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !d.Type().IsRegular() || !strings.HasSuffix(path, ".html") {
				return nil
			}
			if len(pages) >= maxFiles {
				return filepath.SkipAll
			}
			if body, err := os.ReadFile(path); err == nil && bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
				pages = append(pages, realPage{filepath.Base(path), body})
			}
			return nil
		})
	}
	if len(pages) == 0 {
		tb.Skip("no HTML documentation on this machine")
	}
	return pages
}

func TestRealPagesReadAsATreeReadsThem(t *testing.T) {
	maxFiles := 1 << 20
	if testing.Short() {
		maxFiles = 50
	}
	budget := 4 << 20 // a tree parse under the race detector makes a few MB/s
	n := 0
	for _, p := range realPages(t, maxFiles) {
		if budget -= len(p.body); budget < 0 {
			break
		}
		agree(t, p.name, p.body)
		n++
	}
	t.Logf("%d pages compared", n)
}

func BenchmarkRealPages(b *testing.B) {
	pages := realPages(b, 400)
	var total, links int64
	var s Scanner
	for _, p := range pages {
		total += int64(len(p.body))
		links += int64(len(s.Scan(p.body, "text/html; charset=utf-8").Links))
	}
	b.SetBytes(total)
	b.ReportAllocs()
	b.ReportMetric(float64(total)/float64(len(pages)), "bytes/page")
	b.ReportMetric(float64(links)/float64(len(pages)), "links/page")
	for b.Loop() {
		for _, p := range pages {
			s.Scan(p.body, "text/html; charset=utf-8")
		}
	}
}
