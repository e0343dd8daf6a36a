package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refs scans an HTML document and returns its references.
func refs(doc string) []string {
	var s Scanner
	var out []string
	for _, l := range s.Scan([]byte(doc), "text/html; charset=utf-8").Links {
		out = append(out, string(l.Ref))
	}
	return out
}

// Each document is read as expected and as a full tree parser reads it.
var documents = []struct {
	name, doc string
	want      []string
}{
	{"quotes of every kind are understood",
		`<a href="d"><a href='s'><a href=u><a href = "sp" ><A HREF=U2>`, []string{"d", "s", "u", "sp", "U2"}},
	{"an unquoted value may end in a slash", `<a href=dir/>x</a>`, []string{"dir/"}},
	{"a tag inside an attribute value is no tag", `<img alt="<a href=no>"><a title='<a href="no">' href=yes>`, []string{"yes"}},
	{"a greater-than sign inside quotes does not end the tag", `<div title="a > b" class='>'><a href=x>`, []string{"x"}},
	{"the first of two equal attributes counts", `<a href=one href=two HREF=three>`, []string{"one"}},
	{"attributes need no blank between them", `<a class="c"href="x"id=y>`, []string{"x"}},
	{"an equals sign may start an attribute name", `<a ="x" href=y><a =href=z>`, []string{"y"}},
	{"a value that is missing is empty", `<a href><a href=><area href="">`, []string{"", "", ""}},
	{"an unclosed quote at the end swallows the tag", `<a href=x><a href="y>z`, []string{"x"}},
	{"an unfinished tag at the end is no tag", `<a href=x><a href=y`, []string{"x"}},
	{"blanks and line breaks are taken out of references", "<a href=' \n x/\ty\r\n '>", []string{"x/y"}},
	{"a NUL becomes a replacement character", "<a href='x\x00y'>", []string{"x\ufffdy"}},
	{"a slash may stand anywhere between attributes", `<a/href=x/><a / href=y /><a//href="z"/>`, []string{"x/", "y", "z"}},

	{"references in attributes are decoded", `<a href="?a=1&amp;b=2&#38;c&#x26;d&eacute;">`, []string{"?a=1&b=2&c&d\u00e9"}},
	{"a bare ampersand survives", `<a href="?a=1&b=2&&c">`, []string{"?a=1&b=2&&c"}},
	{"an old name before an equals sign is a parameter", `<a href="?a=1&copy=2&lang=3&reg">`, []string{"?a=1&copy=2&lang=3\u00ae"}},
	{"an old name before a letter is a parameter", `<a href="?x&notit;&notin;&ampamp;&amp">`, []string{"?x&notit;\u2209&ampamp;&"}},
	{"a name for two characters grows the value", `<a href="&nGt;&nLt;&bne;">`, []string{"\u226b\u20d2\u226a\u20d2=\u20e5"}},
	{"numbers out of range become replacements", `<a href="&#0;&#xD800;&#x110000;&#99999999999;&#128;&#x">`,
		[]string{"\ufffd\ufffd\ufffd\ufffd\u20ac&#x"}},

	{"a comment hides links", `<!-- <a href=no> --><a href=x>`, []string{"x"}},
	{"a comment may end at once", `<!--><a href=x><!---><a href=y>`, []string{"x", "y"}},
	{"a comment may end with an exclamation mark", `<!-- a --!><a href=x>-->`, []string{"x"}},
	{"two dashes and a blank do not end a comment", `<!-- -- > <a href=no> --><a href=x>`, []string{"x"}},
	{"a comment without end swallows the rest", `<a href=x><!-- <a href=no>`, []string{"x"}},
	{"declarations and instructions end at the first greater-than sign",
		`<!doctype html "><a href=x>"><?php <a href=no> ?><a href=y><!foo <a href=no>`, []string{"x", "y"}},
	{"an end tag that is none is a comment", `</ <a href=no>></><a href=x></3 <a href=no>>`, []string{"x"}},
	{"CDATA in HTML is a comment up to the first greater-than sign", `<![CDATA[ <a href=no> <a href=x> ]]>`, []string{"x"}},
	{"a less-than sign before anything else is text", `1 < 2 <3 <_a href=no> <<a href=x>`, []string{"x"}},

	{"script text is not markup", `<script>"<a href=no>"</script><a href=x>`, []string{"x"}},
	{"script text ends at its end tag even in a string", `<script>"</script><a href=x>"`, []string{"x"}},
	{"the end tag's name must be whole", `<script></scripty><a href=no></script ><a href=x>`, []string{"x"}},
	{"an escaped script ends at its end tag", `<script><!-- <a href=no> </script><a href=x>`, []string{"x"}},
	{"a doubly escaped script goes on", `<script><!-- <script> </script> <a href=no> --></script><a href=x>`, []string{"x"}},
	{"the escape may end at once", `<script><!--> <script> </script><a href=x>`, []string{"x"}},
	{"an escape that ended leaves an ordinary script", `<script><!-- x --> <script> </script><a href=x>`, []string{"x"}},
	{"a doubly escaped script without end swallows the rest", `<a href=x><script><!-- <script> </script> <a href=no>`, []string{"x"}},
	{"style, textarea, xmp, iframe, noembed and noframes hold text",
		`<style><a href=n></style><textarea><a href=n></textarea><xmp><a href=n></xmp>` +
			`<iframe><a href=n></iframe><noembed><a href=n></noembed><noframes><a href=n></noframes><a href=x>`, []string{"x"}},
	{"noscript holds markup, because we run no scripts", `<body><noscript><a href=x></a></noscript>`, []string{"x"}},
	{"after plaintext there is only text", `<a href=x></a><plaintext><a href=no></plaintext><a href=no>`, []string{"x"}},
	{"a slash does not close a script", `<script/><a href=no></script><a href=x>`, []string{"x"}},

	{"template content is inert", `<template><a href=no><template></template><a href=no></template><a href=x>`, []string{"x"}},
	{"a template never closed is inert to the end", `<a href=x></a><template><a href=no>`, []string{"x"}},
	{"a shadow root is shown, so its links count",
		`<div><template shadowrootmode="open"><a href=x></a><template><a href=no></a></template><a href=y></a></template></div><a href=z>`,
		[]string{"x", "y", "z"}},
	{"a shadow root inside an inert template stays inert",
		`<template><template shadowrootmode=open><a href=no></a></template><a href=no></a></template><a href=x>`, []string{"x"}},

	{"SVG links count, and href wins over xlink:href",
		`<svg><a href=x></a><a xlink:href=y></a><a xlink:href=no href=z></a></svg>`, []string{"x", "y", "z"}},
	{"style, script and title hold markup inside SVG",
		`<svg><style><a href=x></a></style><script><a href=y></a></script><title><a href=z></a></title></svg>`, []string{"x", "y", "z"}},
	{"a CDATA section inside SVG is text", `<svg><style><![CDATA[ <a href=no> ]]></style></svg><a href=x>`, []string{"x"}},
	{"HTML inside foreignObject is HTML again",
		`<svg><foreignObject><style><a href=no></style><iframe src=x></iframe></foreignObject><style><a href=y></a></style></svg>`, []string{"x", "y"}},
	{"a div breaks out of SVG", `<svg><g><div><style><a href=no></style></div>`, nil},
	{"the end of an element around an unclosed SVG ends it", `<div><svg><path></div><style><a href=no></style><a href=x>`, []string{"x"}},
	{"an SVG that closes itself holds nothing", `<svg/><style><a href=no></style><svg /><style><a href=no></style><a href=x>`, []string{"x"}},
	{"link, base, iframe and meta inside SVG are not HTML's",
		`<svg><link rel=next href=no><iframe src=no></iframe><base href=no></svg><a href=x>`, []string{"x"}},
	{"MathML text holds HTML", `<math><mi><style><a href=no></style></mi><mtext><a href=x></a></mtext><a href=no></a></math>`, []string{"x"}},
	{"annotation-xml holds HTML only if it says so",
		`<math><annotation-xml encoding="text/html"><a href=x></a></annotation-xml><annotation-xml><a href=no></a></annotation-xml></math>`, []string{"x"}},
	{"an svg named inside MathML is MathML", `<math><svg><a href=no></a></svg></math><a href=x>`, []string{"x"}},

	{"frames and inner frames are links, empty ones are not",
		`<frameset><frame src=x><frame src=""><frame></frameset>`, []string{"x"}},
	{"areas are links", `<map><area href=x><area nohref></map>`, []string{"x"}},
	{"of link elements only next, prev, alternate and canonical count",
		`<link rel=stylesheet href=no><link rel="alternate stylesheet" href=no><link rel=next href=x><link rel=prev href=y>` +
			`<link rel=alternate href=z><link rel=canonical href=c><link rel=next href=""><link rel=icon href=no><link href=no>`,
		[]string{"x", "y", "z", "c"}},
	{"names count in any case", `<LiNk REL="NeXt" hReF=x><IFRAME SRC=y></IFRAME>`, []string{"x", "y"}},
	{"links in tables are found, whatever the nesting", `<table><tr><td><a href=x></a></td></tr></table>`, []string{"x"}},
}

func TestDocuments(t *testing.T) {
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			if diff := cmp.Diff(d.want, refs(d.doc)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", d.doc, diff)
			}
			agree(t, d.doc, []byte(d.doc))
		})
	}
}

func TestMetadata(t *testing.T) {
	doc := `<!DOCTYPE html><html lang="de-AT"><head>
	<a href=before>early</a>
	<svg><title>not me</title></svg>
	<title> Caf&eacute;
	  &amp; &lt;Bar&gt; </title><title>second</title>
	<meta name="Description" content="One &quot;two&quot;   three"><meta name=description content=second>
	<base target=_top><base href=" /dir/ "><base href=/other/>
	<meta name=robots content="NOINDEX, follow"><meta name=tiptoe content=nofollow><meta name=otherbot content=noarchive>
	<link rel="canonical" href="https://a.example/c"><link rel=canonical href=second>
	<meta http-equiv=refresh content="30"><meta http-equiv=Refresh content="5; URL='/next'"><meta http-equiv=refresh content="0;/late">
	<link rel=alternate hreflang=fr href=/fr><link rel=alternate type="application/rss+xml" href=/feed>
	<link rel=alternate type="application/json+oembed" href=/oembed>
	<body><a href=a rel="nofollow,UGC sponsored">`
	s := Scanner{Agent: "Tiptoe"}
	p := s.Scan([]byte(doc), "text/html")
	want := Page{
		Format: HTML, Charset: "utf-8", Title: "Caf\u00e9 & <Bar>", Description: `One "two" three`, Lang: "de-AT",
		Base: "/dir/", Canonical: "https://a.example/c", Refresh: "/next", Robots: NoIndex | NoFollow,
		Links: []Link{
			{Ref: []byte("before")},
			{Ref: []byte("https://a.example/c"), Kind: LinkElement, Rel: RelCanonical},
			{Ref: []byte("second"), Kind: LinkElement, Rel: RelCanonical},
			{Ref: []byte("/next"), Kind: Refresh},
			{Ref: []byte("/fr"), Kind: LinkElement, Rel: RelAlternate, Lang: []byte("fr")},
			{Ref: []byte("/feed"), Kind: LinkElement, Rel: RelAlternate | RelFeed},
			{Ref: []byte("/oembed"), Kind: LinkElement, Rel: RelAlternate | RelNotHTML},
			{Ref: []byte("a"), Rel: RelNoFollow | RelUGC | RelSponsored},
		},
	}
	if diff := cmp.Diff(want, *p); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheBaseIsNotTakenFromTemplatesOrSVG(t *testing.T) {
	var s Scanner
	p := s.Scan([]byte(`<template><base href=/no/></template><svg><base href=/no/></svg><base href=/yes/>`), "text/html")
	if p.Base != "/yes/" {
		t.Errorf("base %q, want /yes/", p.Base)
	}
}

func TestRefreshTargets(t *testing.T) {
	for content, want := range map[string]string{
		"5;url=/x": "/x", "0; URL = '/x' trailing": "/x", `0,url="/x`: "/x", " 3 ; /x": "/x", "1.5;url=x": "x", ".5;url=x": "x",
		"0 url=x": "x", "0;urlish": "urlish", "0;url": "url", "0;u=x": "u=x", "5": "", "5;": "", "url=/x": "", "": "", "abc;url=x": "", "5x;url=y": "", "-1;url=x": "",
	} {
		if got := string(refreshTarget([]byte(content))); got != want {
			t.Errorf("refresh %q leads to %q, want %q", content, got, want)
		}
	}
}

func TestTitlesAreShortAndHarmless(t *testing.T) {
	for title, want := range map[string]string{
		"a\x1b[31mb\x07c":                "a[31mbc",
		"a\u202eb\u2066c\u200fd\u2028e":  "abcd e",
		"&#27;]0;x&#7;&#x9b;y":           "]0;x\u203ay",
		"\t\n a \r\n b\u00a0\u3000c ":    "a b c",
		"broken \xff\xfe bytes":          "broken \ufffd bytes",
		strings.Repeat("\u20ac", 400):    strings.Repeat("\u20ac", 170),
		strings.Repeat("x", 511) + " yz": strings.Repeat("x", 511),
		"x</b><!-- y -->":                "x</b><!-- y -->",
		"":                               "",
	} {
		var s Scanner
		got := s.Scan([]byte("<title>"+title+"</title>"), "text/html; charset=utf-8").Title
		if got != want {
			t.Errorf("title %q became %q, want %q", title, got, want)
		}
	}
}

func TestOnlyDocumentsAreRead(t *testing.T) {
	const page = `<!DOCTYPE html><a href=x>`
	for typ, want := range map[string]Format{
		"text/html": HTML, "TEXT/HTML; charset=x": HTML, " text/html ;": HTML, "application/xhtml+xml": XML, "text/xml": XML,
		"application/atom+xml": XML, "image/svg+xml": XML, "": HTML, "unknown/unknown": HTML, "*/*": HTML,
		"text/plain": Opaque, "application/json": Opaque, "application/pdf": Opaque, "image/png": Opaque, "text/htmlx": Opaque,
	} {
		var s Scanner
		p := s.Scan([]byte(page), typ)
		if p.Format != want || (len(p.Links) > 0) != (want != Opaque) {
			t.Errorf("type %q: read as %v with %d links, want %v", typ, p.Format, len(p.Links), want)
		}
	}
	for body, want := range map[string]Format{
		" \n<HTML><a href=x>": HTML, "<!-- c --><a href=x>": HTML, "<a href=x>": HTML, "<title>t</title>": HTML, "\xef\xbb\xbf<p >": HTML,
		"<?xml version='1.0'?><html/>": XML, "plain text <a href=x>": Opaque, "{\"a\":1}": Opaque, "%PDF-1.7": Opaque, "<abbr>": Opaque, "": Opaque,
	} {
		var s Scanner
		if p := s.Scan([]byte(body), ""); p.Format != want {
			t.Errorf("untyped body %q was sniffed as %v, want %v", body, p.Format, want)
		}
	}
}

func TestXMLDocumentsCloseEmptyElements(t *testing.T) {
	var s Scanner
	p := s.Scan([]byte(`<?xml version="1.0"?><html xml:lang="en"><head><title><![CDATA[T & t]]></title><script src="x"/></head>`+
		`<body><![CDATA[ <a href="no"/> ]]><?pi <a href="no"> ?><iframe src="f"/><a href="y"/></body></html>`), "application/xhtml+xml")
	if got := scanned(p); got.Title != "T & t" || got.Lang != "en" || cmp.Diff([]string{"iframe [] f", "a [] y"}, got.Links) != "" {
		t.Errorf("read as %+v", got)
	}
	p = s.Scan([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><link href="/e" rel="alternate"/></entry></feed>`), "application/atom+xml")
	if got := scanned(p); got.Title != "F" || cmp.Diff([]string{"link [alternate] /e"}, got.Links) != "" {
		t.Errorf("feed read as %+v", got)
	}
}
