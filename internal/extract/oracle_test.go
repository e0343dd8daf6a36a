package extract

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// seen is a document's answer in a form two readers can be compared by.
type seen struct {
	Title, Description, Lang, Base, Canonical, Refresh string
	Robots                                             Robots
	Links                                              []string // "kind rel ref"
}

func describe(kind Kind, rel Rel, ref string) string {
	var r []string
	for i, name := range []string{"nofollow", "ugc", "sponsored", "next", "prev", "alternate", "canonical", "feed", "nothtml"} {
		if rel&(1<<i) != 0 {
			r = append(r, name)
		}
	}
	return kind.String() + " [" + strings.Join(r, " ") + "] " + ref
}

func scanned(p *Page) seen {
	v := seen{Title: p.Title, Description: p.Description, Lang: p.Lang, Base: p.Base, Canonical: p.Canonical,
		Refresh: p.Refresh, Robots: p.Robots}
	for _, l := range p.Links {
		v.Links = append(v.Links, describe(l.Kind, l.Rel, string(l.Ref)))
	}
	return v
}

// oracle reads the same facts from a full tree.
func oracle(tb testing.TB, doc []byte) (v seen, ok bool) {
	root, err := html.ParseWithOptions(bytes.NewReader(doc), html.ParseOptionEnableScripting(false))
	if err != nil {
		tb.Logf("oracle refuses the document: %v", err)
		return v, false
	}
	o := treeReader{out: &v}
	o.walk(root)
	return v, true
}

type treeReader struct {
	out                                     *seen
	base, title, desc, lang, canon, refresh bool
}

func attrOfNode(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// urlText is what every URL parser does first.
func urlText(v string) string {
	v = strings.NewReplacer("\t", "", "\n", "", "\r", "", "\x00", "\ufffd").Replace(strings.ToValidUTF8(v, "\ufffd"))
	return strings.TrimFunc(v, func(r rune) bool { return r > 0 && r <= ' ' })
}

func (o *treeReader) add(kind Kind, rel Rel, ref string) bool {
	ref = urlText(ref)
	if len(ref) > MaxRef || ref == "" && kind != Anchor && kind != Area {
		return false
	}
	o.out.Links = append(o.out.Links, describe(kind, rel&^stylesheet, ref))
	return true
}

func (o *treeReader) walk(n *html.Node) {
	if n.Type == html.ElementNode {
		switch n.Namespace {
		case "":
			if n.Data == "template" {
				if m, _ := attrOfNode(n, "shadowrootmode"); !strings.EqualFold(m, "open") && !strings.EqualFold(m, "closed") {
					return
				}
			}
			o.element(n)
		case "svg":
			if n.Data == "a" {
				o.svgAnchor(n)
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		o.walk(c)
	}
}

func (o *treeReader) svgAnchor(n *html.Node) {
	rel, _ := attrOfNode(n, "rel")
	ref, ok := attrOfNode(n, "href")
	if !ok {
		for _, a := range n.Attr {
			if a.Namespace == "xlink" && a.Key == "href" {
				ref, ok = a.Val, true
			}
		}
	}
	if ok {
		o.add(Anchor, parseRel([]byte(rel)), ref)
	}
}

func (o *treeReader) element(n *html.Node) {
	href, hasHref := attrOfNode(n, "href")
	src, hasSrc := attrOfNode(n, "src")
	relText, _ := attrOfNode(n, "rel")
	rel := parseRel([]byte(relText))
	switch n.Data {
	case "a":
		if hasHref {
			o.add(Anchor, rel, href)
		}
	case "area":
		if hasHref {
			o.add(Area, rel, href)
		}
	case "iframe":
		if hasSrc {
			o.add(IFrame, 0, src)
		}
	case "frame":
		if hasSrc {
			o.add(Frame, 0, src)
		}
	case "base":
		if hasHref && !o.base {
			o.base, o.out.Base = true, urlText(href)
		}
	case "html":
		if l, ok := attrOfNode(n, "lang"); ok && !o.lang {
			o.lang, o.out.Lang = true, tidy(l, maxLang)
		} else if l, ok := attrOfNode(n, "xml:lang"); ok && !o.lang {
			o.lang, o.out.Lang = true, tidy(l, maxLang)
		}
	case "title":
		if !o.title {
			o.title = true
			var text strings.Builder
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				text.WriteString(c.Data)
			}
			o.out.Title = tidy(strings.ToValidUTF8(text.String(), "\ufffd"), maxTitle)
		}
	case "link":
		o.link(n, href, hasHref, rel)
	case "meta":
		o.meta(n)
	}
}

func (o *treeReader) link(n *html.Node, href string, ok bool, rel Rel) {
	if !ok || rel&linkRels == 0 || rel&stylesheet != 0 {
		return
	}
	if rel&RelAlternate != 0 {
		typ, _ := attrOfNode(n, "type")
		rel |= relOfType([]byte(typ))
	}
	if o.add(LinkElement, rel, href) && rel&RelCanonical != 0 && !o.canon {
		o.canon, o.out.Canonical = true, urlText(href)
	}
}

func (o *treeReader) meta(n *html.Node) {
	content, ok := attrOfNode(n, "content")
	if !ok {
		return
	}
	equiv, _ := attrOfNode(n, "http-equiv")
	if strings.EqualFold(equiv, "refresh") {
		if ref := string(refreshTarget([]byte(urlText(content)))); ref != "" && !o.refresh {
			o.refresh, o.out.Refresh = true, ref
			o.add(Refresh, 0, ref)
		}
		return
	}
	name, _ := attrOfNode(n, "name")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "robots":
		o.out.Robots |= parseDirectives([]byte(content))
	case "description":
		if !o.desc {
			o.desc, o.out.Description = true, tidy(strings.ToValidUTF8(content, "\ufffd"), maxDescription)
		}
	}
}

// agree fails the test where scanner and tree differ.
func agree(t *testing.T, name string, doc []byte) {
	t.Helper()
	want, ok := oracle(t, doc)
	if !ok {
		return
	}
	var s Scanner
	got := scanned(s.Scan(doc, "text/html; charset=utf-8"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: scanner (+) and tree (-) differ:\n%s", name, diff)
	}
}
