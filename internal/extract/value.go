package extract

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	unicode8 "golang.org/x/text/encoding/unicode"
)

// odd marks the bytes that keep a raw reference from being used as it stands.
var odd = func() (t [256]bool) {
	for _, c := range "&\x00\t\n\r" {
		t[c] = true
	}
	for c := 0x80; c <= 0xff; c++ {
		t[c] = true
	}
	return t
}()

// trimRef cuts the blanks and control characters that URL parsing ignores.
// NUL is not among them: the tokenizer has made it U+FFFD by then.
func trimRef(v []byte) []byte {
	for len(v) > 0 && v[0]-1 < ' ' {
		v = v[1:]
	}
	for len(v) > 0 && v[len(v)-1]-1 < ' ' {
		v = v[:len(v)-1]
	}
	return v
}

// reference decodes a raw attribute value that holds a URL. A value without
// odd bytes is returned as it is, inside the body.
func (s *Scanner) reference(raw []byte, isURL bool) []byte {
	clean := true
	for _, c := range raw {
		if odd[c] {
			clean = false
			break
		}
	}
	if clean {
		return trimRef(raw)
	}
	start := len(s.arena)
	s.arena = s.attribute(s.arena, raw)
	v := s.arena[start:]
	if bytes.ContainsAny(v, "\t\n\r") {
		kept := v[:0]
		for _, c := range v {
			if c != '\t' && c != '\n' && c != '\r' {
				kept = append(kept, c)
			}
		}
		v = kept
	}
	v = trimRef(v)
	if isURL && s.decoder.enc != nil {
		v = s.encodeQuery(v)
	}
	return v
}

// attribute appends a raw attribute value, decoded, to dst.
func (s *Scanner) attribute(dst, raw []byte) []byte {
	if s.decoder.enc != nil && !isASCII(raw) {
		raw = s.decoder.append(nil, raw)
	}
	if !utf8.Valid(raw) {
		raw, _ = unicode8.UTF8.NewDecoder().Bytes(raw) // one U+FFFD for each broken sequence
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		raw = bytes.ReplaceAll(raw, []byte{0}, []byte("\ufffd"))
	}
	return appendUnescaped(dst, raw)
}

// encodeQuery percent-encodes what is above ASCII in the query with the
// document's own encoding, as the URL standard asks: the server of a page in
// windows-1252 expects ?q=%E9, not ?q=%C3%A9.
func (s *Scanner) encodeQuery(v []byte) []byte {
	q := bytes.IndexByte(v, '?')
	if h := bytes.IndexByte(v, '#'); q < 0 || h >= 0 && h < q {
		return v
	}
	end := len(v)
	if h := bytes.IndexByte(v, '#'); h >= 0 {
		end = h
	}
	query := v[q:end]
	if isASCII(query) {
		return v
	}
	const hex = "0123456789ABCDEF"
	out := append([]byte(nil), v[:q]...)
	enc := s.decoder.enc.NewEncoder()
	for _, r := range string(query) {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		enc.Reset()
		b, _ := enc.Bytes([]byte(string(r)))
		for _, c := range b {
			// A character the encoding lacks came back as "&#20013;", and
			// goes on the wire with its delimiters encoded.
			if c >= utf8.RuneSelf || c == '&' || c == '#' || c == ';' {
				out = append(out, '%', hex[c>>4], hex[c&15])
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, v[end:]...)
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// text decodes an attribute value meant for people.
func (s *Scanner) text(raw []byte, limit int) string {
	return tidy(string(s.attribute(nil, raw)), limit)
}

// langTag decodes a language tag; one that is plain is left in the body.
func (s *Scanner) langTag(raw []byte) []byte {
	plain := len(raw) <= maxLang
	for _, c := range raw {
		plain = plain && (isAlnum(c) || c == '-')
	}
	if plain {
		return raw
	}
	return []byte(s.text(raw[:min(len(raw), maxRawText)], maxLang))
}

// titleText decodes the content of a title element.
func (s *Scanner) titleText() string {
	raw := s.title
	if s.xml {
		raw = bytes.ReplaceAll(raw, []byte("<![CDATA["), nil)
		raw = bytes.ReplaceAll(raw, []byte("]]>"), nil)
	}
	v := strings.ToValidUTF8(string(s.decoder.append(nil, raw)), "\ufffd")
	v = strings.ReplaceAll(v, "\x00", "\ufffd")
	return tidy(html.UnescapeString(v), maxTitle)
}

// tidy makes one short line: blanks collapse, and whatever could act on the
// screen it is shown on (control characters, bidirectional overrides,
// invisible separators) is taken out.
func tidy(v string, limit int) string {
	var out strings.Builder
	blank := false
	for _, r := range v {
		if unicode.IsSpace(r) && r != '\u0085' {
			blank = out.Len() > 0
			continue
		}
		if unsafeRune(r) {
			continue
		}
		n := utf8.RuneLen(r)
		if blank {
			n++
		}
		if out.Len()+n > limit {
			break
		}
		if blank {
			out.WriteByte(' ')
			blank = false
		}
		out.WriteRune(r)
	}
	return out.String()
}

func unsafeRune(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // bidirectional embeddings and isolates
		r == 0x200e, r == 0x200f, r == 0x061c, // bidirectional marks
		r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	}
	return false
}
