package hostile

import (
	"net/http"
	"strings"
)

var chunkedGarbage = Case{
	Name: "chunked-garbage", What: "one good chunk, then bytes where a chunk's size should stand",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			c.sendf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nnot hexadecimal\r\n", len(page), page)
		})
	},
}

var chunkedHuge = Case{
	Name: "chunked-huge", What: "a chunk whose size does not fit a number",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			c.sendf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n%s", page)
		})
	},
}

var chunkedOverhead = Case{
	Name: "chunked-overhead", What: "chunks of one byte, each with an extension of a kilobyte",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			c.sendf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			chunk := "1;" + strings.Repeat("x", 1000) + "\r\na\r\n"
			for c.sendf("%s", chunk) {
			}
		})
	},
}
