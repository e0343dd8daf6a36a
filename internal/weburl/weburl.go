// Package weburl answers: which URL is this, and whose is it?
//
// There is one normaliser in tiptoe, and it is here. Its output for an http
// or https URL is the href of the WHATWG URL Standard, less the fragment and
// less user:password. That means: scheme and host in lower case, host names
// in ASCII (UTS #46, non-transitional), IPv4 addresses in any notation
// (127.1, 0x7f000001, 2130706433) as four decimals, IPv6 compressed, default
// ports dropped, dot segments (also spelt %2e) removed, backslashes turned
// into slashes, tabs and newlines removed, and exactly the bytes percent-
// encoded that the standard encodes. Nothing else: paths keep their case,
// slashes are not stripped, queries are not sorted, nothing is decoded.
// The URL fetched is the URL found.
//
// Guarantees, each with a test:
//   - Idempotent: Parse(u.String()) == u for every u that Parse returned.
//   - Bounded: a canonical URL has at most MaxLength bytes.
//   - Base.AppendResolve does not allocate for references made of ASCII, and
//     only a host name with non-ASCII letters or an xn-- label that differs
//     from the base's makes it call the (slow) IDNA tables.
//   - Refusals are *Error values with a Reason and one legible sentence.
//
// Departures from the standard: only http and https exist here; input is
// taken as UTF-8 (a page's legacy charset does not change how its queries are
// encoded; bytes that are not UTF-8 become U+FFFD); credentials are dropped
// from the identity of a URL and offered by Credentials to whoever turns a
// seed's user:password into a header; and there is a length bound.
//
// The room is pure: values in, values out. A crash loses nothing.
package weburl

import (
	"math"
	"strings"

	"github.com/zeebo/xxh3"
)

// MaxLength is the longest canonical URL, in bytes. Servers and proxies
// commonly stop at 8 KiB for a request line.
const MaxLength = 8192

// URL is a canonical absolute http or https URL without fragment and without
// credentials. The zero value is invalid. It is comparable.
type URL struct {
	href  string
	host  uint16 // end of the host name
	path  uint16 // start of the path
	query uint32 // position of "?", or len(href)
}

// Fingerprint is the 128-bit identity of a canonical URL.
type Fingerprint struct{ Hi, Lo uint64 }

// Parse normalises an absolute URL.
func Parse(raw string) (URL, error) {
	var base Base
	return base.Resolve(raw)
}

// FromCanonical wraps a string that an earlier Parse or Resolve produced. It
// does not check; of a string that is not canonical only String, IsZero and
// Fingerprint say anything useful, and nothing panics.
func FromCanonical(href string) URL {
	u := URL{href: href, query: uint32(min(uint64(len(href)), math.MaxUint32))}
	start := u.hostStart()
	if start == 0 {
		return u
	}
	path := start + strings.IndexByte(href[start:], '/')
	if path < start {
		path = len(href)
	}
	if path > math.MaxUint16 || uint64(len(href)) > math.MaxUint32 {
		return u
	}
	host := path
	// Without a port the last colon, if any, is inside an IPv6 literal.
	if i := strings.LastIndexByte(href[start:path], ':'); i >= 0 && href[path-1] != ']' {
		host = start + i
	}
	query := len(href)
	if i := strings.IndexByte(href[path:], '?'); i >= 0 {
		query = path + i
	}
	u.host, u.path, u.query = uint16(host), uint16(path), uint32(query)
	return u
}

// hostStart returns the length of "http://" or "https://", 0 if neither.
func (u URL) hostStart() int {
	switch {
	case strings.HasPrefix(u.href, "https://"):
		return len("https://")
	case strings.HasPrefix(u.href, "http://"):
		return len("http://")
	}
	return 0
}

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.href == "" }

// String returns the canonical form.
func (u URL) String() string { return u.href }

// Scheme returns "http" or "https".
func (u URL) Scheme() string { return u.href[:max(u.hostStart()-len("://"), 0)] }

// Hostname returns the ASCII host name without port or brackets.
func (u URL) Hostname() string {
	if u.path == 0 {
		return ""
	}
	name := u.href[u.hostStart():u.host]
	if len(name) > 1 && name[0] == '[' {
		name = name[1 : len(name)-1]
	}
	return name
}

// Port returns the effective port ("443" when none is written on https).
func (u URL) Port() string {
	switch {
	case u.host != u.path:
		return u.href[u.host+1 : u.path]
	case u.hostStart() == len("https://"):
		return "443"
	default:
		return "80"
	}
}

// HostKey names the host for politeness: the host name, with the port when
// it is written in the canonical URL (so not a scheme's default). http and
// https on their default ports share one key.
func (u URL) HostKey() string {
	if u.path == 0 {
		return ""
	}
	return u.href[u.hostStart():u.path]
}

// Origin returns scheme://host[:port], the unit that owns a robots.txt.
func (u URL) Origin() string { return u.href[:u.path] }

// RequestURI returns path and query as they go on the wire.
func (u URL) RequestURI() string { return u.href[u.path:] }

// Path returns the path, still percent-encoded.
func (u URL) Path() string { return u.href[u.path:u.query] }

// Query returns the raw query without "?".
func (u URL) Query() string {
	if int(u.query) >= len(u.href) {
		return ""
	}
	return u.href[u.query+1:]
}

// Fingerprint returns the identity of u.
func (u URL) Fingerprint() Fingerprint {
	h := xxh3.HashString128(u.href)
	return Fingerprint{h.Hi, h.Lo}
}

// FingerprintBytes is Fingerprint for a canonical form still in a buffer.
func FingerprintBytes(b []byte) Fingerprint {
	h := xxh3.Hash128(b)
	return Fingerprint{h.Hi, h.Lo}
}
