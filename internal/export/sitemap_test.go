package export

import (
	"compress/gzip"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

type parsedSitemap struct {
	XMLName xml.Name
	URLs    []struct {
		Loc     string `xml:"loc"`
		LastMod string `xml:"lastmod"`
	} `xml:"url"`
	Maps []struct {
		Loc string `xml:"loc"`
	} `xml:"sitemap"`
}

func readSitemap(t *testing.T, path string) (parsedSitemap, int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var s parsedSitemap
	if err := xml.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s, len(text)
}

func TestASitemapHoldsIndexablePagesThatAreTheirOwnCanonical(t *testing.T) {
	change := func(f func(p *ledger.Page)) ledger.Page { p := html(9); f(&p); return p }
	dir := t.TempDir()
	res, err := Sitemap(t.Context(), list(
		change(func(p *ledger.Page) { p.URL = "https://a.example/it's?a=1&b=<2>"; p.LastModified = t0.Add(-time.Hour) }),
		change(func(p *ledger.Page) { p.Canonical = p.URL; p.ContentType = "Text/HTML; charset=utf-8" }),
		change(func(p *ledger.Page) { p.URL = "https://a.example/lying-clock"; p.LastModified = t0.Add(time.Hour) }),
		change(func(p *ledger.Page) { p.Canonical = "https://a.example/other" }),
		change(func(p *ledger.Page) { p.NoIndex = true }),
		change(func(p *ledger.Page) { p.ContentType = "application/pdf" }),
		change(func(p *ledger.Page) { p.Outcome, p.Status = outcome.NotFound, 404 }),
		change(func(p *ledger.Page) { p.Outcome, p.Status = outcome.Redirect, 301 }),
		change(func(p *ledger.Page) { p.URL += strings.Repeat("x", protocolLength) }),
		change(func(p *ledger.Page) { p.Kind = "sitemap" }),
	), 1, ledger.PageFilter{}, SitemapOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sitemap.xml")
	if res.URLs != 3 || !cmp.Equal(res.Files, []string{path}) {
		t.Errorf("%+v", res)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sitemap.xml", text)
	s, _ := readSitemap(t, path)
	if s.XMLName.Local != "urlset" || s.URLs[0].Loc != "https://a.example/it's?a=1&b=<2>" {
		t.Errorf("%+v", s)
	}
}

func TestSitemapsAreSplitByNumberAndBySizeAndIndexed(t *testing.T) {
	for name, c := range map[string]struct {
		o     SitemapOptions
		parts int
		base  string
	}{
		"by number":            {SitemapOptions{MaxURLs: 30}, 4, "https://a.example/"},
		"by number, to spare":  {SitemapOptions{MaxURLs: 50}, 2, "https://a.example/"},
		"by size, compressed":  {SitemapOptions{MaxBytes: 2000, Gzip: true, Base: "https://cdn.example/maps"}, 4, "https://cdn.example/maps/"},
		"with a base and a &":  {SitemapOptions{MaxURLs: 99, Base: "https://a.example/x&y/"}, 2, "https://a.example/x&y/"},
		"limits past standard": {SitemapOptions{MaxURLs: 1 << 30, MaxBytes: 1 << 40}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Dir = t.TempDir()
			res, err := Sitemap(t.Context(), pages{n: 100, page: html}, 1, ledger.PageFilter{}, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if c.parts == 1 {
				if len(res.Files) != 1 {
					t.Errorf("files %v", res.Files)
				}
				return
			}
			index, _ := readSitemap(t, res.Files[0])
			if index.XMLName.Local != "sitemapindex" || len(index.Maps) != len(res.Files)-1 || len(index.Maps) != c.parts {
				t.Fatalf("index of %d, %d files, want %d", len(index.Maps), len(res.Files), c.parts)
			}
			var got []string
			for i, m := range index.Maps {
				path := res.Files[i+1]
				if m.Loc != c.base+filepath.Base(path) {
					t.Errorf("the index says %s for %s", m.Loc, path)
				}
				s, size := readSitemap(t, path)
				if c.o.MaxURLs > 0 && len(s.URLs) > c.o.MaxURLs || c.o.MaxBytes > 0 && int64(size) > c.o.MaxBytes {
					t.Errorf("%s has %d URLs and %d bytes", path, len(s.URLs), size)
				}
				for _, u := range s.URLs {
					got = append(got, u.Loc)
				}
			}
			for i := range 100 {
				if i >= len(got) || got[i] != html(i).URL {
					t.Fatalf("URL %d is missing or misplaced", i)
				}
			}
			if files, _ := os.ReadDir(c.o.Dir); len(files) != c.parts+1 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

func TestASitemapOfNothingIsEmptyAndABadBaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	res, err := Sitemap(t.Context(), list(), 1, ledger.PageFilter{}, SitemapOptions{Dir: dir})
	if err != nil || len(res.Files) != 1 {
		t.Fatal(res, err)
	}
	if s, _ := readSitemap(t, res.Files[0]); len(s.URLs) != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := Sitemap(t.Context(), list(), 1, ledger.PageFilter{}, SitemapOptions{Dir: dir, Base: "example.com"}); err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("base without a scheme: %v", err)
	}
	if _, err := Sitemap(t.Context(), list(), 1, ledger.PageFilter{}, SitemapOptions{Dir: filepath.Join(dir, "none")}); err == nil {
		t.Error("a directory that does not exist was written to")
	}
}
