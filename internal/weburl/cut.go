package weburl

import "bytes"

// scheme is all that this room wants to know of one.
type scheme uint8

const (
	noScheme scheme = iota
	httpScheme
	httpsScheme
	otherScheme
)

func (k scheme) prefix() string {
	if k == httpsScheme {
		return "https://"
	}
	return "http://"
}

func (k scheme) defaultPort() int {
	if k == httpsScheme {
		return 443
	}
	return 80
}

func (u URL) scheme() scheme {
	switch u.hostStart() {
	case len("https://"):
		return httpsScheme
	case len("http://"):
		return httpScheme
	}
	return noScheme
}

// splitScheme cuts "name:" off the front, if there is one.
func splitScheme(s []byte) (scheme, []byte) {
	if len(s) == 0 || s[0]|0x20 < 'a' || s[0]|0x20 > 'z' {
		return noScheme, s
	}
	for i, c := range s {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '+', c == '-', c == '.':
		case c == ':' && i == 4 && foldedHTTP(s):
			return httpScheme, s[5:]
		case c == ':' && i == 5 && foldedHTTP(s) && s[4]|0x20 == 's':
			return httpsScheme, s[6:]
		case c == ':':
			return otherScheme, s[i+1:]
		default:
			return noScheme, s
		}
	}
	return noScheme, s
}

func foldedHTTP(s []byte) bool {
	return s[0]|0x20 == 'h' && s[1]|0x20 == 't' && s[2]|0x20 == 't' && s[3]|0x20 == 'p'
}

// trim removes controls and spaces at both ends.
func trim(s []byte) []byte {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// cutFragment drops the first "#" and what follows: whatever state the
// standard's parser is in, that character ends it.
func cutFragment(s []byte) []byte {
	if i := bytes.IndexByte(s, '#'); i >= 0 {
		return s[:i]
	}
	return s
}

func hasTabs(s []byte) bool {
	return bytes.IndexByte(s, '\n') >= 0 || bytes.IndexByte(s, '\t') >= 0 || bytes.IndexByte(s, '\r') >= 0
}

func appendWithoutTabs(dst, s []byte) []byte {
	for _, c := range s {
		if c != '\t' && c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}
