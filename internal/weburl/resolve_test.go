package weburl

import (
	"errors"
	"testing"
)

func TestAReferenceIsResolvedAgainstItsBase(t *testing.T) {
	const base = "http://example.com/a/b/c?q=1"
	for ref, want := range map[string]string{
		"":                       base,
		"#top":                   base,
		"http:":                  base,
		"?x=2":                   "http://example.com/a/b/c?x=2",
		"?":                      "http://example.com/a/b/c?",
		"d":                      "http://example.com/a/b/d",
		"d/e?f":                  "http://example.com/a/b/d/e?f",
		"./d":                    "http://example.com/a/b/d",
		".":                      "http://example.com/a/b/",
		"..":                     "http://example.com/a/",
		"../d":                   "http://example.com/a/d",
		"../../../../d":          "http://example.com/d",
		"..?x":                   "http://example.com/a/?x",
		"/":                      "http://example.com/",
		"/d/../e":                "http://example.com/e",
		"\\d":                    "http://example.com/d",
		"//other.example/x":      "http://other.example/x",
		"///other.example/x":     "http://other.example/x",
		"/\\other.example/x":     "http://other.example/x",
		"https://example.com/x":  "https://example.com/x",
		"https:other.example":    "https://other.example/",
		"http:d":                 "http://example.com/a/b/d",
		"http:/d":                "http://example.com/d",
		"http:http:d":            "http://example.com/a/b/http:d",
		"http://EXAMPLE.com":     "http://example.com/",
		"http://u:p@example.com": "http://example.com/",
		"a:80/x y":               "",
		"1:80":                   "http://example.com/a/b/1:80",
		"page;v=1.2/x":           "http://example.com/a/b/page;v=1.2/x",
		" /a\tb\r\n ":            "http://example.com/ab",
		"//":                     "",
	} {
		u, err := NewBase(parse(t, base)).Resolve(ref)
		if want == "" {
			if err == nil {
				t.Errorf("Resolve(%q) = %q; want a refusal", ref, u)
			}
			continue
		}
		if err != nil || u.String() != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", ref, u, err, want)
		}
	}
}

func TestAWrittenPortIsComparedWithTheLinksOwnScheme(t *testing.T) {
	// The base's authority "a.example:443" is canonical on http only.
	b := NewBase(parse(t, "http://a.example:443/"))
	if u, err := b.Resolve("https://a.example:443/x"); err != nil || u.String() != "https://a.example/x" {
		t.Errorf("got %q, %v", u, err)
	}
}

func TestAnErrorLeavesTheBufferAsItWas(t *testing.T) {
	b := NewBase(parse(t, "http://a.example/"))
	buf := []byte("kept")
	out, err := b.AppendResolve(buf, []byte("http://b.example:99999/"))
	var e *Error
	if !errors.As(err, &e) || e.Reason != BadPort || string(out) != "kept" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err = b.AppendResolve(buf, []byte("x")); err != nil || string(out) != "kepthttp://a.example/x" {
		t.Errorf("got %q, %v", out, err)
	}
}

var ordinary = []string{
	"https://www.example.com/docs/guide/getting-started.html",
	"https://Other.Example.org:8443/a/b?c=d&e=f#frag",
	"/docs/reference/api/index.html?version=2",
	"../images/../reference/list",
	"chapter-12.html",
	"?page=3&sort=asc",
	"//cdn.example.net/lib/x.js",
	"#section-4",
	"/with space/and/üml",
	"mailto:someone@example.com",
	"javascript:void(0)",
	"http://127.0.0.1:8080/x",
	" /padded\n",
}

func TestOrdinaryReferencesDoNotAllocate(t *testing.T) {
	b := NewBase(parse(t, "https://www.example.com/docs/guide/intro?x=1"))
	dst := make([]byte, 0, 4096)
	for _, ref := range ordinary {
		raw := []byte(ref)
		if n := testing.AllocsPerRun(100, func() { _, _ = b.AppendResolve(dst, raw) }); n > 0 {
			t.Errorf("%q: %v allocations", ref, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(ordinary[0]) }); n > 1 {
		t.Errorf("Parse: %v allocations; want only the string", n)
	}
	u := parse(t, ordinary[0])
	if n := testing.AllocsPerRun(100, func() {
		v := FromCanonical(u.String())
		if v.Scheme() == "" || v.Hostname() == "" || v.Port() == "" || v.HostKey() == "" || v.Origin() == "" ||
			v.Path() == "" || v.RequestURI() == "" || v.Query() != "" || v.Fingerprint().Hi == 0 {
			t.Error("an accessor is empty")
		}
	}); n > 0 {
		t.Errorf("accessors: %v allocations", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	base := NewBase(parse(b, "https://www.example.com/docs/guide/intro?x=1"))
	dst := make([]byte, 0, 4096)
	for _, ref := range append(ordinary, "http://bücher.example/", "https://[2001:db8::1]/x") {
		raw := []byte(ref)
		b.Run(ref, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = base.AppendResolve(dst, raw)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Parse(ordinary[0])
	}
}

func BenchmarkFromCanonicalAndHostKey(b *testing.B) {
	n := 0
	for b.Loop() {
		n += len(FromCanonical(ordinary[0]).HostKey())
	}
}

func BenchmarkDomain(b *testing.B) {
	u := parse(b, "https://www.example.co.uk/")
	b.ReportAllocs()
	for b.Loop() {
		_ = u.Domain()
	}
}

func BenchmarkFingerprint(b *testing.B) {
	u := parse(b, ordinary[0])
	for b.Loop() {
		_ = u.Fingerprint()
	}
}
