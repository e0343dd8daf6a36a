package extract

import "bytes"

// formatOf decides by Content-Type; sniff says that the type is missing or
// says nothing, as RFC 9110 section 8.3 lets a recipient conclude.
func formatOf(contentType string) (f Format, sniff bool) {
	t := essence(contentType)
	switch {
	case equalFold(t, "text/html"):
		return HTML, false
	case t == "", equalFold(t, "unknown/unknown"), equalFold(t, "application/unknown"), t == "*/*":
		return Opaque, true
	case equalFold(t, "text/xml"), equalFold(t, "application/xml"),
		len(t) > 4 && equalFold(t[len(t)-4:], "+xml"):
		return XML, false
	}
	return Opaque, false
}

// essence cuts parameters and blanks off a media type.
func essence[T string | []byte](t T) T {
	for i := range len(t) {
		if t[i] == ';' {
			t = t[:i]
			break
		}
	}
	for len(t) > 0 && isSpace(t[0]) {
		t = t[1:]
	}
	for len(t) > 0 && isSpace(t[len(t)-1]) {
		t = t[:len(t)-1]
	}
	return t
}

// htmlSigns are the openings by which the MIME sniffing standard knows HTML.
var htmlSigns = [...]string{
	"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a",
	"<style", "<title", "<b", "<body", "<br", "<p",
}

// sniffFormat looks at the first bytes of a document of unknown type.
func sniffFormat(b []byte) Format {
	b = bytes.TrimLeft(b[:min(len(b), 1445)], "\t\n\f\r ")
	if bytes.HasPrefix(b, []byte("<?xml")) {
		return XML
	}
	if bytes.HasPrefix(b, []byte("<!--")) {
		return HTML
	}
	for _, sign := range htmlSigns {
		if n := len(sign); len(b) > n && equalFold(b[:n], sign) && (b[n] == ' ' || b[n] == '>') {
			return HTML
		}
	}
	return Opaque
}
