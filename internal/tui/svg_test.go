package tui

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"strings"
	"testing"
	"time"
)

// TestThePictureInTheDocsIsTheView keeps docs/live-view.svg a true picture: it
// is drawn from the same bytes that a terminal gets.
func TestThePictureInTheDocsIsTheView(t *testing.T) {
	term := Terminal{Width: 100, Height: 31, Unicode: true, Colour: true}
	picture := svg(playedModel(term, 95*time.Second).View().Content, term)
	for dec := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "../../docs/live-view.svg", picture)
}

const (
	cellW, cellH = 8.4, 19.0 // a monospace character of 14 px
	padding      = 18.0
)

// The colours of the picture's terminal, by the code that selects them.
var svgFill = map[string]string{"": "#d5dbe3", "1": "#ffffff", "2": "#7d8896", "31": "#ef7f7f", "32": "#86cf95", "33": "#e6c07b", "36": "#74c3d6"}

// svg turns drawn rows into a picture of a terminal. Every run of text is
// stretched to its columns, so that the alignment does not depend on the
// viewer's font; lines and sparks are drawn as shapes for the same reason.
func svg(screen string, term Terminal) string {
	var b strings.Builder
	w, h := float64(term.Width)*cellW+2*padding, float64(term.Height)*cellH+2*padding
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="The live view of tiptoe crawling the demo hosts">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="10" fill="#161b22"/>`+"\n", w, h)
	b.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">` + "\n")
	for row, text := range strings.Split(screen, "\n") {
		col, code := 0, ""
		for text != "" {
			if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
				code, text, _ = strings.Cut(rest, "m")
				continue
			}
			part, tail := text, ""
			if i := strings.IndexByte(text, '\x1b'); i >= 0 {
				part, tail = text[:i], text[i:]
			}
			svgRun(&b, part, col, row, code)
			col, text = col+cols(part), tail
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func svgRun(b *strings.Builder, text string, col, row int, code string) {
	fill, top := svgFill[code], padding+float64(row)*cellH
	rect := func(x, y, w, h float64) {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, w, h, fill)
	}
	for text != "" {
		first := []rune(text)[0]
		x := padding + float64(col)*cellW
		if shape := strings.TrimLeft(text, string(first)); first == '━' || first == '─' {
			n := cols(text) - cols(shape)
			thick := map[rune]float64{'━': 4, '─': 1.5}[first]
			rect(x, top+(cellH-thick)/2, float64(n)*cellW, thick)
			text, col = shape, col+n
			continue
		}
		if level := strings.IndexRune(string(sparks), first); level >= 0 {
			tall := 13 * float64(level/len("▁")+1) / float64(len(sparks))
			rect(x, top+15-tall, cellW-1, tall)
			text, col = strings.TrimPrefix(text, string(first)), col+1
			continue
		}
		// Plain text, up to the next shape or gap of several spaces.
		end := len(text)
		if i := strings.IndexAny(text, "━─"+string(sparks)); i >= 0 {
			end = i
		}
		if i := strings.Index(text, "  "); i >= 0 && i < end {
			end = i
		}
		if end == 0 {
			gap := len(text) - len(strings.TrimLeft(text, " "))
			text, col = text[gap:], col+gap
			continue
		}
		part := text[:end]
		lead := len(part) - len(strings.TrimLeft(part, " "))
		if word := strings.Trim(part, " "); word != "" {
			weight := ""
			if code == "1" {
				weight = ` font-weight="700"`
			}
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
				x+float64(lead)*cellW, top+14, float64(cols(word))*cellW, fill, weight, html.EscapeString(word))
		}
		text, col = text[end:], col+cols(part)
	}
}
