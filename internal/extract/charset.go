package extract

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// The scan itself runs on the raw bytes: in every encoding a page may use,
// except those of mustTranscode, the bytes that delimit markup never occur
// inside another character. Only values are decoded, and only those that hold
// bytes above ASCII. The encoding is, in this order: a byte order mark, the
// Content-Type header, the first meta (wherever it stands: browsers look at
// 1024 bytes, then start over when they meet a later one), an XML
// declaration, UTF-8 if the body is valid UTF-8, and windows-1252.
type decoder struct {
	name string            // canonical; empty until settled
	enc  encoding.Encoding // nil for UTF-8
	dec  *encoding.Decoder // of enc, made when first needed
}

const utf8Name = "utf-8"

// mustTranscode lists the encodings in which "<" may be half a character, or
// no character at all.
func mustTranscode(name string) bool {
	return name == "utf-16le" || name == "utf-16be" || name == "iso-2022-jp" || name == "replacement"
}

// newDecoder finds an encoding by label; ok is false for an unknown one.
func newDecoder(label string) (d decoder, ok bool) {
	if equalFold(label, utf8Name) {
		return decoder{name: utf8Name}, true
	}
	enc, name := charset.Lookup(label)
	switch {
	case enc == nil:
		return decoder{}, false
	case name == utf8Name:
		return decoder{name: utf8Name}, true
	}
	return decoder{name: name, enc: enc}, true
}

// open decides the format and, where bytes other than the body's decide it,
// the encoding. It returns the bytes to scan.
func (s *Scanner) open(body []byte, contentType string) ([]byte, bool) {
	format, sniff := formatOf(contentType)
	if format == Opaque && !sniff {
		return nil, false
	}
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		body = body[3:]
		s.decoder = decoder{name: utf8Name}
	case bytes.HasPrefix(body, []byte("\xff\xfe")), bytes.HasPrefix(body, []byte("<\x00?\x00x\x00")):
		s.decoder, _ = newDecoder("utf-16le")
	case bytes.HasPrefix(body, []byte("\xfe\xff")), bytes.HasPrefix(body, []byte("\x00<\x00?\x00x")):
		s.decoder, _ = newDecoder("utf-16be")
	default:
		if label := charsetParam(contentType); label != "" {
			s.decoder, _ = newDecoder(label)
		}
	}
	if mustTranscode(s.decoder.name) {
		body = s.transcode(body)
	}
	if sniff {
		format = sniffFormat(body)
	}
	s.page.Format = format
	s.page.Charset = s.decoder.name
	s.xml = format == XML
	return body, format != Opaque
}

// transcode turns the whole body into UTF-8; values then need no decoding.
func (s *Scanner) transcode(body []byte) []byte {
	out, _ := s.decoder.enc.NewDecoder().Bytes(body) // decoders replace, they do not fail
	s.decoder.enc = nil
	return bytes.TrimPrefix(out, []byte("\ufeff"))
}

// settleCharset chooses the encoding if the headers did not. It returns a
// transcoded body when the scan has to be made again.
func (s *Scanner) settleCharset(body []byte) []byte {
	if s.decoder.name != "" {
		return nil
	}
	d, ok := decoder{}, false
	if s.metaCharset != nil {
		d, ok = newDecoder(string(bytes.Trim(s.metaCharset, "\t\n\f\r ")))
	}
	if !ok && bytes.HasPrefix(body, []byte("<?xml")) {
		d, ok = newDecoder(xmlEncoding(body))
	}
	switch {
	case ok && (d.name == "utf-16le" || d.name == "utf-16be"):
		d = decoder{name: utf8Name} // it was read as ASCII, so it cannot be
	case ok && d.name == "x-user-defined", !ok && !validUTF8(body):
		d, _ = newDecoder("windows-1252")
	case !ok:
		d = decoder{name: utf8Name}
	}
	s.decoder = d
	s.page.Charset = d.name
	if mustTranscode(d.name) {
		return s.transcode(body)
	}
	return nil
}

// validUTF8 forgives a last character cut by a size cap.
func validUTF8(b []byte) bool {
	for k := 1; k < utf8.UTFMax && k <= len(b); k++ {
		if c := b[len(b)-k]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-k:]) {
				b = b[:len(b)-k]
			}
			break
		}
	}
	return utf8.Valid(b)
}

// charsetParam finds charset=... in a media type, as the HTML standard looks
// for it in a meta element.
func charsetParam[T string | []byte](v T) T {
	const word = "charset"
	for i := 0; i+len(word) < len(v); i++ {
		if !equalFold(v[i:i+len(word)], word) {
			continue
		}
		j := i + len(word)
		for j < len(v) && isSpace(v[j]) {
			j++
		}
		if j == len(v) || v[j] != '=' {
			continue
		}
		j++
		for j < len(v) && isSpace(v[j]) {
			j++
		}
		if j < len(v) && (v[j] == '"' || v[j] == '\'') {
			for k := j + 1; k < len(v); k++ {
				if v[k] == v[j] {
					return v[j+1 : k]
				}
			}
			break
		}
		k := j
		for k < len(v) && !isSpace(v[k]) && v[k] != ';' {
			k++
		}
		return v[j:k]
	}
	return v[:0]
}

// xmlEncoding reads the encoding of an XML declaration.
func xmlEncoding(b []byte) string {
	decl := b[:min(len(b), 1024)]
	k := bytes.Index(decl, []byte("?>"))
	if k < 0 {
		return ""
	}
	_, v, ok := bytes.Cut(decl[:k], []byte("encoding"))
	if !ok {
		return ""
	}
	v = bytes.TrimLeft(v, "\t\n\r ")
	if len(v) == 0 || v[0] != '=' {
		return ""
	}
	v = bytes.TrimLeft(v[1:], "\t\n\r ")
	if len(v) == 0 || v[0] != '"' && v[0] != '\'' {
		return ""
	}
	v, _, ok = bytes.Cut(v[1:], v[:1])
	if !ok {
		return ""
	}
	return string(v)
}

// append appends raw bytes of the document's encoding as UTF-8.
func (d *decoder) append(dst, raw []byte) []byte {
	if d.enc == nil {
		return append(dst, raw...)
	}
	if d.dec == nil {
		d.dec = d.enc.NewDecoder()
	}
	d.dec.Reset()
	out, _, _ := transform.Append(d.dec, dst, raw) // decoders replace, they do not fail
	return out
}
