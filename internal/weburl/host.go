package weburl

import (
	"bytes"
	"net/netip"
	"strconv"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// uts46 is the standard's "domain to ASCII" with beStrict false: hyphens and
// lengths are not checked (names such as r3---sn-x.example are in use), the
// Bidi rule and, by MapForLookup, joiners are.
var uts46 = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
	idna.VerifyDNSLength(false),
)

// maxMapped bounds names that go through the IDNA tables, where the cost of a
// label grows with the square of its length. DNS ends at 253 bytes.
const maxMapped = 1024

// appendHostPort appends host[:port] in canonical form.
func appendHostPort(dst, auth []byte, kind scheme) ([]byte, error) {
	if len(auth) == 0 {
		return nil, errEmptyHost
	}
	host, port := auth, []byte(nil)
	if auth[0] == '[' {
		i := bytes.IndexByte(auth, ']')
		if i < 0 || i+1 < len(auth) && auth[i+1] != ':' {
			return nil, errIPv6
		}
		host, port = auth[:i+1], auth[i+1:]
	} else if i := bytes.IndexByte(auth, ':'); i >= 0 {
		host, port = auth[:i], auth[i:]
	}
	if len(host) == 0 {
		return nil, errEmptyHost
	}
	var err error
	if host[0] == '[' {
		dst, err = appendIPv6(dst, host[1:len(host)-1])
	} else {
		dst, err = appendHost(dst, host)
	}
	if err != nil || len(port) <= 1 {
		return dst, err
	}
	n, err := parsePort(port[1:])
	if err == nil && n != kind.defaultPort() {
		dst = strconv.AppendInt(append(dst, ':'), int64(n), 10)
	}
	return dst, err
}

func parsePort(port []byte) (int, error) {
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return 0, portError(port, "is not a number")
		}
		if n = n*10 + int(c-'0'); n > 0xffff {
			return 0, portError(port, "is out of range")
		}
	}
	return n, nil
}

// appendHost appends a domain name or IPv4 address. Ordinary ASCII names are
// lower-cased in place; percent signs, other alphabets and xn-- labels take
// the long way through the IDNA tables.
func appendHost(dst, host []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, host...)
	name := dst[start:]
	for i, c := range name {
		switch hostTable[c] {
		case upper:
			name[i] = c | 0x20
		case decode:
			return appendHostSlowly(dst[:start], host)
		case forbid:
			return nil, hostError(host, "character "+strconv.QuoteRune(rune(c))+" is not allowed")
		}
	}
	if bytes.Contains(name, []byte("xn--")) {
		return appendHostSlowly(dst[:start], host)
	}
	if endsInNumber(name) {
		return appendIPv4(dst[:start], name)
	}
	return dst, nil
}

func appendHostSlowly(dst, host []byte) ([]byte, error) {
	decoded := percentDecode(nil, host)
	if !utf8.Valid(decoded) {
		return nil, hostError(host, "not UTF-8")
	}
	if len(decoded) > maxMapped {
		return nil, hostError(host, "too long for a name in other alphabets")
	}
	name, err := toASCII(string(decoded))
	if err != nil {
		return nil, hostError(host, err.Error())
	}
	if len(name) > maxMapped {
		return nil, hostError(host, "too long for a name in other alphabets")
	}
	if name == "" {
		return nil, errEmptyHost
	}
	for i := range len(name) {
		if hostTable[name[i]] != plain {
			return nil, hostError(host, "character "+strconv.QuoteRune(rune(name[i]))+" is not allowed")
		}
	}
	if endsInNumber([]byte(name)) {
		return appendIPv4(dst, []byte(name))
	}
	return append(dst, name...), nil
}

// toASCII maps a name to its ASCII form. Names that are ASCII already and
// have no xn-- label are only lower-cased: the standard exempts them from the
// checks, so that odd names which work in DNS work here.
func toASCII(name string) (string, error) {
	lower := []byte(name)
	ascii := true
	for i, c := range lower {
		if c >= 0x80 {
			ascii = false
			break
		}
		if 'A' <= c && c <= 'Z' {
			lower[i] = c | 0x20
		}
	}
	if ascii && !bytes.Contains(lower, []byte("xn--")) {
		return string(lower), nil
	}
	mapped, err := uts46.ToASCII(name)
	if err != nil {
		return "", err
	}
	// Mapping a mapped name must change nothing, or two passes over one URL
	// would disagree on its identity.
	again, err := uts46.ToASCII(mapped)
	if err != nil {
		return "", err
	}
	if again != mapped {
		return "", errUnstable
	}
	return mapped, nil
}

var errUnstable = &Error{BadHost, "the name has no stable ASCII form"}

// appendIPv6 appends an address, given without its brackets, in the
// standard's form: unlike netip's, it never ends in a dotted IPv4 address.
func appendIPv6(dst, s []byte) ([]byte, error) {
	if bytes.IndexByte(s, '%') >= 0 || bytes.IndexByte(s, ':') < 0 {
		return nil, errIPv6
	}
	ip, err := netip.ParseAddr(string(s))
	if err != nil {
		return nil, errIPv6
	}
	raw := ip.As16()
	var piece [8]uint16
	for i := range piece {
		piece[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	// The first of the longest runs of two or more zeros becomes "::".
	from, length := -1, 1
	for i := 0; i < 8; i++ {
		j := i
		for j < 8 && piece[j] == 0 {
			j++
		}
		if j-i > length {
			from, length = i, j-i
		}
		i = max(i, j-1)
	}
	dst = append(dst, '[')
	for i := 0; i < 8; i++ {
		if i == from {
			dst = append(dst, "::"...)
			i += length - 1
			continue
		}
		if i > 0 && dst[len(dst)-1] != ':' {
			dst = append(dst, ':')
		}
		dst = strconv.AppendUint(dst, uint64(piece[i]), 16)
	}
	return append(dst, ']'), nil
}
