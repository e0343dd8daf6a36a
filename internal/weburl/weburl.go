// Package weburl answers: which URL is this, and whose is it?
package weburl

import (
	"errors"
	"net/url"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/net/publicsuffix"
)

// URL is a canonical absolute http or https URL without fragment and without
// credentials. The zero value is invalid. It is comparable.
type URL struct{ href string }

// Fingerprint is the 128-bit identity of a canonical URL.
type Fingerprint struct{ Hi, Lo uint64 }

// Parse normalises an absolute URL.
func Parse(raw string) (URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return URL{}, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return URL{}, errors.New("not http or https")
	}
	u.Fragment, u.RawFragment, u.User = "", "", nil
	if u.Path == "" {
		u.Path = "/"
	}
	return URL{u.String()}, nil
}

// FromCanonical wraps a string that an earlier Parse or Resolve produced.
func FromCanonical(href string) URL { return URL{href} }

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.href == "" }

// String returns the canonical form.
func (u URL) String() string { return u.href }

// Scheme returns "http" or "https".
func (u URL) Scheme() string { s, _, _ := strings.Cut(u.href, ":"); return s }

func (u URL) parsed() *url.URL { p, _ := url.Parse(u.href); return p }

// Hostname returns the ASCII host name without port or brackets.
func (u URL) Hostname() string { return u.parsed().Hostname() }

// Port returns the effective port ("443" when none is written on https).
func (u URL) Port() string {
	if p := u.parsed().Port(); p != "" {
		return p
	}
	if u.Scheme() == "https" {
		return "443"
	}
	return "80"
}

// HostKey names the host for politeness: the host name, with the port when
// it is written in the canonical URL (so not a scheme's default). http and
// https on their default ports share one key.
func (u URL) HostKey() string { return u.parsed().Host }

// Origin returns scheme://host[:port], the unit that owns a robots.txt.
func (u URL) Origin() string { return u.Scheme() + "://" + u.HostKey() }

// RequestURI returns path and query as they go on the wire.
func (u URL) RequestURI() string { return u.parsed().RequestURI() }

// Path returns the path, still percent-encoded.
func (u URL) Path() string { return u.parsed().EscapedPath() }

// Query returns the raw query without "?".
func (u URL) Query() string { return u.parsed().RawQuery }

// Domain returns the registrable domain of the host; for IP addresses and
// names that are a public suffix themselves, the host name.
func (u URL) Domain() string { return DomainOf(u.Hostname()) }

// DomainOf returns the registrable domain of a bare host name.
func DomainOf(hostname string) string {
	d, err := publicsuffix.EffectiveTLDPlusOne(hostname)
	if err != nil {
		return hostname
	}
	return d
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

// Base resolves many references against one URL. It is not safe for
// concurrent use.
type Base struct{ u *url.URL }

// NewBase prepares to resolve references against u.
func NewBase(u URL) *Base { return &Base{u.parsed()} }

// AppendResolve appends to dst the canonical form of ref (without fragment
// and credentials) and returns the extended buffer.
func (b *Base) AppendResolve(dst, ref []byte) ([]byte, error) {
	r, err := b.u.Parse(string(ref))
	if err != nil {
		return dst, err
	}
	c, err := Parse(r.String())
	if err != nil {
		return dst, err
	}
	return append(dst, c.href...), nil
}

// Resolve is AppendResolve for one reference.
func (b *Base) Resolve(ref string) (URL, error) {
	out, err := b.AppendResolve(nil, []byte(ref))
	if err != nil {
		return URL{}, err
	}
	return URL{string(out)}, nil
}
