package hostile

import "net/http"

var tricklingBody = Case{
	Name: "trickling-body", What: "headers at once, then one byte of the body an Interval: never idle, never done",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			if !c.sendf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n") {
				return
			}
			for c.trickle("<p>slow</p>") {
			}
		})
	},
}
