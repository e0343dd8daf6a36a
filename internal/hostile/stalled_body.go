package hostile

import "net/http"

var stalledBody = Case{
	Name: "stalled-body", What: "half a body, then silence on an open connection",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			if c.sendf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", 2*len(page), page) {
				c.hold()
			}
		})
	},
}
