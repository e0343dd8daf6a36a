package robots

const upperHex = "0123456789ABCDEF"

// plain are the octets that are compared as they are. Not "%", which begins an
// escape, and not what may not stand in a URL: that is compared escaped.
var plain = func() (t [256]bool) {
	for c := 0x21; c < 0x7f; c++ {
		t[c] = true
	}
	for _, c := range []byte("\"<>\\^`{|}%") {
		t[c] = false
	}
	return t
}()

// unreserved are the characters whose escape means the same as themselves.
var unreserved = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") {
		t[c] = true
	}
	return t
}()

// appendNormal appends the form in which paths and patterns are compared.
// decodeSpecial also decodes "%2A" and "%24": right for paths and for pieces
// of a pattern already split at its wildcards, where "*" and "$" are
// themselves. A "%" that begins no escape becomes "%25", so that the result
// has one reading only.
func appendNormal(dst []byte, s string, decodeSpecial bool) []byte {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && plain[s[i]] {
			i++
		}
		dst = append(dst, s[start:i]...)
		if i == len(s) {
			break
		}
		c, escaped := s[i], false
		if c == '%' {
			if c, escaped = unescape(s, i); !escaped {
				c = '%'
			}
		}
		if escaped && (unreserved[c] || decodeSpecial && (c == '*' || c == '$')) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
		if escaped {
			i += 2
		}
		i++
	}
	return dst
}

// queryReserved are the characters that RFC 9309's example encodes in a query
// before comparing; here both sides are decoded instead, which is the same
// comparison.
const queryReserved = ":/?[]@"

// appendDecodedQuery copies normalised text and decodes the escapes of
// queryReserved behind its first "?".
func appendDecodedQuery(dst, s []byte) []byte {
	inQuery := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if v := fromHex(s[i+1])<<4 | fromHex(s[i+2]); inQuery && isQueryReserved(v) {
				dst = append(dst, v)
			} else {
				dst = append(dst, s[i:i+3]...)
			}
			i += 2
			continue
		}
		inQuery = inQuery || c == '?'
		dst = append(dst, c)
	}
	return dst
}

func isQueryReserved(c byte) bool {
	switch c {
	case ':', '/', '?', '[', ']', '@':
		return true
	}
	return false
}

// unescape reads the escape at s[i], a "%".
func unescape(s string, i int) (byte, bool) {
	if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
		return 0, false
	}
	return fromHex(s[i+1])<<4 | fromHex(s[i+2]), true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func fromHex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
