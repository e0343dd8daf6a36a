package extract

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestDeepNestingLosesNoLink(t *testing.T) {
	const depth = 100_000
	for _, tag := range []string{"div", "a", "b", "table", "svg", "math", "template"} {
		doc := strings.Repeat("<"+tag+">", depth) + "<a href=in></a>" + strings.Repeat("</"+tag+">", depth) + "<a href=out>"
		want := 2
		if tag == "template" || tag == "math" {
			want = 1 // inert, and no HTML
		}
		if got := refs(doc); len(got) != want || got[want-1] != "out" {
			t.Errorf("%d nested %s: links %q, want %d", depth, tag, got, want)
		}
	}
}

func TestLinksAreBoundedAndTheCutIsSaid(t *testing.T) {
	doc := []byte(strings.Repeat("<a href=x>", MaxLinks+1) + "<title>still read</title>")
	var s Scanner
	p := s.Scan(doc, "text/html")
	if len(p.Links) != MaxLinks || !p.Truncated || p.Title != "still read" {
		t.Errorf("%d links, truncated %v, title %q", len(p.Links), p.Truncated, p.Title)
	}
	if p := s.Scan(doc[:len("<a href=x>")], "text/html"); len(p.Links) != 1 || p.Truncated || p.Title != "" {
		t.Errorf("the next page inherited something: %+v", p)
	}
}

func TestOverlongReferencesAreNotLinks(t *testing.T) {
	long := strings.Repeat("x", MaxRef+1)
	if got := refs("<a href=" + long + "><a href=" + long[1:] + "><a href=y>"); len(got) != 2 || got[1] != "y" {
		t.Errorf("%d links", len(got))
	}
}

// The worst inputs known for each part of the scanner. A linear scan takes a
// fraction of a second, a quadratic one minutes.
func TestTimeIsLinear(t *testing.T) {
	const size, limit = 512 << 10, 4 * time.Second
	for _, unit := range []string{
		"<", "</", "<!", "<!--", "<!-->", "<!-- - -- ", "<a ", "<a href=", `<a href="`, "<a href='x'", "<a href=&", "<a href=&amp>", "<a href='&#'>", "<a href=&notanentity;>",
		"<script>", "<script><!--", "<script><!--</script>", "<script><!--<script>", "<title>", "<title></title>", "<textarea></textare>", "<svg>", "<svg></p>", "<svg></g>", "<svg><title>", "<svg><title></svg>", "<svg></desc>",
		"<math><mi>", "<math></math>", "<svg><![CDATA[", "<svg><![CDATA[]]>", "<template>", "<template></template>", "<meta name=robots content=,,,>", "<meta charset=x>", "<meta http-equiv=content-type content='charset charset charset'>",
		"<meta http-equiv=refresh content=0;url=x>", "<link rel=alternate hreflang=\xff href=\xff>", "<base href=&amp;>", "\x00", "\xff", "<a href=\x00\xff&>", "&amp;", "<html lang=\xff>", "<plaintext>", "<?", "<iframe></iframe>",
	} {
		size := size
		if strings.Contains(unit, "<!--") || strings.Contains(unit, "CDATA") {
			size *= 8 // searched at memory speed, so a repeated search shows only here
		}
		doc := bytes.Repeat([]byte(unit), size/len(unit))
		start := time.Now()
		var s Scanner
		s.Scan(doc, "text/html")
		if d := time.Since(start); d > limit {
			t.Errorf("%d bytes of %q took %v", size, unit, d)
		}
	}
}

func TestAnOrdinaryPageAllocatesOnlyItsMetadata(t *testing.T) {
	doc := []byte("<!doctype html><html><head><meta charset=utf-8></head><body>" +
		strings.Repeat(`<p class="x"><a href="/a/b?c=1&amp;d=2" rel=nofollow>é</a><a href='#f'>x</a><link rel=alternate hreflang=de href=y><svg><path d="M0"/></svg>`, 100))
	var s Scanner
	s.Scan(doc, "text/html; charset=utf-8")
	if n := testing.AllocsPerRun(50, func() { s.Scan(doc, "text/html; charset=utf-8") }); n != 0 {
		t.Errorf("%v allocations for a page without metadata, want 0", n)
	}
	doc = append(doc, "<title>t</title>"...)
	if n := testing.AllocsPerRun(50, func() { s.Scan(doc, "text/html; charset=utf-8") }); n > 5 {
		t.Errorf("%v allocations for a page with a title, want at most 5", n)
	}
}
