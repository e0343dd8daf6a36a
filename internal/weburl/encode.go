package weburl

import "unicode/utf8"

// What a byte does in a component. Zero is the common case: it is copied.
const (
	plain    = iota
	encode   // an ASCII byte that is percent-encoded
	wide     // part of a UTF-8 sequence, or garbage
	slash    // ends a path segment: "/" or "\"
	question // ends the path
	upper    // a host's letter to be lower-cased
	decode   // a host's byte that needs the long way: "%" and non-ASCII
	forbid   // may not be in a host name
)

type table [256]uint8

// The sets are named in section 1.3 of the URL Standard: C0 control, then
// query, special-query and path each add to it.
var pathTable, queryTable, hostTable = func() (p, q, h table) {
	for c := range 256 {
		switch {
		case c < 0x20 || c == 0x7f:
			p[c], q[c], h[c] = encode, encode, forbid
		case c >= 0x80:
			p[c], q[c], h[c] = wide, wide, decode
		case 'A' <= c && c <= 'Z':
			h[c] = upper
		}
	}
	for _, c := range " \"<>" {
		p[c], q[c] = encode, encode
	}
	q['\''] = encode
	for _, c := range "^`{}" {
		p[c] = encode
	}
	p['/'], p['\\'], p['?'] = slash, slash, question
	// "/", "\", "?" and "@" never reach the host parser.
	for _, c := range " #/:<>?@[\\]^|" {
		h[c] = forbid
	}
	h['%'] = decode
	return p, q, h
}()

const upperHex = "0123456789ABCDEF"

func appendEncoded(dst []byte, c byte) []byte {
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// appendWide percent-encodes the character at the start of s, which begins
// with a byte above 0x7f, and returns its length. Ill-formed input becomes
// one U+FFFD for each maximal part of a sequence, as the Encoding Standard's
// decoder has it.
func appendWide(dst, s []byte) ([]byte, int) {
	r, n := utf8.DecodeRune(s)
	if r == utf8.RuneError && n <= 1 {
		return append(dst, "%EF%BF%BD"...), illFormed(s)
	}
	for _, c := range s[:n] {
		dst = appendEncoded(dst, c)
	}
	return dst, n
}

// illFormed returns how many bytes at the start of s, which is not valid
// UTF-8 there, stand for one replacement character: the longest prefix that
// some valid sequence begins with, or one byte.
func illFormed(s []byte) int {
	need, low, high := 0, byte(0x80), byte(0xbf)
	switch c := s[0]; {
	case 0xc2 <= c && c <= 0xdf:
		need = 1
	case 0xe0 <= c && c <= 0xef:
		need = 2
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case 0xf0 <= c && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for n <= need && n < len(s) && low <= s[n] && s[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}

// appendQuery appends a query, without its "?".
func appendQuery(dst, q []byte) []byte {
	for i := 0; i < len(q); {
		j := i
		for j < len(q) && queryTable[q[j]] == plain {
			j++
		}
		dst = append(dst, q[i:j]...)
		if j == len(q) {
			break
		}
		n := 1
		if queryTable[q[j]] == wide {
			dst, n = appendWide(dst, q[j:])
		} else {
			dst = appendEncoded(dst, q[j])
		}
		i = j + n
	}
	return dst
}

// percentDecode replaces each %XX; a "%" without two hex digits stays.
func percentDecode(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			h, l := unhex(s[i+1]), unhex(s[i+2])
			if h >= 0 && l >= 0 {
				dst = append(dst, byte(h<<4|l))
				i += 2
				continue
			}
		}
		dst = append(dst, s[i])
	}
	return dst
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
