package weburl

import (
	"bytes"
	"strings"
)

// Base resolves many references against one URL. It is not safe for
// concurrent use. The zero Base resolves absolute URLs only.
//
// The standard describes its parser as a machine that walks one code point at
// a time through twenty states. For the two schemes of the web the same
// language is a handful of cuts, made here in the standard's order: trim,
// fragment, tabs and newlines, scheme, authority, path, query. Each part is
// appended straight to the caller's buffer.
type Base struct {
	u       URL
	dir     int    // end of the path without its last segment and that slash
	auth    string // host[:port] as canonical
	scratch []byte // a reference without its tabs and newlines
}

// NewBase prepares to resolve references against u.
func NewBase(u URL) *Base {
	b := &Base{u: u, auth: u.HostKey(), dir: int(u.path)}
	if i := strings.LastIndexByte(u.Path(), '/'); i >= 0 {
		b.dir += i
	}
	return b
}

// AppendResolve appends to dst the canonical form of ref (without fragment
// and credentials) and returns the extended buffer; on an error, dst as it
// was. The memory of ref and dst must not overlap.
func (b *Base) AppendResolve(dst, ref []byte) ([]byte, error) {
	out, err := b.resolve(dst, ref)
	if err != nil {
		return dst, err
	}
	if len(out)-len(dst) > MaxLength {
		return dst, errTooLong
	}
	return out, nil
}

// Resolve is AppendResolve for one reference.
func (b *Base) Resolve(ref string) (URL, error) {
	var in, out [512]byte
	got, err := b.AppendResolve(out[:0], append(in[:0], ref...))
	if err != nil {
		return URL{}, err
	}
	return FromCanonical(string(got)), nil
}

func (b *Base) resolve(dst, ref []byte) ([]byte, error) {
	ref = cutFragment(trim(ref))
	if len(ref) > MaxLength {
		// A data: URL of a megabyte is refused for what it is.
		if kind, rest := splitScheme(ref); kind == otherScheme {
			return nil, schemeError(ref[:len(ref)-len(rest)-1])
		}
		return nil, errTooLong
	}
	if hasTabs(ref) {
		b.scratch = appendWithoutTabs(b.scratch[:0], ref)
		ref = b.scratch
	}

	kind, rest := splitScheme(ref)
	own := b.u.scheme()
	switch {
	case kind == otherScheme:
		return nil, schemeError(ref[:len(ref)-len(rest)-1])
	case kind == noScheme && own == noScheme:
		return nil, errNoScheme
	case kind != noScheme && kind != own:
		return b.appendAuthority(dst, skipSlashes(rest), kind)
	}
	// From here on ref is relative, or has the base's own scheme, which the
	// standard treats alike ("http:page" on an http page is "page").
	switch href, floor := b.u.href, len(dst)+int(b.u.path); {
	case len(rest) == 0:
		return append(dst, href...), nil
	case rest[0] == '?':
		dst = append(dst, href[:b.u.query]...)
		return appendQuery(append(dst, '?'), rest[1:]), nil
	case isSlash(rest[0]) && len(rest) > 1 && isSlash(rest[1]):
		return b.appendAuthority(dst, skipSlashes(rest), own)
	case isSlash(rest[0]):
		return appendPath(append(dst, href[:b.u.path]...), floor, rest[1:]), nil
	default:
		return appendPath(append(dst, href[:b.dir]...), floor, rest), nil
	}
}

// appendAuthority appends scheme, host and port, and the path and query that
// follow them in s.
func (b *Base) appendAuthority(dst, s []byte, kind scheme) ([]byte, error) {
	dst = append(dst, kind.prefix()...)
	end := 0
	for end < len(s) && s[end] != '/' && s[end] != '\\' && s[end] != '?' {
		end++
	}
	auth, rest := s[:end], s[end:]
	if i := bytes.LastIndexByte(auth, '@'); i >= 0 {
		auth = auth[i+1:]
	}
	// A link to the page's own host needs no second look, unless a written
	// port could be the default of the other scheme.
	known := string(auth) == b.auth && len(auth) > 0 && (kind == b.u.scheme() || b.u.host == b.u.path)
	if known {
		dst = append(dst, auth...)
	} else {
		var err error
		if dst, err = appendHostPort(dst, auth, kind); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 && isSlash(rest[0]) {
		rest = rest[1:]
	}
	return appendPath(dst, len(dst), rest), nil
}

// appendPath appends the segments in p, and a query if one follows, to the
// path that dst[floor:] holds so far, which ends before a slash. Dot segments
// never reach above floor.
func appendPath(dst []byte, floor int, p []byte) []byte {
	i := 0
	for {
		dst = append(dst, '/')
		seg := len(dst)
		var class uint8
		for {
			j := i
			for j < len(p) && pathTable[p[j]] == plain {
				j++
			}
			dst = append(dst, p[i:j]...)
			if i = j; i == len(p) {
				class = question
				break
			}
			if class = pathTable[p[i]]; class >= slash {
				break
			}
			n := 1
			if class == wide {
				dst, n = appendWide(dst, p[i:])
			} else {
				dst = appendEncoded(dst, p[i])
			}
			i += n
		}
		if dots := countDots(dst[seg:]); dots > 0 {
			dst = dst[:seg-1]
			if dots == 2 && len(dst) > floor {
				dst = dst[:floor+bytes.LastIndexByte(dst[floor:], '/')]
			}
			if class != slash {
				dst = append(dst, '/')
			}
		}
		if class != slash {
			break
		}
		i++
	}
	if i < len(p) {
		dst = appendQuery(append(dst, '?'), p[i+1:])
	}
	return dst
}

// countDots returns 1 for "." and 2 for "..", however they are spelt, and 0
// for every other segment.
func countDots(seg []byte) int {
	const longest = len("%2e%2e")
	if len(seg) == 0 || len(seg) > longest || seg[0] != '.' && seg[0] != '%' {
		return 0
	}
	dots := 0
	for len(seg) > 0 {
		switch {
		case seg[0] == '.':
			seg = seg[1:]
		case len(seg) >= 3 && seg[0] == '%' && seg[1] == '2' && seg[2]|0x20 == 'e':
			seg = seg[3:]
		default:
			return 0
		}
		dots++
	}
	if dots > 2 {
		return 0
	}
	return dots
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

func skipSlashes(s []byte) []byte {
	for len(s) > 0 && isSlash(s[0]) {
		s = s[1:]
	}
	return s
}
