package scope

import (
	"slices"
	"strings"

	"tiptoe/internal/weburl"
)

// A URL's pattern is what it has in common with its siblings: host, path with
// "#" for each run of digits and "~" for each token, and the names of its
// query parameters in order, without session ids. /doc/a7?page=2&lang=en is
// example.com/doc/a#?lang&page.

const (
	maxPattern = 512 // bytes; the rest of a longer one is "*"
	maxKeys    = 16  // query parameters looked at
)

// PatternOf returns the pattern under which a Tracker counts u.
func PatternOf(u weburl.URL) string {
	var buf [maxPattern + 64]byte
	return string(appendPattern(buf[:0], u))
}

func appendPattern(dst []byte, u weburl.URL) []byte {
	dst = append(dst, u.HostKey()...)
	path := u.Path()
	for rest := path[min(1, len(path)):]; ; {
		seg, after, more := strings.Cut(rest, "/")
		dst = append(dst, '/')
		dst = appendSegmentShape(dst, seg)
		if !more || len(dst) > maxPattern {
			break
		}
		rest = after
	}
	if query := u.Query(); query != "" {
		var keys [maxKeys]string
		n := 0
		for q := query; q != "" && n < maxKeys; {
			var key, value string
			key, value, q = nextParam(q)
			if key != "" && !isSession(key, value) && !slices.Contains(keys[:n], key) {
				keys[n] = key
				n++
			}
		}
		slices.Sort(keys[:n])
		for i, k := range keys[:n] {
			sep := byte('&')
			if i == 0 {
				sep = '?'
			}
			dst = appendDigitless(append(dst, sep), k)
		}
	}
	if len(dst) > maxPattern {
		dst = append(dst[:maxPattern], '*')
	}
	return dst
}

func appendSegmentShape(dst []byte, seg string) []byte {
	name, _, _ := strings.Cut(seg, ";")
	if isToken(name) {
		return append(dst, '~')
	}
	return appendDigitless(dst, name)
}

func appendDigitless(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			dst = append(dst, s[i])
			continue
		}
		for i+1 < len(s) && '0' <= s[i+1] && s[i+1] <= '9' {
			i++
		}
		dst = append(dst, '#')
	}
	return dst
}

// appendTree appends the pattern of everything below the first directory,
// example.com/shop/**, or nothing if u is not inside a directory.
func appendTree(dst []byte, u weburl.URL) []byte {
	path := u.Path()
	if path == "" {
		return dst
	}
	first, rest, _ := strings.Cut(path[1:], "/")
	if rest == "" || first == "" || len(first) > maxPattern/2 {
		return dst
	}
	dst = append(append(dst, u.HostKey()...), '/')
	return append(appendSegmentShape(dst, first), "/**"...)
}
