package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// maxMarks bounds the combining marks kept on one base character. Living
// scripts need at most a few; towers of them are an attack on the lines above.
const maxMarks = 4

// Clean makes a stranger's text safe to show on a terminal and cuts it to
// max columns (max <= 0: no cut). Line breaks, tabs and exotic spaces become
// a space; control characters (C0, DEL, C1, so every escape sequence) and
// broken UTF-8 become U+FFFD; invisible characters (bidi controls, zero
// width, variation selectors, tags, fillers, soft hyphens) are removed. A cut
// text ends in "…", which is inside max.
func Clean(s string, max int) string {
	if plainASCII(s) && (max <= 0 || len(s) <= max) {
		return s
	}
	var b strings.Builder
	var cols, marks int
	// cut is where the text ends if it turns out not to fit: one column is
	// kept for the ellipsis.
	cut := 0
	for _, r := range s {
		r = visible(r)
		if r < 0 {
			continue
		}
		w := runeWidth(r)
		if w == 0 {
			if marks++; marks > maxMarks || b.Len() == 0 {
				continue
			}
		} else {
			marks = 0
		}
		if max > 0 && cols+w > max {
			return b.String()[:cut] + "…"
		}
		b.WriteRune(r)
		cols += w
		if cols < max {
			cut = b.Len()
		}
	}
	return b.String()
}

// visible maps a rune to what may be drawn for it, -1 for nothing.
func visible(r rune) rune {
	switch {
	case r >= 0x20 && r < 0x7f:
		return r
	case r == '\n', r == '\t', r == '\r', r == '\v', r == '\f', r == 0x85:
		return ' '
	case r == utf8.RuneError, unicode.IsControl(r):
		return utf8.RuneError
	case unicode.Is(unicode.Zs, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return ' '
	case invisible(r):
		return -1
	case !unicode.IsPrint(r):
		// Format characters vanish; private use and unassigned code points
		// have no known width.
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return utf8.RuneError
	}
	return r
}

// invisible lists what Unicode counts as a letter, mark or symbol although
// it draws nothing or changes how its neighbour is drawn.
func invisible(r rune) bool {
	switch {
	case r == 0x034f, // combining grapheme joiner
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // hangul fillers
		r == 0x17b4, r == 0x17b5, // khmer inherent vowels
		r == 0x2800,                // blank braille
		r >= 0x180b && r <= 0x180f, // mongolian selectors
		r >= 0xfe00 && r <= 0xfe0f, // variation selectors
		r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// runeWidth is the number of columns of one visible rune. Widths are summed
// rune by rune, as most terminals do; joined sequences do not survive Clean.
func runeWidth(r rune) int {
	if r >= 0x20 && r < 0x7f || r == utf8.RuneError {
		return 1
	}
	return displaywidth.Rune(r)
}

// cols is the display width of a cleaned text.
func cols(s string) int {
	if plainASCII(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// cleanMiddle is Clean, but cuts in the middle: a URL's host and its last
// segment say more than what lies between.
func cleanMiddle(s string, max int) string {
	s = Clean(s, 0)
	if max <= 0 || cols(s) <= max {
		return s
	}
	if max < 12 {
		return Clean(s, max)
	}
	headCols := (max - 1) * 3 / 5
	head, n := 0, 0
	for i, r := range s {
		if w := runeWidth(r); n+w > headCols {
			head = i
			break
		} else {
			n += w
		}
	}
	tail, left := len(s), max-1-n
	for tail > head {
		r, size := utf8.DecodeLastRuneInString(s[:tail])
		if left -= runeWidth(r); left < 0 {
			break
		}
		tail -= size
	}
	// A tail must not begin with a mark that would land on the ellipsis.
	for tail < len(s) {
		r, size := utf8.DecodeRuneInString(s[tail:])
		if runeWidth(r) > 0 {
			break
		}
		tail += size
	}
	return s[:head] + "…" + s[tail:]
}

// wrapText cleans a text and breaks it into at most rows rows of a width, at
// spaces where there are any; the last row is cut if there is still more.
func wrapText(s string, width, rows int) []string {
	s = Clean(s, 0)
	var out []string
	for len(out) < rows-1 && cols(s) > width {
		end, space, n := 0, -1, 0
		for i, r := range s {
			if n += runeWidth(r); n > width {
				if r == ' ' {
					space = i
				}
				break
			}
			if end = i + utf8.RuneLen(r); r == ' ' {
				space = i
			}
		}
		if space > end/2 {
			out, s = append(out, s[:space]), s[space+1:]
			continue
		}
		if end == 0 { // narrower than one character
			break
		}
		out, s = append(out, s[:end]), s[end:]
	}
	return append(out, Clean(s, width))
}
