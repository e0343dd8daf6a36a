package hostile

import "net/http"

// contentLength are pages whose declared length is not their length.
var (
	lengthTooLong   = contentLength("length-too-long", "promises more bytes than it sends, then closes", "Content-Length: 1000\r\n")
	lengthTooShort  = contentLength("length-too-short", "sends more bytes than it promised", "Content-Length: 10\r\n")
	lengthTwice     = contentLength("length-twice", "promises two different lengths", "Content-Length: 10\r\nContent-Length: 20\r\n")
	lengthNegative  = contentLength("length-negative", "promises less than nothing", "Content-Length: -1\r\n")
	lengthHuge      = contentLength("length-huge", "promises more bytes than a number holds", "Content-Length: 99999999999999999999\r\n")
	lengthAndChunks = contentLength("length-and-chunks", "promises a length and chunks, and sends neither", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")
)

func contentLength(name, what, fields string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.answer(func(c *conn, r *http.Request) {
				c.sendf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%s\r\n%s", fields, page)
			})
		},
	}
}
