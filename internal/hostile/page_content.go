package hostile

import (
	"net/http"
)

// document serves one body with a content type.
func document(name, what, contentType, body string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.web(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.Write([]byte(body))
			})
		},
	}
}

var wrongCharset = document("wrong-charset", "declared UTF-8, written in Latin-1, with another name in its meta",
	"text/html; charset=utf-8", "<!doctype html><meta charset=windows-31j><title>Caf\xe9 M\xfcnchen</title><a href=\"/caf\xe9\">caf\xe9</a>")

var unknownCharset = document("unknown-charset", "a charset that does not exist",
	"text/html; charset=x-klingon", page)

var hostileTitle = document("hostile-title", "a title with terminal escapes, a script and a formula", "text/html; charset=utf-8",
	"<!doctype html><title>=HYPERLINK(\"http://evil.example\",\"x\")\x1b]0;owned\x07\x1b[2J\u202e&lt;script&gt;alert(1)&lt;/script&gt;\r\n@SUM(1+1)</title>"+
		"<a href=\"/&#27;[31mred\">link</a>")

var nulBytes = document("nul-bytes", "NUL bytes in tags, attributes and text", "text/html",
	"<!doctype html>\x00<ti\x00tle>a\x00b</title><a hr\x00ef=\"/one\">1</a><a href=\"/t\x00wo\">2</a>\x00\x00<a href=/three>3</a>")

var typeLie = document("type-lie", "says text/html and sends an executable", "text/html",
	"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00<a href=/not-a-link")

var typeMissing = document("type-garbage", "a content type that is none", "text//html;;charset", page)
