package tui

import "strings"

// style is a role, not a colour; the sixteen colours of the terminal's own
// theme are used, so that the view fits light and dark backgrounds.
type style uint8

const (
	plain  style = iota
	strong       // the numbers to look at first
	faint        // labels, rules, the unimportant
	good
	info
	warn
	bad
)

var sgr = [...]string{
	plain: "", strong: "1", faint: "2", good: "32", info: "36", warn: "33", bad: "31",
}

type span struct {
	style style
	text  string
}

// line is one row of a picture: styled, cleaned text of known width.
type line struct {
	spans []span
	cols  int
}

// add appends text. This is the one door to the screen: whatever comes in is
// cleaned, so no caller can forget it.
func (l *line) add(st style, text string) {
	text = Clean(text, 0)
	if text == "" {
		return
	}
	l.cols += cols(text)
	if n := len(l.spans); n > 0 && l.spans[n-1].style == st {
		l.spans[n-1].text += text
		return
	}
	l.spans = append(l.spans, span{st, text})
}

// to moves the pen to a column, if it is not beyond it already.
func (l *line) to(col int) {
	if n := col - l.cols; n > 0 {
		l.add(plain, strings.Repeat(" ", n))
	}
}

// right adds text that ends at a column.
func (l *line) right(col int, st style, text string) {
	l.to(col - cols(Clean(text, 0)))
	l.add(st, text)
}

// join appends another line.
func (l *line) join(other line) {
	for _, s := range other.spans {
		l.add(s.style, s.text)
	}
}

// clip returns the line cut to a width.
func (l line) clip(width int) line {
	if l.cols <= width {
		return l
	}
	var out line
	for _, s := range l.spans {
		room := width - out.cols
		if room <= 0 {
			break
		}
		// A span that just fits is still cut when more follows it, so that
		// the ellipsis tells of the rest.
		if n := cols(s.text); n < room {
			out.add(s.style, s.text)
			continue
		}
		out.add(s.style, Clean(s.text+" .", room))
	}
	return out
}

// draw writes the line as a string for the terminal, without the line break.
func (t Terminal) draw(l line) string {
	var b strings.Builder
	for _, s := range l.spans {
		text := s.text
		if !t.Unicode {
			text = toASCII(text)
		}
		if t.Colour && sgr[s.style] != "" && strings.TrimSpace(text) != "" {
			b.WriteString("\x1b[" + sgr[s.style] + "m" + text + "\x1b[m")
		} else {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

var asciiFor = map[rune]string{
	'…': "~", '·': "-", '—': "-", '–': "-", '→': ">", '×': "x",
	'━': "=", '─': "-", '│': "|", '╭': "+", '╮': "+", '╰': "+", '╯': "+", '├': "+", '┤': "+",
	'▁': "_", '▂': ".", '▃': ".", '▄': "-", '▅': "=", '▆': "+", '▇': "*", '█': "#",
}

// toASCII keeps the width of every character, so that columns stay aligned.
func toASCII(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch a, known := asciiFor[r]; {
		case r < 0x7f:
			b.WriteRune(r)
		case known:
			b.WriteString(a)
		default:
			b.WriteString(strings.Repeat("?", runeWidth(r)))
		}
	}
	return b.String()
}
