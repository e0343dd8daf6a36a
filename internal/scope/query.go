package scope

import "strings"

// nextParam cuts the first parameter off a raw query.
func nextParam(q string) (key, value, rest string) {
	param := q
	if i := strings.IndexByte(q, '&'); i >= 0 {
		param, rest = q[:i], q[i+1:]
	}
	key, value, _ = strings.Cut(param, "=")
	return key, value, rest
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// equalFold compares with an ASCII word in lower case.
func equalFold(s, word string) bool { return len(s) == len(word) && hasPrefixFold(s, word) }

func hasPrefixFold(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(s[i]) != word[i] {
			return false
		}
	}
	return true
}

func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if hasPrefixFold(s[i:], word) {
			return true
		}
	}
	return false
}
