package sitemap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// show writes entries as lines, for comparison.
func show(doc string) (lines []string, info Info, err error) {
	info, err = Parse(strings.NewReader(doc), func(e Entry) bool {
		line := e.Loc
		if e.Index {
			line = "index " + line
		}
		if e.Alternate {
			line = "alternate " + e.Lang + " " + line
		}
		if !e.LastMod.IsZero() {
			line += " " + e.LastMod.Format(time.RFC3339)
		}
		lines = append(lines, line)
		return true
	})
	return lines, info, err
}

const sm = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		format    Format
		want      []string
	}{
		{"a urlset", sm + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
			<url><loc>http://a.example/</loc><lastmod>2026-05-04</lastmod><priority>0.8</priority></url>
			<url><lastmod>2026-05-04T10:20:30+02:00</lastmod><loc> http://a.example/?a=1&amp;b=2
			</loc></url></urlset>`, URLSet, []string{"http://a.example/ 2026-05-04T00:00:00Z", "http://a.example/?a=1&b=2 2026-05-04T08:20:30Z"}},
		{"an index", sm + `<sitemapindex><sitemap><loc>http://a.example/s1.xml.gz</loc></sitemap></sitemapindex>`, Index, []string{"index http://a.example/s1.xml.gz"}},
		{"prefixed names", `<s:urlset xmlns:s="x"><s:url><s:loc>http://a.example/</s:loc></s:url></s:urlset>`, URLSet, []string{"http://a.example/"}},
		{"image and news extensions are not pages", `<urlset><url><image:image><image:loc>no</image:loc></image:image><image:loc>no</image:loc>
			<loc>yes</loc><news:news><loc>no</loc></news:news><video:loc>no</video:loc></url></urlset>`, URLSet, []string{"yes"}},
		{"alternates are entries of their own", `<urlset><url><loc>/en</loc><xhtml:link rel="alternate" hreflang="de" href="/de?a&amp;b"/>
			<xhtml:link href='/fr' rel='alternate' hreflang='fr'></xhtml:link><xhtml:link rel="self" href="no"/></url></urlset>`, URLSet,
			[]string{"alternate de /de?a&b", "alternate fr /fr", "/en"}},
		{"CDATA and comments", `<urlset><!-- <url><loc>no</loc></url> --><url><loc><![CDATA[http://a.example/?a=1&b=2&amp;c]]>&amp;d</loc><!-- > --></url></urlset>`,
			URLSet, []string{"http://a.example/?a=1&b=2&amp;c&d"}},
		{"bare ampersands and other entities", `<urlset><url><loc>/?a=1&copy=2&b&#x26;c&eacute;&copyright;&amp;amp;&semi;</loc></url></urlset>`, URLSet,
			[]string{"/?a=1&copy=2&b&c\u00e9&copyright;&amp;;"}},
		{"a doctype with a subset", `<!DOCTYPE urlset [<!ENTITY x "<url><loc>no</loc></url>">]><urlset><url><loc>/&x;</loc></url></urlset>`, URLSet, []string{"/&x;"}},
		{"blanks before the declaration", "\n  " + sm + "<urlset ><url\n><loc >/a</loc ></url></urlset>", URLSet, []string{"/a"}},
		{"a byte order mark", "\ufeff" + sm + "<urlset><url><loc>/a</loc></url></urlset>", URLSet, []string{"/a"}},
		{"rubbish after the end", "<urlset><url><loc>/a</loc></url></urlset><html></junk>\x00", URLSet, []string{"/a"}},
		{"attributes with greater-than signs", `<urlset a="x>y"><url b='>'><loc>/a</loc></url></urlset>`, URLSet, []string{"/a"}},
		{"an empty set", `<urlset/>`, URLSet, nil},
		{"a sitemap inside a urlset", `<urlset><sitemap><loc>/s</loc></sitemap></urlset>`, URLSet, []string{"index /s"}},
		{"RSS 2.0", `<rss version="2.0" xmlns:atom="a"><channel><link>no</link><atom:link href="no"/><item><title>x</title><link>/a</link>
			<pubDate>Mon, 04 May 2026 10:00:00 +0200</pubDate></item><item><guid isPermaLink="false">no</guid></item><item><guid>/b</guid></item></channel></rss>`,
			RSS, []string{"/a 2026-05-04T08:00:00Z", "/b"}},
		{"RSS 1.0", `<rdf:RDF xmlns:rdf="r"><channel><link>no</link></channel><item rdf:about="x"><link>/a</link><dc:date>2026-05-04</dc:date></item></rdf:RDF>`,
			RSS, []string{"/a 2026-05-04T00:00:00Z"}},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><link href="no"/><entry><link rel="edit" href="no"/><link rel="alternate" href="/a"/><link href="no2"/>
			<published>2026-01-01T00:00:00Z</published><updated>2026-05-04T00:00:00Z</updated><content type="xhtml"><div><link href="no"/></div></content></entry>
			<entry><link href="/b"/></entry></feed>`, Atom, []string{"/a 2026-05-04T00:00:00Z", "/b"}},
		{"text", "# pages\r\nhttp://a.example/\r\n\r\nHTTPS://a.example/b  \nnonsense\nhttp://a.example/last", Text,
			[]string{"http://a.example/", "HTTPS://a.example/b", "http://a.example/last"}},
		{"text with a byte order mark", "\ufeffhttp://a.example/\n", Text, []string{"http://a.example/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, doc := range map[string]string{"plain": c.doc, "gzip": gzipped(t, c.doc)} {
				got, info, err := show(doc)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", how, diff)
				}
				if info.Format != c.format || info.Gzip != (how == "gzip") || info.Entries != len(c.want) || info.Stopped || info.Cut != "" {
					t.Errorf("%s: %+v", how, info)
				}
			}
		})
	}
}

func gzipped(tb testing.TB, doc string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, doc); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestOtherEncodings(t *testing.T) {
	const body = `<urlset><url><loc>http://a.example/é</loc></url></urlset>`
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(`<?xml version="1.0" encoding="UTF-16"?>` + body)
	latin, _ := charmap.ISO8859_1.NewEncoder().String(`<?xml version="1.0" encoding="ISO-8859-1"?>` + body)
	broken := strings.ReplaceAll(body, "é", "\xff")
	for name, c := range map[string][2]string{"UTF-16": {utf16, "é"}, "Latin-1": {latin, "é"}, "broken UTF-8": {broken, "\ufffd"}} {
		got, _, err := show(c[0])
		if err != nil || len(got) != 1 || got[0] != "http://a.example/"+c[1] {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWhatIsNoSitemapYieldsNothing(t *testing.T) {
	for _, doc := range []string{
		"", " \n", "<!DOCTYPE html><html><body><url><loc>no</loc></url>", "<!-- x --><HTML><urlset>", "<html><body>404</body></html>", `{"urlset":[]}`,
		"Not found", "<root><url><loc>no</loc></url></root>", "<?xml version='1.0'?><svg/>", "\x89PNG\r\n\x1a\n", strings.Repeat("x\n", 60) + "http://a.example/\n",
		strings.Repeat("y", 200<<10), gzipped(t, gzipped(t, "<urlset/>")), gzipped(t, ""),
	} {
		got, info, err := show(doc)
		if !errors.Is(err, ErrNotSitemap) || len(got) > 0 || info.Format != Unknown {
			t.Errorf("%.60q: entries %q, format %v, error %v", doc, got, info.Format, err)
		}
	}
}

func TestMalformedSitemapsYieldWhatCouldBeReadAndSayWhere(t *testing.T) {
	const two = "<urlset>\n<url><loc>/a</loc></url>\n<url><loc>/b</loc></url>\n"
	gz := gzipped(t, two+strings.Repeat(" ", 200<<10)+"</urlset>")
	for _, c := range []struct{ name, doc, says string }{
		{"it ends early", two, "line 4, byte 59: ends inside the root element"},
		{"it ends inside a tag", two + "<ur", "line 4, byte 59: ends inside a tag"},
		{"it ends inside an entry", two + "<url><loc>/c", "line 4, byte 71: ends inside the root element"},
		{"it ends far down", two + strings.Repeat("<!-- x -->\n", 20_000), "line 20004, byte 220059: ends inside the root element"},
		{"it ends inside a comment", two + "<!-- ", "ends inside a comment"},
		{"it ends inside CDATA", two + "<url><loc><![CDATA[/c", "ends inside a CDATA section"},
		{"gzip is cut", gz[:len(gz)-12], "unexpected EOF"},
		{"an element is closed by another", "<urlset><url><loc>/a</url><url><loc>/b</loc></url></urlset>", "line 1, byte 20: </url> does not match the open element"},
		{"a stray end tag", "<urlset><url><loc>/a</loc></b></url><url><loc>/b</loc></url></urlset>", "byte 26: </b> does not match"},
		{"a less-than sign in text", two + "< x</urlset>", "line 4, byte 59: a less-than sign"},
		{"a tag without end", two + `<url a="` + strings.Repeat("x", 70<<10), "a tag longer than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := show(c.doc)
			if diff := cmp.Diff([]string{"/a", "/b"}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrNotSitemap) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
		})
	}
}

func TestAReadErrorIsReported(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader("<urlset><url><loc>/a</loc></url>"), iotest.ErrReader(broken))
	n := 0
	_, err := Parse(r, func(Entry) bool { n++; return true })
	if n != 1 || !errors.Is(err, broken) {
		t.Errorf("%d entries, error %v", n, err)
	}
	if _, err = Parse(iotest.ErrReader(broken), nil); !errors.Is(err, broken) || errors.Is(err, ErrNotSitemap) {
		t.Errorf("error %v", err)
	}
}

// endless is a urlset that never ends, and counts what is read of it.
type endless struct {
	head string
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if e.head == "" {
			e.head = "<url><loc>http://a.example/some/path</loc><lastmod>2026-05-04</lastmod></url>\n"
		}
		m := copy(b[n:], e.head)
		e.head = e.head[m:]
		n += m
	}
	e.read += n
	return n, nil
}

func TestStoppingStopsReading(t *testing.T) {
	for _, budget := range []int{1, 50, 5000} {
		e := &endless{head: "<urlset>"}
		n := 0
		info, err := Parse(e, func(Entry) bool { n++; return n < budget })
		if err != nil || n != budget || !info.Stopped || info.Entries != budget {
			t.Errorf("budget %d: %d entries, %+v, %v", budget, n, info, err)
		}
		if most := budget*80 + windowSize; e.read > most {
			t.Errorf("budget %d: %d bytes read, want at most %d", budget, e.read, most)
		}
	}
}

func TestLimitsAreReportedNotFatal(t *testing.T) {
	n := 0
	info, err := Parse(&endless{head: "<urlset>"}, func(Entry) bool { n++; return true })
	if err != nil || n != MaxEntries || info.Cut != "entries" || info.Stopped {
		t.Errorf("%d entries, %+v, %v", n, info, err)
	}
	blank := io.MultiReader(strings.NewReader("<urlset><url><loc>/a</loc></url>"), spaces{})
	info, err = Parse(blank, func(Entry) bool { return true })
	if err != nil || info.Entries != 1 || info.Cut != "bytes" || info.Bytes != MaxBytes {
		t.Errorf("%+v, %v", info, err)
	}
}

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestOverlongURLsAreSkipped(t *testing.T) {
	for _, size := range []int{maxLoc + 1, 100 << 10} {
		long := strings.Repeat("x", size)
		for _, doc := range []string{
			"<urlset><url><loc>/" + long + "</loc></url><url><loc>/a</loc></url></urlset>",
			"<urlset><url><loc><![CDATA[/" + long + "]]></loc></url><url><loc>/a</loc></url></urlset>",
			"<urlset><url><loc>/no<![CDATA[" + long + "]]></loc></url><url><loc>/a</loc></url></urlset>",
			"http://a.example/" + long + "\nhttp:///a",
		} {
			got, info, err := show(doc)
			if err != nil || len(got) != 1 || !strings.HasSuffix(got[0], "/a") || info.Skipped != 1 {
				t.Errorf("%.30q: %d entries, %+v, %v", doc, len(got), info, err)
			}
		}
	}
}

// Wherever the stream is cut into reads, the answer is the same.
func TestChunksDoNotMatter(t *testing.T) {
	doc := sm + "<urlset>" + strings.Repeat(`<url><loc>/a?b&amp;c</loc><!-- -- - --><xhtml:link rel="alternate" href="/>'d"/><lastmod>2026</lastmod></url><url><loc><![CDATA[]]]]></loc></url>`, 1500) + "</urlset>"
	want, _, err := show(doc)
	if err != nil || len(want) != 4500 {
		t.Fatal(len(want), err)
	}
	for name, r := range map[string]io.Reader{
		"bytes": iotest.OneByteReader(strings.NewReader(doc)), "halves": iotest.HalfReader(strings.NewReader(doc)), "data with error": iotest.DataErrReader(strings.NewReader(doc)),
	} {
		n := 0
		if _, err := Parse(r, func(Entry) bool { n++; return true }); n != len(want) || err != nil {
			t.Errorf("%s: %d entries, %v", name, n, err)
		}
	}
}

// Terminators that lie across the end of a window, or of a read, are found.
func TestTerminatorsAcrossAWindowsEnd(t *testing.T) {
	for _, size := range []int{minRead, windowSize} {
		for pad := size - 32; pad < size+2; pad++ {
			fill := strings.Repeat("x", pad)
			for _, doc := range []string{
				"<urlset><!--" + fill + "--><url><loc>/a</loc></url></urlset>",
				"<urlset><?x " + fill + "?><url><loc>/a</loc></url></urlset>",
				"<urlset><x><![CDATA[" + fill + "]]></x><url><loc>/a</loc></url></urlset>",
				fill + "\nhttp://a.example/a",
			} {
				n := 0
				var last string
				var r io.Reader = strings.NewReader(doc)
				if size == minRead {
					r = iotest.OneByteReader(r) // which makes every read end there
				}
				_, err := Parse(r, func(e Entry) bool { n++; last = e.Loc; return true })
				if n != 1 || !strings.HasSuffix(last, "/a") || err != nil {
					t.Fatalf("%.20q with %d bytes between: %d entries, last %q, %v", doc, pad, n, last, err)
				}
			}
		}
	}
}

func TestDates(t *testing.T) {
	for in, want := range map[string]string{
		"2026": "2026-01-01T00:00:00Z", "2026-05": "2026-05-01T00:00:00Z", "2026-05-04": "2026-05-04T00:00:00Z", " 2026-05-04T10:20Z ": "2026-05-04T10:20:00Z",
		"2026-05-04T10:20:30": "2026-05-04T10:20:30Z", "2026-05-04 10:20:30": "2026-05-04T10:20:30Z", "2026-05-04t10:20:30.999z": "2026-05-04T10:20:30.999Z",
		"2026-05-04T10:20:30+0530": "2026-05-04T04:50:30Z", "2026-05-04T10:20:30-08": "2026-05-04T18:20:30Z", "2024-02-29": "2024-02-29T00:00:00Z",
		"Mon, 04 May 2026 10:20:30 GMT": "2026-05-04T10:20:30Z", "4 May 2026 10:20:30 +0200": "2026-05-04T08:20:30Z",
		"": "", "yesterday": "", "2026-13-01": "", "2026-02-30": "", "20260504": "", "2026-05-04T25:00Z": "", "2026-05-04T10": "", "2026-05-04T10:20:30+99:00": "",
	} {
		got := ""
		if v := parseTime([]byte(in)); !v.IsZero() {
			got = v.Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q read as %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("<urlset><url><loc>/a</loc><xhtml:link rel='alternate' href='b'/></url></urlset>"))
	f.Add([]byte("<rss><channel><item><guid>x</guid><link><![CDATA[/a]]></link></item></channel></rss>"))
	f.Add([]byte("\ufeffhttp://a.example/\nx"))
	f.Add([]byte(gzipped(f, "<sitemapindex><sitemap><loc>/a</loc></sitemap></sitemapindex>")))
	f.Add([]byte("<?xml encoding='shift_jis'?><!DOCTYPE x [<!ENTITY a '>'>]><feed><entry><link href='&#x26;'/></entry></feed>"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		n := 0
		var first string
		info, err := Parse(bytes.NewReader(doc), func(e Entry) bool {
			if n == 0 {
				first = e.Loc
			}
			n++
			if e.Loc == "" || len(e.Loc) > 3*maxLoc || strings.ToValidUTF8(e.Loc, "") != e.Loc {
				t.Errorf("entry %q", e.Loc)
			}
			return true
		})
		if info.Entries != n || errors.Is(err, ErrNotSitemap) && n > 0 || err == nil && info.Format == Unknown {
			t.Errorf("%d entries handed out, %+v, %v", n, info, err)
		}
		if n > 0 {
			m := 0
			info, err := Parse(iotest.OneByteReader(bytes.NewReader(doc)), func(e Entry) bool { m++; return e.Loc != first })
			if m != 1 || !info.Stopped || err != nil && info.Entries != 1 {
				t.Errorf("stopping at once: %d entries, %+v, %v", m, info, err)
			}
		}
	})
}

func BenchmarkURLSet(b *testing.B) {
	var doc bytes.Buffer
	doc.WriteString(sm + "<urlset>\n")
	for i := range ProtocolEntries {
		fmt.Fprintf(&doc, "  <url>\n    <loc>https://www.example.com/category/item-%d?ref=sitemap&amp;p=1</loc>\n    <lastmod>2026-05-04T10:20:30+00:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.5</priority>\n  </url>\n", i)
	}
	doc.WriteString("</urlset>")
	for name, body := range map[string][]byte{"plain": doc.Bytes(), "gzip": []byte(gzipped(b, doc.String()))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(doc.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if info, err := Parse(bytes.NewReader(body), func(Entry) bool { return true }); err != nil || info.Entries != ProtocolEntries {
					b.Fatal(info, err)
				}
			}
		})
	}
}
