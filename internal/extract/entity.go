package extract

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// appendUnescaped appends v with its character references decoded by the
// rules for attribute values: a name without semicolon is a reference only if
// it is one of HTML's oldest and neither "=" nor a letter or digit follows, so
// that ?a=1&copy=2 survives.
func appendUnescaped(dst, v []byte) []byte {
	for {
		k := bytes.IndexByte(v, '&')
		if k < 0 {
			return append(dst, v...)
		}
		dst = append(dst, v[:k]...)
		v = v[k:]
		first, second, n := reference(v)
		if n == 0 {
			dst, n = append(dst, '&'), 1
		} else {
			dst = utf8.AppendRune(dst, first)
			if second != 0 {
				dst = utf8.AppendRune(dst, second)
			}
		}
		v = v[n:]
	}
}

// reference reads the character reference at the start of b, which is "&".
// n is its length, 0 if there is none; second is 0 unless it stands for two
// characters.
func reference(b []byte) (first, second rune, n int) {
	if len(b) >= 3 && b[1] == '#' {
		first, n = numeric(b)
		return first, 0, n
	}
	const longestName = 32 // CounterClockwiseContourIntegral has 31
	i := 1
	for i < len(b) && i <= longestName && isAlnum(b[i]) {
		i++
	}
	name := b[1:i]
	switch {
	case len(name) == 0:
		return 0, 0, 0
	case i < len(b) && b[i] == ';':
		first, second = named(name)
		if first == 0 {
			return 0, 0, 0
		}
		return first, second, i + 1
	case i < len(b) && (b[i] == '=' || isAlnum(b[i])):
		return 0, 0, 0
	}
	if first = legacy(name); first == 0 {
		return 0, 0, 0
	}
	return first, 0, i
}

func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// named finds a reference written with its semicolon.
func named(name []byte) (first, second rune) {
	if r := legacy(name); r != 0 {
		return r, 0
	}
	switch string(name) {
	case "apos":
		return '\'', 0
	case "semi":
		return ';', 0
	}
	// The library decodes prefixes too ("&notit;" to "¬it;"); a semicolon
	// left over shows that it did, or that there was nothing to decode.
	v := html.UnescapeString("&" + string(name) + ";")
	if v[len(v)-1] == ';' {
		return 0, 0
	}
	first, n := utf8.DecodeRuneInString(v)
	if n < len(v) {
		second, _ = utf8.DecodeRuneInString(v[n:])
	}
	return first, second
}

// legacyNames are the names of U+00A0 to U+00FF, in order. HTML knows them,
// and the few in legacy, without a semicolon.
var legacyNames = [96]string{
	"nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect",
	"uml", "copy", "ordf", "laquo", "not", "shy", "reg", "macr",
	"deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot",
	"cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
	"Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil",
	"Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml",
	"ETH", "Ntilde", "Ograve", "Oacute", "Ocirc", "Otilde", "Ouml", "times",
	"Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig",
	"agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
	"egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml",
	"eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide",
	"oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
}

func legacy(name []byte) rune {
	switch string(name) {
	case "amp", "AMP":
		return '&'
	case "lt", "LT":
		return '<'
	case "gt", "GT":
		return '>'
	case "quot", "QUOT":
		return '"'
	case "COPY":
		return '©'
	case "REG":
		return '®'
	}
	for i, n := range legacyNames {
		if n == string(name) {
			return rune(0xa0 + i)
		}
	}
	return 0
}

// c1 is what the numbers 0x80 to 0x9f stand for: windows-1252, because that
// is what authors meant.
var c1 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
}

// numeric reads "&#123;" or "&#x7b;"; the semicolon may be missing.
func numeric(b []byte) (r rune, n int) {
	i, base := 2, rune(10)
	if b[i]|0x20 == 'x' {
		i, base = 3, 16
	}
	start := i
	for ; i < len(b); i++ {
		d := digit(b[i])
		if d >= base {
			break
		}
		r = min(r*base+d, utf8.MaxRune+1)
	}
	if i == start {
		return 0, 0
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	switch {
	case r == 0 || r > utf8.MaxRune || 0xd800 <= r && r <= 0xdfff:
		r = utf8.RuneError
	case 0x80 <= r && r <= 0x9f:
		r = c1[r-0x80]
	}
	return r, i
}

func digit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return 99
}
