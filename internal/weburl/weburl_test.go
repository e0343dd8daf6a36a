package weburl

import (
	"errors"
	"strings"
	"testing"
)

func parse(t testing.TB, raw string) URL {
	t.Helper()
	u, err := Parse(raw)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return u
}

func TestParseGivesTheHrefOfTheStandard(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com":                      "http://example.com/",
		"HTTP://EXAMPLE.com/Path/Keeps/CASE":      "http://example.com/Path/Keeps/CASE",
		"https://example.com:443/":                "https://example.com/",
		"https://example.com:80/":                 "https://example.com:80/",
		"http://example.com:0080/":                "http://example.com/",
		"http://example.com:/":                    "http://example.com/",
		"http://example.com/a/":                   "http://example.com/a/",
		"http://example.com//a//b":                "http://example.com//a//b",
		"http://example.com/?b=2&a=1":             "http://example.com/?b=2&a=1",
		"http://example.com/?":                    "http://example.com/?",
		"http://example.com?q#f":                  "http://example.com/?q",
		"http://example.com/a#f?not":              "http://example.com/a",
		"http://u:p@example.com/":                 "http://example.com/",
		"http://u@p@example.com/":                 "http://example.com/",
		"http:example.com/a":                      "http://example.com/a",
		"http:\\\\example.com\\a\\..\\b":          "http://example.com/b",
		"http:////example.com":                    "http://example.com/",
		"  http://exa\tmple.com/a\nb \x00":        "http://example.com/ab",
		"http://example.com/a/./b/../c":           "http://example.com/a/c",
		"http://example.com/a/%2E/b/%2e%2E/c":     "http://example.com/a/c",
		"http://example.com/../../a":              "http://example.com/a",
		"http://example.com/a/..":                 "http://example.com/",
		"http://example.com/a/b/.":                "http://example.com/a/b/",
		"http://example.com/a//../b":              "http://example.com/a/b",
		"http://example.com//../b":                "http://example.com/b",
		"http://example.com/\xe0\x80x":            "http://example.com/%EF%BF%BD%EF%BF%BDx",
		"http://ab--ü.example/":                   "http://xn--ab---3ra.example/",
		"http://-ü.example/":                      "http://xn----eha.example/",
		"http://example.com/.../a":                "http://example.com/.../a",
		"http://example.com/%41%zz%":              "http://example.com/%41%zz%",
		"http://example.com/a b\"<>`{}^|'":        "http://example.com/a%20b%22%3C%3E%60%7B%7D%5E|'",
		"http://example.com/?a b\"<>`{}^|'":       "http://example.com/?a%20b%22%3C%3E`{}^|%27",
		"http://example.com/ü?ü":                  "http://example.com/%C3%BC?%C3%BC",
		"http://example.com/\xff\xe2\x82x":        "http://example.com/%EF%BF%BD%EF%BF%BDx",
		"http://example.com/\xed\xa0\x80":         "http://example.com/%EF%BF%BD%EF%BF%BD%EF%BF%BD",
		"http://example.com/\xf0\x9f\x98":         "http://example.com/%EF%BF%BD",
		"http://example.com/?\xf4\x90\x80":        "http://example.com/?%EF%BF%BD%EF%BF%BD%EF%BF%BD",
		"http://Bücher.example/":                  "http://xn--bcher-kva.example/",
		"http://faß.de/":                          "http://xn--fa-hia.de/",
		"http://xn--bcher-kva.example/":           "http://xn--bcher-kva.example/",
		"http://ex%61mple.com/":                   "http://example.com/",
		"http://日本語。jp/":                          "http://xn--wgv71a119e.jp/",
		"http://r3---sn-apo3qvuoxuxbt.example/":   "http://r3---sn-apo3qvuoxuxbt.example/",
		"http://under_score.example/":             "http://under_score.example/",
		"http://example.com./":                    "http://example.com./",
		"http://127.1/":                           "http://127.0.0.1/",
		"http://0x7f000001/":                      "http://127.0.0.1/",
		"http://2130706433:8080/":                 "http://127.0.0.1:8080/",
		"http://0177.0.0.0x1./":                   "http://127.0.0.1/",
		"http://1２7.0.0.1/":                       "http://127.0.0.1/",
		"http://1.2.3.com/":                       "http://1.2.3.com/",
		"http://[::1]:80/":                        "http://[::1]/",
		"http://[2001:DB8:0:0:1:0:0:1]:81":        "http://[2001:db8::1:0:0:1]:81/",
		"http://[::ffff:1.2.3.4]/":                "http://[::ffff:102:304]/",
		"http://[1:2:3:4:5:6:7::]/":               "http://[1:2:3:4:5:6:7:0]/",
		"http://[0:0:0:0:0:0:0:0]/":               "http://[::]/",
		"http://[1:0:3:0:5:0:7:0]/":               "http://[1:0:3:0:5:0:7:0]/",
		"http://example.com/" + "a#" + long(9000): "http://example.com/a",
	} {
		u, err := Parse(raw)
		if err != nil || u.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", raw, u, err, want)
			continue
		}
		if again := parse(t, want); again != u {
			t.Errorf("Parse is not idempotent on %q: %q", want, again)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestARefusalSaysWhichRuleAndWhy(t *testing.T) {
	for _, c := range []struct {
		raw    string
		reason Reason
		text   string
	}{
		{"", NoScheme, "no scheme: an absolute URL begins with http:// or https://"},
		{"/a", NoScheme, "no scheme: an absolute URL begins with http:// or https://"},
		{"mailto:a@example.com", BadScheme, "scheme mailto is not http or https"},
		{"JavaScript:void(0)", BadScheme, "scheme javascript is not http or https"},
		{"web+thing:x", BadScheme, "scheme web+thing is not http or https"},
		{"data:," + long(1<<20), BadScheme, "scheme data is not http or https"},
		{"http://", EmptyHost, "empty host"},
		{"http://:80/", EmptyHost, "empty host"},
		{"http://user@/", EmptyHost, "empty host"},
		{"http://%C2%AD/", EmptyHost, "empty host"},
		{"http://a b/", BadHost, `invalid host "a b": character ' ' is not allowed`},
		{"http://a%2Fb/", BadHost, `invalid host "a%2Fb": character '/' is not allowed`},
		{"http://a%zz/", BadHost, `invalid host "a%zz": character '%' is not allowed`},
		{"http://a%ff/", BadHost, `invalid host "a%ff": not UTF-8`},
		{"http://" + strings.Repeat("ü", 1000) + "/", BadHost, `invalid host "` + strings.Repeat("ü", 32) + `"...: too long for a name in other alphabets`},
		{"http://" + strings.Repeat("ü.", 300) + "/", BadHost, `invalid host "` + strings.Repeat("ü.", 21) + `\xc3"...: too long for a name in other alphabets`},
		{"http://אa.example/", BadHost, `invalid host "אa.example": idna: invalid label "אa.example"`},
		{"http://a\u200db.example/", BadHost, `invalid host "a\u200db.example": idna: invalid label "a\u200db"`},
		{"http://256.1.1.1/", BadHost, "host ends in a number but is not an IPv4 address"},
		{"http://1.2.3.4.5/", BadHost, "host ends in a number but is not an IPv4 address"},
		{"http://4294967296/", BadHost, "host ends in a number but is not an IPv4 address"},
		{"http://a.0x/", BadHost, "host ends in a number but is not an IPv4 address"},
		{"http://09.1/", BadHost, "host ends in a number but is not an IPv4 address"},
		{"http://[::1/", BadHost, "invalid IPv6 address"},
		{"http://[::1%25eth0]/", BadHost, "invalid IPv6 address"},
		{"http://[1.2.3.4]/", BadHost, "invalid IPv6 address"},
		{"http://[[::1]]/", BadHost, "invalid IPv6 address"},
		{"http://a:99999/", BadPort, "port 99999 is out of range"},
		{"http://a:8x/", BadPort, `port "8x" is not a number`},
		{"http://a/" + long(MaxLength), TooLong, "longer than 8192 bytes"},
		{"http://a/" + strings.Repeat("ü", MaxLength/4), TooLong, "longer than 8192 bytes"},
	} {
		u, err := Parse(c.raw)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Parse(%.40q) = %q, %v; want a refusal", c.raw, u, err)
			continue
		}
		if e.Reason != c.reason || e.Error() != c.text {
			t.Errorf("Parse(%.40q) refused with %d %q; want %d %q", c.raw, e.Reason, e, c.reason, c.text)
		}
	}
}

func TestAccessorsCutTheCanonicalForm(t *testing.T) {
	type parts struct{ scheme, host, port, key, origin, path, query, uri string }
	for raw, want := range map[string]parts{
		"https://www.example.com/a/b?c=d?e": {"https", "www.example.com", "443", "www.example.com", "https://www.example.com", "/a/b", "c=d?e", "/a/b?c=d?e"},
		"http://example.com":                {"http", "example.com", "80", "example.com", "http://example.com", "/", "", "/"},
		"http://example.com:8080?":          {"http", "example.com", "8080", "example.com:8080", "http://example.com:8080", "/", "", "/?"},
		"http://[::1]:8080/x":               {"http", "::1", "8080", "[::1]:8080", "http://[::1]:8080", "/x", "", "/x"},
		"https://[::1]/x:y":                 {"https", "::1", "443", "[::1]", "https://[::1]", "/x:y", "", "/x:y"},
	} {
		u := parse(t, raw)
		got := parts{u.Scheme(), u.Hostname(), u.Port(), u.HostKey(), u.Origin(), u.Path(), u.Query(), u.RequestURI()}
		if got != want {
			t.Errorf("%s:\n got %q\nwant %q", raw, got, want)
		}
		if u != FromCanonical(u.String()) {
			t.Errorf("%s: FromCanonical differs from Parse", raw)
		}
	}
}

func TestHTTPAndHTTPSShareAHostKeyOnDefaultPorts(t *testing.T) {
	if a, b := parse(t, "http://a.example/"), parse(t, "https://a.example/"); a.HostKey() != b.HostKey() {
		t.Errorf("%q != %q", a.HostKey(), b.HostKey())
	}
	if a, b := parse(t, "http://a.example:81/"), parse(t, "http://a.example/"); a.HostKey() == b.HostKey() {
		t.Errorf("port 81 shares the key %q", a.HostKey())
	}
}

func TestNothingPanicsOnAStringThatIsNotCanonical(t *testing.T) {
	for _, s := range []string{"", "x", "http://", "https://", "http://?", "http://[", "http://]", "http://:", "http:///", "https://a" + long(1<<17), "http://a/" + long(1<<17) + "?q"} {
		u := FromCanonical(s)
		if got := u.Origin() + u.RequestURI(); got != s {
			t.Errorf("origin and request of %.20q make %.20q", s, got)
		}
		_ = u.Scheme() + u.Hostname() + u.Port() + u.HostKey() + u.Path() + u.Query() + u.Domain()
		_, _ = NewBase(u).Resolve("../x?y")
		if u.String() != s || u.IsZero() != (s == "") {
			t.Errorf("FromCanonical(%.20q) does not keep its string", s)
		}
	}
}

func TestDomainIsTheRegistrableDomain(t *testing.T) {
	for raw, want := range map[string]string{
		"http://www.example.co.uk/":     "example.co.uk",
		"http://example.com/":           "example.com",
		"http://a.b.example.com./":      "example.com",
		"http://user.github.io/":        "user.github.io",
		"http://github.io/":             "github.io",
		"http://co.uk/":                 "co.uk",
		"http://127.0.0.1:90/":          "127.0.0.1",
		"http://[::1]:90/":              "::1",
		"http://localhost:90/":          "localhost",
		"http://a.example:90/":          "a.example",
		"http://www.xn--bcher-kva.com/": "xn--bcher-kva.com",
	} {
		if got := parse(t, raw).Domain(); got != want {
			t.Errorf("domain of %s is %q; want %q", raw, got, want)
		}
	}
}

func TestAFingerprintIsOfTheCanonicalBytes(t *testing.T) {
	a, b := parse(t, "http://EXAMPLE.com:80/a#x"), parse(t, "http://example.com/a")
	if a.Fingerprint() != b.Fingerprint() || b.Fingerprint() != FingerprintBytes([]byte(b.String())) {
		t.Error("one URL has two fingerprints")
	}
	if b.Fingerprint() == parse(t, "http://example.com/A").Fingerprint() {
		t.Error("paths that differ in case share a fingerprint")
	}
}

func TestASeedMayLackItsScheme(t *testing.T) {
	for raw, want := range map[string]string{
		"example.com":             "https://example.com/",
		" Example.COM/Path?q#f ":  "https://example.com/Path?q",
		"example.com:8080/path":   "https://example.com:8080/path",
		"example.com:443":         "https://example.com/",
		"example.com:80/a":        "http://example.com/a",
		"localhost":               "http://localhost/",
		"localhost:8080":          "http://localhost:8080/",
		"localhost:443":           "https://localhost/",
		"app.localhost/x":         "http://app.localhost/x",
		"intranet?x=1":            "http://intranet/?x=1",
		"127.0.0.1:9000":          "http://127.0.0.1:9000/",
		"127.1":                   "http://127.0.0.1/",
		"[::1]:80":                "http://[::1]/",
		"[::1]":                   "http://[::1]/",
		"//example.com/a":         "https://example.com/a",
		"http://example.com":      "http://example.com/",
		"HTTPS://example.com":     "https://example.com/",
		"bücher.example":          "https://xn--bcher-kva.example/",
		"user@example.com/a":      "https://example.com/a",
		"example.com:8080?x=y":    "https://example.com:8080/?x=y",
		"example.com/a:b@c?d=e:f": "https://example.com/a:b@c?d=e:f",
	} {
		u, err := ParseSeed(raw)
		if err != nil || u.String() != want {
			t.Errorf("ParseSeed(%q) = %q, %v; want %q", raw, u, err, want)
		}
	}
	for raw, want := range map[string]Reason{
		"": EmptyHost, "  ": EmptyHost, "/path": NoScheme, "mailto:a@b.example": BadScheme, "ftp://example.com": BadScheme,
		"tel:12345": BadScheme, "example.com:99999": BadPort, "a b.example": BadHost, "//": EmptyHost, "example.com:x/": BadScheme,
	} {
		var e *Error
		if u, err := ParseSeed(raw); !errors.As(err, &e) || e.Reason != want {
			t.Errorf("ParseSeed(%q) = %q, %v; want reason %d", raw, u, err, want)
		}
	}
}

func TestCredentialsAreReadAndDecoded(t *testing.T) {
	for _, c := range []struct {
		raw, user, pass string
		ok              bool
	}{
		{"http://u:p@example.com/", "u", "p", true},
		{"https://u@example.com", "u", "", true},
		{"http://:p@example.com", "", "p", true},
		{"http://u%40x:p%3a:q@example.com/", "u@x", "p::q", true},
		{"http://u:a@b@example.com/", "u", "a@b", true},
		{"http://example.com/u:p@x", "", "", false},
		{"http://example.com?u@x", "", "", false},
		{"http://@example.com/", "", "", false},
		{"http://:@example.com/", "", "", false},
		{"mailto:u@example.com", "", "", false},
	} {
		user, pass, ok := Credentials(c.raw)
		if user != c.user || pass != c.pass || ok != c.ok {
			t.Errorf("Credentials(%q) = %q, %q, %v", c.raw, user, pass, ok)
		}
	}
}
