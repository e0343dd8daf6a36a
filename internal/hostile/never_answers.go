package hostile

import "net/http"

var neverAnswers = Case{
	Name: "never-answers", What: "accepts, reads the request, and never says a word",
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) { c.hold() })
	},
}
