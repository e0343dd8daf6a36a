package sitemap

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// nameOf returns the name a tag's inside starts with.
func nameOf(raw []byte) []byte {
	for i, c := range raw {
		if isSpace(c) || c == '/' || c == '<' || c == '=' || c == '"' || c == '\'' {
			return raw[:i]
		}
	}
	return raw
}

func splitName(name []byte) (prefix, local []byte) {
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return nil, name
}

// hash is FNV-1a: names are short, and a collision only hides a mismatch.
func hash(name []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range name {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// attribute finds an attribute inside a tag and returns its raw value.
func attribute(raw []byte, name string) ([]byte, bool) {
	i := len(nameOf(raw))
	for i < len(raw) {
		for i < len(raw) && (isSpace(raw[i]) || raw[i] == '/') {
			i++
		}
		start := i
		for i < len(raw) && !isSpace(raw[i]) && raw[i] != '=' {
			i++
		}
		key := raw[start:i]
		for i < len(raw) && isSpace(raw[i]) {
			i++
		}
		if i == len(raw) || raw[i] != '=' {
			continue
		}
		i++
		for i < len(raw) && isSpace(raw[i]) {
			i++
		}
		if i == len(raw) {
			break
		}
		var value []byte
		if q := raw[i]; q == '"' || q == '\'' {
			end := bytes.IndexByte(raw[i+1:], q)
			if end < 0 {
				break
			}
			value = raw[i+1 : i+1+end]
			i += end + 2
		} else {
			start := i
			for i < len(raw) && !isSpace(raw[i]) {
				i++
			}
			value = raw[start:i]
		}
		if string(key) == name {
			return value, true
		}
	}
	return nil, false
}

// appendUnescaped decodes references that end in a semicolon. Others are
// left: "?a=1&copy=2", though malformed, is meant as it stands.
func appendUnescaped(dst, v []byte) []byte {
	for {
		k := bytes.IndexByte(v, '&')
		if k < 0 {
			return append(dst, v...)
		}
		dst = append(dst, v[:k]...)
		v = v[k:]
		n := 1
		for n < len(v) && n < 33 && (isAlnum(v[n]) || n == 1 && v[n] == '#') {
			n++
		}
		switch {
		case n == len(v) || v[n] != ';' || n == 1:
			dst = append(dst, v[:n]...)
		case string(v[:n]) == "&amp":
			dst = append(dst, '&')
			n++
		default:
			n++
			dst = append(dst, character(string(v[:n]))...)
		}
		v = v[n:]
	}
}

// character decodes one reference. The library also decodes prefixes
// ("&copyright;"); a semicolon left over gives that away.
func character(ref string) string {
	if v := html.UnescapeString(ref); !strings.HasSuffix(v, ";") || ref == "&semi;" || ref == "&#59;" {
		return v
	}
	return ref
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// cleanLoc trims a URL and makes it valid UTF-8; what holds control
// characters is no URL.
func cleanLoc(v []byte) string {
	v = bytes.TrimSpace(v)
	for _, c := range v {
		if c < ' ' && !isSpace(c) || c == 0x7f {
			return ""
		}
	}
	if !utf8.Valid(v) {
		return strings.ToValidUTF8(string(v), "\ufffd")
	}
	return string(v)
}
