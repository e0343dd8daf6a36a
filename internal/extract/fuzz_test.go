package extract

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func addSeeds(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.doc))
	}
	for seed := range 50 {
		f.Add([]byte(soup(seed, htmlPieces)))
	}
}

// Whatever the bytes, values are valid UTF-8 and bounded.
func FuzzScan(f *testing.F) {
	addSeeds(f)
	types := []string{"", "text/html", "text/html; charset=shift_jis", "text/html; charset=utf-16le", "application/xhtml+xml",
		"text/html; charset=iso-2022-jp", "text/html; charset=gb18030", "text/html; charset=windows-1252"}
	scanner := Scanner{Agent: "tiptoe"}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		for _, typ := range types {
			p := scanner.Scan(doc, typ)
			for _, v := range []string{p.Title, p.Description, p.Lang, p.Base, p.Canonical, p.Refresh} {
				if !utf8.ValidString(v) {
					t.Errorf("%s: %q is not valid UTF-8", typ, v)
				}
			}
			if len(p.Title) > maxTitle || len(p.Description) > maxDescription || strings.ContainsFunc(p.Title+p.Description+p.Lang, unsafeRune) {
				t.Errorf("%s: unclean metadata %q %q %q", typ, p.Title, p.Description, p.Lang)
			}
			if p.Format != Opaque && p.Charset == "" {
				t.Errorf("%s: read with an unknown encoding", typ)
			}
			for _, l := range p.Links {
				if !utf8.Valid(l.Ref) || !utf8.Valid(l.Lang) || bytes.ContainsAny(l.Ref, "\x00\t\r\n") || l.Rel&stylesheet != 0 {
					t.Errorf("%s: link %q %q", typ, l.Ref, l.Lang)
				}
			}
		}
		if !bytes.Equal(before, doc) {
			t.Error("the body was written to")
		}
	})
}

// On HTML without frames and foreign content the scanner reads what a tree
// reads, however broken it is.
func FuzzAgainstTree(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if lower := bytes.ToLower(doc); !utf8.Valid(doc) || bytes.Contains(lower, []byte("<frame")) || bytes.Contains(lower, []byte("<svg")) ||
			bytes.Contains(lower, []byte("<math")) || len(doc) > 10_000 {
			t.Skip()
		}
		if d := differ(t, doc); d != "" {
			t.Error(d)
		}
	})
}

// Headers never panic, and their links are usable.
func FuzzHeaders(f *testing.F) {
	f.Add(`</a>; rel="next"; title="\", <b>", </c>;rel=alternate;hreflang=x`, "tiptoe: noindex, unavailable_after: Mon, 1-Jan-26 10:00:00 GMT")
	f.Fuzz(func(t *testing.T, link, tag string) {
		LinkHeader([]string{link, link}, func(l Link) bool {
			if len(l.Ref) == 0 || !utf8.Valid(l.Ref) || !utf8.Valid(l.Lang) || l.Rel&linkRels == 0 {
				t.Errorf("link %+v", l)
			}
			return true
		})
		if all := RobotsTag([]string{tag}, "tiptoe"); all&^RobotsTag([]string{tag, tag}, "tiptoe") != 0 {
			t.Errorf("%q: a second header took directives away", tag)
		}
	})
}
