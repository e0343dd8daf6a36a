package weburl

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"pgregory.net/rapid"
)

// The oracle is an independent implementation of the same standard. What it is
// known to do differently is listed here, each with its reason; anything else
// fails the tests below.
//
//   - It does not encode "^" in paths; the standard has since March 2025.
//   - It makes one U+FFFD of each byte that is not UTF-8, where the Encoding
//     Standard makes one of each maximal part of a sequence.
//   - It holds names in other alphabets to the ASCII rules of STD 3, which the
//     standard switches off: "ü_" is a name.
//   - It takes "-1" and "+1" for numbers of an IPv4 address.
//   - It strips any number of brackets around an IPv6 address.
//   - It knows no length bounds.

// oracle returns the canonical form by the other implementation.
func oracle(base, ref string) (href string, ok bool) {
	defer func() {
		if recover() != nil {
			href, ok = "", false
		}
	}()
	var u *whatwg.Url
	var err error
	if base == "" {
		u, err = whatwg.Parse(ref)
	} else {
		u, err = whatwg.ParseRef(base, ref)
	}
	if err != nil || u.Scheme() != "http" && u.Scheme() != "https" {
		return "", false
	}
	u.SetUsername("")
	u.SetPassword("")
	u.SetHash("")
	href = u.Href(true)
	path, query, has := strings.Cut(href, "?")
	path = strings.ReplaceAll(path, "^", "%5E")
	if has {
		path += "?" + query
	}
	return path, true
}

// compare holds this package and the oracle to the same answer.
func compare(t interface{ Fatalf(string, ...any) }, base, ref string) {
	// The oracle's time grows with the square of the length.
	if !utf8.ValidString(ref) || len(ref) > 1000 {
		return
	}
	var b Base
	if base != "" {
		b = *NewBase(FromCanonical(base))
	}
	got, err := b.Resolve(ref)
	want, ok := oracle(base, ref)
	switch {
	case ok && isIPv4URL(want) && strings.ContainsAny(ref, "+-"):
	case err == nil && ok && got.String() != want:
		t.Fatalf("base %q ref %q:\n got %q\nwant %q", base, ref, got, want)
	case err != nil && ok && !stricter(err, ref):
		t.Fatalf("base %q ref %q: refused (%v); want %q", base, ref, err, want)
	case err == nil && !ok && !laxer(got):
		t.Fatalf("base %q ref %q:\n got %q; want a refusal", base, ref, got)
	}
}

func isIPv4URL(href string) bool {
	name := FromCanonical(href).Hostname()
	return IsIP(name) && !strings.Contains(name, ":")
}

// stricter excuses a refusal of ours that the oracle does not share.
func stricter(err error, ref string) bool {
	return err == errTooLong || strings.Contains(err.Error(), "too long") || err == errIPv6 && (strings.Contains(ref, "[[") || strings.Contains(ref, "]]"))
}

// laxer excuses a URL of ours that the oracle refuses.
func laxer(got URL) bool {
	const ldh = "abcdefghijklmnopqrstuvwxyz0123456789.-:"
	last := string(lastLabel([]byte(got.Hostname())))
	return strings.Trim(got.Hostname(), ldh) != "" || strings.HasPrefix(last, "-") || strings.HasPrefix(last, "+")
}

var pieces = []string{
	"http:", "https:", "HTTP:", "ftp:", "/", "//", "\\", "?", "#", "@", ":", ".", "..", "%2e", "%2E.", "%", "%41", "%zz",
	"a", "B", "example.com", "EXAMPLE.com", "xn--", "xn--bcher-kva", "ü", "ß", "日本", "。", "\u00ad", "\u200d", "ﷺ",
	"127.1", "0x7f.1", "017", "1.2.3.4", "256", "09", "0x", "[", "]", "::1", "[::1]", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4",
	"80", "443", "8080", "99999", "0080", " ", "\t", "\n", "\x00", "\x7f", "\"", "'", "<", ">", "`", "{", "}", "|", "^", "~",
	"&a=b", ";", "+", "!", "$", "(", ")", "*", ",", "=", "_", "-", "user:pw@", "u@",
}

var bases = []string{
	"", "http://example.com/", "https://example.com/a/b/c?q=1", "http://example.com:443/x/", "https://xn--bcher-kva.example/ü/%2e?",
	"http://[::1]:8080//a//b", "http://127.0.0.1/a/b;c=d/e?f?g",
}

func canonicalBase(t testing.TB, i int) string {
	if bases[i] == "" {
		return ""
	}
	return parse(t, bases[i]).String()
}

func TestResolveAgreesWithAnIndependentImplementation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		base := canonicalBase(t, rapid.IntRange(0, len(bases)-1).Draw(r, "base"))
		ref := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(r, "pieces"), "")
		if rapid.Bool().Draw(r, "absolute") {
			ref = "http://" + ref
		}
		compare(r, base, ref)
	})
}

func TestNormalisingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		base := canonicalBase(t, rapid.IntRange(0, len(bases)-1).Draw(r, "base"))
		ref := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String()), 0, 8).Draw(r, "pieces"), "")
		idempotent(r, base, ref)
	})
}

func idempotent(t interface{ Fatalf(string, ...any) }, base, ref string) {
	b := NewBase(FromCanonical(base))
	u, err := b.Resolve(ref)
	if err != nil {
		if u != (URL{}) {
			t.Fatalf("base %q ref %q: a refusal with the URL %q", base, ref, u)
		}
		return
	}
	if len(u.String()) > MaxLength {
		t.Fatalf("base %q ref %q: %d bytes long", base, ref, len(u.String()))
	}
	again, err := Parse(u.String())
	if err != nil || again != u {
		t.Fatalf("base %q ref %q gives %q, which parses to %q, %v", base, ref, u, again, err)
	}
	// The shortcut for the base's own host and the parser agree.
	if shortcut, err := NewBase(u).Resolve(u.String()); err != nil || shortcut != u {
		t.Fatalf("%q resolved against itself gives %q, %v", u, shortcut, err)
	}
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f || c == '#' {
			t.Fatalf("base %q ref %q gives %q with the byte %#x", base, ref, u, c)
		}
	}
}

// The long way through the host parser must agree with the short one wherever
// both apply.
func TestTheShortWayThroughAHostEqualsTheLongOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		host := []byte(rapid.StringMatching(`[a-zA-Z0-9._~!$&()*+,;=x-]{1,20}`).Draw(r, "host"))
		short, err1 := appendHost(nil, host)
		slow, err2 := appendHostSlowly(nil, host)
		if (err1 == nil) != (err2 == nil) || string(short) != string(slow) {
			r.Fatalf("%q: %q, %v and %q, %v", host, short, err1, slow, err2)
		}
	})
}

// The web platform's own vectors come with the oracle's module; they are
// read from where the module lies and not kept here.
func TestTheWebPlatformsOwnVectorsHold(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nlnwa/whatwg-url").Output()
	if err != nil {
		t.Skipf("no module cache: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "urltestdata.json"))
	if err != nil {
		t.Skipf("no vectors: %v", err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, one := range all {
		var v struct {
			Input    string
			Base     *string
			Href     string
			Username string
			Password string
			Failure  bool
		}
		if json.Unmarshal(one, &v) != nil {
			continue // a comment
		}
		var b Base
		if v.Base != nil && *v.Base != "about:blank" {
			u, err := Parse(*v.Base)
			if err != nil {
				continue // a base of another scheme
			}
			b = *NewBase(u)
		}
		got, err := b.Resolve(v.Input)
		want, _, _ := strings.Cut(v.Href, "#")
		if v.Failure || !strings.HasPrefix(want, "http:") && !strings.HasPrefix(want, "https:") {
			if err == nil {
				t.Errorf("%q (base %v) gives %q; want a refusal", v.Input, v.Base, got)
			}
			tried++
			continue
		}
		if i := strings.LastIndexByte(want, '@'); v.Username != "" || v.Password != "" {
			want = want[:strings.Index(want, "//")+2] + want[i+1:]
		}
		path, query, has := strings.Cut(want, "?")
		want = strings.ReplaceAll(path, "^", "%5E")
		if has {
			want += "?" + query
		}
		if err != nil || got.String() != want {
			t.Errorf("%q (base %v):\n got %q, %v\nwant %q", v.Input, v.Base, got, err, want)
		}
		tried++
	}
	if tried < 500 {
		t.Errorf("only %d vectors tried", tried)
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range pieces {
		f.Add("http://" + p + "/" + p + "?" + p)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		idempotent(t, "", raw)
		compare(t, "", raw)
		if u, err := ParseSeed(raw); err == nil {
			idempotent(t, "", u.String())
		}
		Credentials(raw)
	})
}

func FuzzResolve(f *testing.F) {
	for i, p := range pieces {
		f.Add(i, p+"/"+p+"?"+p)
	}
	for i, ref := range ordinary {
		f.Add(i, ref)
	}
	f.Fuzz(func(t *testing.T, i int, ref string) {
		base := canonicalBase(t, int(uint(i)%uint(len(bases))))
		idempotent(t, base, ref)
		compare(t, base, ref)
	})
}
