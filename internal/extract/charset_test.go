package extract

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

func encode(t *testing.T, e encoding.Encoding, v string) []byte {
	t.Helper()
	b, err := e.NewEncoder().Bytes([]byte(v))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryEncodingComesOutAsUTF8(t *testing.T) {
	utf16le := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	utf16be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for _, c := range []struct {
		name, typ string
		enc       encoding.Encoding
		doc       string
		charset   string
		title     string
		ref       string
	}{
		{"by header", "text/html; charset=iso-8859-1", charmap.Windows1252, "<title>café</title><a href=/é>", "windows-1252", "café", "/é"},
		{"by quoted header", `text/html; charset="Windows-1251"`, charmap.Windows1251, "<title>мир</title><a href=/я>", "windows-1251", "мир", "/я"},
		{"by meta", "text/html", charmap.KOI8R, "<meta charset=koi8-r><title>мир</title><a href=/я>", "koi8-r", "мир", "/я"},
		{"by a meta after the link", "text/html", charmap.KOI8R, "<a href=/я><title>мир</title><meta http-equiv=Content-Type content='text/html; charset=KOI8-R'>", "koi8-r", "мир", "/я"},
		{"the header wins over meta", "text/html;charset=windows-1251", charmap.Windows1251, "<meta charset=utf-8><title>мир</title><a href=/я>", "windows-1251", "мир", "/я"},
		{"trail bytes that look like ASCII", "text/html; charset=shift_jis", japanese.ShiftJIS, "<title>表示ソ</title><a href='/ソ'>", "shift_jis", "表示ソ", "/ソ"},
		{"GBK", "text/html; charset=gb2312", simplifiedchinese.GBK, "<title>中文</title><a href=/中>", "gbk", "中文", "/中"},
		{"ISO-2022-JP by header", "text/html; charset=iso-2022-jp", japanese.ISO2022JP, "<title>日本語</title><a href=/語>", "iso-2022-jp", "日本語", "/語"},
		{"ISO-2022-JP by meta is read again", "text/html", japanese.ISO2022JP, "<meta charset=iso-2022-jp><title>日本語</title><a href=/語>", "iso-2022-jp", "日本語", "/語"},
		{"UTF-16 by byte order mark", "text/html; charset=koi8-r", utf16le, "<title>мир</title><a href=/я>", "utf-16le", "мир", "/я"},
		{"UTF-16 by header", "text/html; charset=utf-16be", utf16be, "<title>мир</title><a href=/я>", "utf-16be", "мир", "/я"},
		{"UTF-16 XML by its first bytes", "text/xml", utf16be, "<?xml version='1.0'?><title>мир</title><a href='/я'/>", "utf-16be", "мир", "/я"},
		{"a meta cannot make it UTF-16", "text/html", unicode.UTF8, "<meta charset=utf-16><title>мир</title><a href=/я>", "utf-8", "мир", "/я"},
		{"UTF-8 with a byte order mark", "text/html; charset=iso-8859-1", unicode.UTF8BOM, "<title>мир</title><a href=/я>", "utf-8", "мир", "/я"},
		{"nothing said, valid UTF-8", "text/html", unicode.UTF8, "<title>мир</title><a href=/я>", "utf-8", "мир", "/я"},
		{"nothing said, not UTF-8", "text/html", charmap.Windows1252, "<title>café €</title><a href=/é>", "windows-1252", "café €", "/é"},
		{"an XML declaration", "application/xhtml+xml", charmap.Windows1252, "<?xml version='1.0' encoding='latin1'?><title>café</title><a href='/é'/>", "windows-1252", "café", "/é"},
		{"an unknown label is ignored", "text/html; charset=nonsense", unicode.UTF8, "<meta charset=utf8><title>мир</title><a href=/я>", "utf-8", "мир", "/я"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			p := s.Scan(encode(t, c.enc, c.doc), c.typ)
			if p.Charset != c.charset || p.Title != c.title || len(p.Links) != 1 || string(p.Links[0].Ref) != c.ref {
				t.Errorf("read as %s, title %q, links %q", p.Charset, p.Title, scanned(p).Links)
			}
		})
	}
}

func TestAQueryIsEncodedAsItsPageIs(t *testing.T) {
	body := encode(t, charmap.Windows1252, "<a href='/é?q=é&amp;r=&#x20ac;&#x4e2d;#é'><a href='?q=e'><a href='/é'>")
	var s Scanner
	p := s.Scan(body, "text/html; charset=windows-1252")
	for i, want := range []string{"/é?q=%E9&r=%80%26%2320013%3B#é", "?q=e", "/é"} {
		if got := string(p.Links[i].Ref); got != want {
			t.Errorf("link %d is %q, want %q", i, got, want)
		}
	}
	if p := s.Scan([]byte("<a href='?q=é'>"), "text/html"); string(p.Links[0].Ref) != "?q=é" {
		t.Errorf("a UTF-8 page's query was touched: %q", p.Links[0].Ref)
	}
}

func TestBrokenBytesAreReplaced(t *testing.T) {
	var s Scanner
	p := s.Scan([]byte("<a href='/a\xe2\x82b\xffc'><link rel=alternate hreflang='d\xff' href=x>"), "text/html; charset=utf-8")
	if got := string(p.Links[0].Ref); got != "/a\ufffdb\ufffdc" {
		t.Errorf("got %q", got)
	}
	if !utf8.Valid(p.Links[1].Lang) {
		t.Errorf("language tag %q is not valid UTF-8", p.Links[1].Lang)
	}
}

func TestACharacterCutByASizeCapDoesNotChangeTheEncoding(t *testing.T) {
	body := []byte("<title>мир</title><a href=/я>я")
	var s Scanner
	if p := s.Scan(body[:len(body)-1], "text/html"); p.Charset != "utf-8" || p.Title != "мир" {
		t.Errorf("read as %s, title %q", p.Charset, p.Title)
	}
}
