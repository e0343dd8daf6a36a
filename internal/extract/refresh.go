package extract

import "bytes"

// refreshTarget finds the URL in the content of a meta refresh ("5; url=/x"),
// by the steps of the HTML standard. It returns nil when there is none, which
// means: reload this page.
func refreshTarget(v []byte) []byte {
	i := skipSpace(v, 0)
	start := i
	for i < len(v) && '0' <= v[i] && v[i] <= '9' {
		i++
	}
	if i == start && (i == len(v) || v[i] != '.') {
		return nil
	}
	for i < len(v) && ('0' <= v[i] && v[i] <= '9' || v[i] == '.') {
		i++
	}
	if i == len(v) || !isSpace(v[i]) && v[i] != ';' && v[i] != ',' {
		return nil
	}
	i = skipSpace(v, i)
	if i < len(v) && (v[i] == ';' || v[i] == ',') {
		i = skipSpace(v, i+1)
	}
	// "url" without "=" is the start of a URL itself.
	if i+3 <= len(v) && equalFold(v[i:i+3], "url") {
		if j := skipSpace(v, i+3); j < len(v) && v[j] == '=' {
			i = skipSpace(v, j+1)
		}
	}
	ref := v[i:]
	if len(ref) > 0 && (ref[0] == '"' || ref[0] == '\'') {
		ref, _, _ = bytes.Cut(ref[1:], ref[:1])
	}
	return trimRef(ref)
}

func skipSpace(v []byte, i int) int {
	for i < len(v) && isSpace(v[i]) {
		i++
	}
	return i
}
