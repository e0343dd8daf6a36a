package extract

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pageWriter writes random pages that are well-formed: every element is
// closed in order and stands where the content model allows it. On such pages
// scanner and tree must agree to the letter.
type pageWriter struct {
	strings.Builder
	r *rand.Rand
	n int // numbers references, so that none is like another
}

func (w *pageWriter) one(choices ...string) string { return choices[w.r.IntN(len(choices))] }
func (w *pageWriter) chance(percent int) bool      { return w.r.IntN(100) < percent }

// name writes a tag or attribute name in random case.
func (w *pageWriter) name(n string) string {
	if w.chance(80) {
		return n
	}
	b := []byte(n)
	for i := range b {
		if w.chance(50) && 'a' <= b[i] && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}

func (w *pageWriter) ref() string {
	w.n++
	return w.one("", "/", "../", "https://a.example/", "#", "?q=", "mailto:", " \n") + fmt.Sprint(w.n) +
		w.one("", "&amp;a=b", "&b=c", "&copy=1", "&#233;", "&eacute;", "é", "%20", "&notin;x", " x ", "&#x1F600;", "&nosuch;", "&lt", "\tz")
}

// attr writes one attribute with a random kind of quote.
func (w *pageWriter) attr(name, value string) {
	w.WriteString(w.one(" ", "\n", "  ", "\t "))
	w.WriteString(w.name(name))
	w.WriteString(w.one("=", "=", "=", " = "))
	switch {
	case w.chance(60):
		w.WriteString(`"` + strings.ReplaceAll(value, `"`, "&quot;") + `"`)
	case w.chance(70) || strings.ContainsAny(value, " \t\n\f\r\"'=<>`") || value == "":
		w.WriteString(`'` + strings.ReplaceAll(value, `'`, "&#39;") + `'`)
	default:
		w.WriteString(value)
	}
}

func (w *pageWriter) noise() {
	for range w.r.IntN(3) {
		w.attr(w.one("class", "id", "title", "data-href", "onclick", "src", "href2", "rev"),
			w.one("x", "<a href=no>", "a > b", "it's", `say "x"`, "", "/"))
	}
}

func (w *pageWriter) open(name string, attrs ...string) {
	w.WriteString("<" + w.name(name))
	w.noise2(name)
	for i := 0; i < len(attrs); i += 2 {
		w.attr(attrs[i], attrs[i+1])
		if w.chance(5) {
			w.attr(attrs[i], "duplicate")
		}
	}
	w.WriteString(w.one("", "", " ", "\n") + ">")
}

// noise2 adds attributes that do not matter, but never src where it would.
func (w *pageWriter) noise2(name string) {
	if name != "iframe" && name != "html" {
		w.noise()
	}
}

func (w *pageWriter) close(name string) {
	w.WriteString("</" + w.name(name) + w.one("", "", " ", "\n") + ">")
}

func (w *pageWriter) text() {
	w.WriteString(w.one("text", " ", "a &lt; b", "1 < 2", "&amp;", "é", "&nbsp;", "x=\"<\" y", "\n", "> >", "--> ]]>"))
}

func (w *pageWriter) rel() string {
	return w.one("", "nofollow", "noopener  NoFollow", "ugc sponsored", "next", "prev", "alternate", "author")
}

// phrasing writes inline content; inA says that an anchor is open.
func (w *pageWriter) phrasing(depth int, inA bool) {
	for range w.r.IntN(4) {
		switch k := w.r.IntN(14); {
		case k < 3:
			w.text()
		case k < 6 && !inA:
			w.open("a", "href", w.ref(), "rel", w.rel())
			w.phrasing(depth-1, true)
			w.close("a")
		case k == 6:
			w.WriteString(w.one("<!-- <a href=no> -->", "<!---->", "<!-- > -- >-->", "<!--x--!>", "<!-- <!-- -->"))
		case k == 7:
			w.open(w.one("img", "br", "input", "wbr"))
		case k == 8:
			w.script()
		case k == 9 && depth > 0:
			w.svg(depth-1, inA)
		case k == 10 && depth > 0:
			w.math(depth-1, inA)
		case k == 11:
			w.open("iframe", "src", w.ref())
			w.WriteString("<a href=no>")
			w.close("iframe")
		case k == 12:
			w.open("textarea")
			w.WriteString(w.one("<a href=no>", "</textareas>", "<!-- ", "&lt;"))
			w.close("textarea")
		case depth > 0:
			e := w.one("span", "em", "b", "code", "label", "noscript")
			w.open(e)
			w.phrasing(depth-1, inA)
			w.close(e)
		}
	}
}

func (w *pageWriter) script() {
	w.open("script")
	w.WriteString(w.one("", "if (a<b) x='<a href=no>'", "<!-- <script> <a href=no> </script> <a href=no> -->",
		"<!--> <script>", "'<\\/script>'", "<!-- x --> '<script'", "</scripts>", "<![CDATA[ <a href=no> ]]>"))
	w.close("script")
}

func (w *pageWriter) svg(depth int, inA bool) {
	w.open("svg")
	for range w.r.IntN(4) {
		switch w.r.IntN(8) {
		case 0:
			w.WriteString("<path d='M0 0'/><g><circle r=1 /></g>")
		case 1:
			w.WriteString("<title>svg title <![CDATA[ <a href=no> ]]></title>")
		case 2:
			w.WriteString("<style>a > b { } <![CDATA[ <a href=no> ]]></style>")
		case 3:
			w.open("a", w.one("href", "xlink:href"), w.ref())
			w.WriteString("<text>x</text></a>")
		case 4:
			w.WriteString("<foreignObject>")
			if depth > 0 {
				w.phrasing(depth-1, inA)
			}
			w.WriteString("</foreignObject>")
		case 5:
			w.WriteString("<link rel=next href=no /><iframe src=no></iframe><base href=no />")
		case 6:
			w.WriteString("<svg><desc>d</desc></svg>")
		case 7:
			w.WriteString("<script>x <!-- <a href=no> --> y</script>")
		}
	}
	w.close("svg")
}

func (w *pageWriter) math(depth int, inA bool) {
	w.open("math")
	for range w.r.IntN(4) {
		switch w.r.IntN(4) {
		case 0:
			w.WriteString("<mrow><mi>x</mi><mo>&lt;</mo><mn>1</mn></mrow>")
		case 1:
			w.WriteString("<mtext>")
			if depth > 0 {
				w.phrasing(depth-1, inA)
			}
			w.WriteString("</mtext>")
		case 2:
			w.WriteString("<a href=no></a><![CDATA[ <a href=no> ]]>")
		case 3:
			w.WriteString(`<annotation-xml encoding="text/html">`)
			if depth > 0 {
				w.phrasing(depth-1, inA)
			}
			w.WriteString("</annotation-xml><annotation-xml><semantics></semantics></annotation-xml>")
		}
	}
	w.close("math")
}

func (w *pageWriter) flow(depth int) {
	for range w.r.IntN(5) + 1 {
		switch k := w.r.IntN(10); {
		case k < 3:
			w.open("p")
			w.phrasing(3, false)
			w.close("p")
		case k == 3:
			w.open("ul")
			for range w.r.IntN(3) {
				w.open("li")
				w.phrasing(2, false)
				w.close("li")
			}
			w.close("ul")
		case k == 4:
			w.WriteString("<table><caption>c</caption><tbody><tr><td>")
			w.phrasing(2, false)
			w.WriteString("</td></tr></tbody></table>")
		case k == 5:
			w.open("map")
			w.open("area", "href", w.ref(), "rel", w.rel())
			w.close("map")
		case k == 6:
			w.open("template", w.one("shadowrootmode", "id", "shadowroot"), w.one("open", "closed", "x"))
			w.phrasing(2, false)
			w.close("template")
		case depth > 0:
			e := w.one("div", "section", "nav", "main", "noscript", "blockquote")
			w.open(e)
			w.flow(depth - 1)
			w.close(e)
		}
	}
}

func (w *pageWriter) page() string {
	w.WriteString(w.one("<!DOCTYPE html>", "<!doctype HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" 'x'>", "\n<!-- c --><!DOCTYPE html>"))
	w.open("html", "lang", w.one("en", "de-AT", ""))
	w.open("head")
	for range w.r.IntN(8) {
		switch w.r.IntN(8) {
		case 0:
			w.open("title")
			w.WriteString(w.one("Title", " a  &amp; b ", "<b>x</b>", "<!-- c -->", "&eacute;&copy x", ""))
			w.close("title")
		case 1:
			w.open("meta", "name", w.one("description", "robots", "viewport"), "content", w.one("noindex, nofollow", "a &amp; b", "none"))
		case 2:
			w.open("link", "rel", w.one("next", "canonical", "alternate", "stylesheet", "alternate stylesheet", "prev icon"),
				"href", w.ref(), "type", w.one("", "text/css", "application/rss+xml"), "hreflang", "de")
		case 3:
			w.open("base", w.one("href", "target"), w.ref())
		case 4:
			w.open("style")
			w.WriteString(w.one("a > b {}", "<a href=no>", "<!-- </styles> -->"))
			w.close("style")
		case 5:
			w.script()
		case 6:
			w.open("meta", "http-equiv", w.one("refresh", "Refresh", "content-type"), "content", w.one("0;url=/r", "5", "text/html", "1; URL='/s?a&amp;b'"))
		case 7:
			w.open("noscript")
			w.open("link", "rel", "next", "href", w.ref())
			w.close("noscript")
		}
	}
	w.close("head")
	w.open("body")
	w.flow(4)
	w.close("body")
	w.close("html")
	return w.String()
}

func TestWellFormedPagesReadAsATreeReadsThem(t *testing.T) {
	pages := 1000
	if testing.Short() {
		pages = 300
	}
	links := 0
	for seed := range pages {
		w := pageWriter{r: rand.New(rand.NewPCG(uint64(seed), 1))}
		doc := w.page()
		links += w.n
		agree(t, fmt.Sprintf("seed %d:\n%s", seed, doc), []byte(doc))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d pages with up to %d links agree", pages, links)
}
