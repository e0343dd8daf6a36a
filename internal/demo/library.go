package demo

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

// library holds what is not a UTF-8 page: other encodings, declared in the
// header, in the page, by a mark or wrongly, and files that are no pages.
func library() *site {
	s := &site{name: "library", title: "The Travelling Library", shows: "odd encodings, a PDF, a picture, a file of bytes", robots: openRobots, pages: map[string]*page{}}
	home := &page{title: "The Travelling Library", text: "Books in every alphabet the van had room for. Not everything here is a page."}
	for _, b := range []struct {
		path, title, text string
		enc               encoding.Encoding
		header, meta      string
	}{
		{"/latin", "Crème brûlée für Anfänger", "Zucker, Sahne, Geduld. Der Rest ist Feuer.", charmap.Windows1252, "windows-1252", ""},
		{"/kana", "雨の日の散歩", "傘は二本。一本は友だちのため。", japanese.ShiftJIS, "", "Shift_JIS"},
		{"/cyrillic", "Письмо с маяка", "Свет каждые девять секунд. Всё хорошо.", charmap.KOI8R, "koi8-r", ""},
		{"/central", "Žluťoučký kůň", "Úpěl ďábelské ódy, jako vždycky v úterý.", charmap.ISO8859_2, "", "iso-8859-2"},
		{"/wide", "Two Bytes a Letter", "A page in UTF-16, with its mark in front.", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "", ""},
	} {
		home.links = append(home.links, link{b.path, b.title})
		meta := ""
		if b.meta != "" {
			meta = "<meta charset=\"" + b.meta + "\">"
		}
		text := "<!doctype html><html><head>" + meta + "<title>" + b.title + "</title></head><body><h1>" + b.title + "</h1><p>" + b.text +
			"</p><p><a href=\"/shelf" + b.path + "\">" + b.title + "</a></p></body></html>"
		p := &page{contentType: "text/html"}
		if b.header != "" {
			p.contentType += "; charset=" + b.header
		}
		body, err := b.enc.NewEncoder().Bytes([]byte(text))
		if err != nil {
			// The texts are constants; the tests read every one of them.
			panic(fmt.Sprintf("demo: %s cannot be encoded: %v", b.path, err))
		}
		p.body = body
		s.pages[b.path] = p
		s.pages["/shelf"+b.path] = &page{title: "The shelf of " + b.title, text: "You could read the link, so you could read the page.", links: []link{{"/", "All books"}}}
	}
	add := func(path, title, contentType string, body []byte) {
		home.links = append(home.links, link{path, title})
		s.pages[path] = &page{contentType: contentType, body: body}
	}
	add("/mislabelled", "A page that says it is ASCII", "text/html; charset=us-ascii",
		[]byte("<!doctype html><title>Naïve label</title><p>It is UTF-8 all the same. <a href=\"/\">Home</a></p>"))
	add("/catalogue.pdf", "The catalogue, as PDF", "application/pdf", pdf("The catalogue of the travelling library"))
	add("/stamp.png", "Our stamp", "image/png", stamp())
	add("/dust", "A handful of dust", "application/octet-stream", bytes.Repeat([]byte{0, 0xff, 0x7f, 0x80, '<', 'a', '>', 0x1b}, 512))
	add("/notes.txt", "Notes", "text/plain; charset=utf-8", []byte("A text with <a href=\"/not-a-link\">something</a> that is no link.\n"))
	add("/empty", "An empty book", "text/html; charset=utf-8", []byte{})
	s.pages["/"] = home
	return s
}

// pdf makes the smallest document with one line of text.
func pdf(line string) []byte {
	var b bytes.Buffer
	var offsets []int
	b.WriteString("%PDF-1.4\n")
	text := "BT /F1 18 Tf 72 720 Td (" + line + ") Tj ET"
	for n, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", n+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.Bytes()
}

// stamp is a small picture: rings, as on an old library card.
func stamp() []byte {
	const size = 48
	m := image.NewGray(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			dx, dy := x-size/2, y-size/2
			shade := uint8(255)
			if d := dx*dx + dy*dy; d < 500 && d/60%2 == 0 {
				shade = 60
			}
			m.SetGray(x, y, color.Gray{Y: shade})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(fmt.Sprintf("demo: encode the stamp: %v", err)) // a buffer does not fail
	}
	return b.Bytes()
}
