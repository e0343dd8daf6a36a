package hostile

import "net/http"

var headerTrickle = Case{
	Name: "header-trickle", What: "one byte of the header an Interval, with a header that never ends",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			if !c.trickle("HTTP/1.1 200 OK\r\n") {
				return
			}
			for c.trickle("X-Slow: yes\r\n") {
			}
		})
	},
}
