package ledger

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Printable makes a stranger's text safe to show on one line of a terminal,
// in a table or in a log: no escape sequence, no control character, nothing
// that turns the direction of the text or is there and cannot be seen. Line
// breaks and tabs become spaces. A text wider than max terminal cells is cut
// and ends in an ellipsis; max 0 is no bound.
func Printable(s string, max int) string {
	if plain(s) {
		if max <= 0 || len(s) <= max {
			return s
		}
		return s[:max-1] + "…"
	}
	var sb strings.Builder
	cells, fit := 0, 0 // fit: bytes that leave room for the ellipsis
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == 0x1b || r == 0x9b || r == 0x9d {
			i += sequence(s[i:], r, n)
			continue
		}
		i += n
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			r = ' '
		case unicode.IsControl(r) || hidden(r):
			continue
		}
		w := cellWidth(r)
		if max > 0 && cells+w > max {
			return sb.String()[:fit] + "…"
		}
		cells += w
		sb.WriteRune(r)
		if cells <= max-1 {
			fit = sb.Len()
		}
	}
	return sb.String()
}

// Cells is the width of a printable text on a terminal.
func Cells(s string) int {
	if plain(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += cellWidth(r)
	}
	return n
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// sequence returns the length of the terminal escape sequence at the start
// of s, or that of its first character alone when the sequence does not end:
// an unclosed one must not swallow the rest of the text.
func sequence(s string, first rune, n int) int {
	rest := s[n:]
	kind := first
	if first == 0x1b {
		if rest == "" {
			return n
		}
		switch rest[0] {
		case '[':
			kind = 0x9b
		case ']', 'P', 'X', '^', '_':
			kind = 0x9d
		default:
			if rest[0] >= 0x20 && rest[0] < 0x7f {
				return n + 1
			}
			return n
		}
		n, rest = n+1, rest[1:]
	}
	const longest = 4096
	for i := 0; i < len(rest) && i < longest; i++ {
		b := rest[i]
		switch {
		case kind == 0x9b && b >= 0x40 && b <= 0x7e: // a final byte ends a control sequence
			return n + i + 1
		case kind == 0x9b && (b < 0x20 || b > 0x3f):
			return n
		case kind == 0x9d && b == 0x07:
			return n + i + 1
		case kind == 0x9d && b == 0x1b && i+1 < len(rest) && rest[i+1] == '\\':
			return n + i + 2
		}
	}
	return n
}

// hidden characters change what people read without being seen: marks of
// direction, separators without width, tags.
func hidden(r rune) bool {
	switch {
	case r == 0x00ad, r == 0x061c, r == 0x180e, r == 0xfeff,
		r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e,
		r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb,
		r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

func cellWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
