package hostile

import (
	"net/http"
	"time"
)

var resetMidBody = Case{
	Name: "reset-mid-body", What: "resets the connection in the middle of the body",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			c.sendf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n%s", page)
			s.pause() // or the reset would overtake the bytes
			c.abort()
		})
	},
	Defaults: Options{Interval: 20 * time.Millisecond},
}

var resetOnRequest = Case{
	Name: "reset-on-request", What: "reads the request and resets the connection instead of answering",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) { c.abort() })
	},
}

var closeOnAccept = Case{
	Name: "close-on-accept", What: "accepts a connection and closes it at once",
	serve: func(s *Server) {
		s.accept(func(c *conn) {})
	},
}
