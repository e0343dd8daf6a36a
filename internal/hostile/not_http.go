package hostile

import "net/http"

// notHTTP are answers that no HTTP/1.1 client should make sense of.
var (
	http09         = notHTTP("http09", "a page without any header, as in 1991", page)
	binaryRubbish  = notHTTP("binary-rubbish", "bytes of another protocol", "\x16\x03\x01\x00\xff\x00\x00SSH-2.0\x80\x81\xfe\xff\x00\r\n\r\n")
	emptyAnswer    = notHTTP("empty-answer", "reads the request and closes, in good order", "")
	headerRubbish  = notHTTP("header-rubbish", "header lines without a colon and with a NUL", "HTTP/1.1 200 OK\r\nno colon here\r\nX-Nul: a\x00b\r\n\r\n"+page)
	statusRubbish  = notHTTP("status-rubbish", "a status that is no number", "HTTP/1.1 two hundred\r\nContent-Length: 0\r\n\r\n")
	headerUnending = notHTTP("header-unending", "closes in the middle of the header", "HTTP/1.1 200 OK\r\nContent-Type: text/h")
)

func notHTTP(name, what, answer string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.answer(func(c *conn, r *http.Request) { c.sendf("%s", answer) })
		},
	}
}
