package hostile

import "net/http"

var cookieFlood = Case{
	Name: "cookie-flood", What: "Count cookies with one page, each for the whole site",
	Defaults: Options{Count: 2_000},
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			repeatFields(c, s.options.Count, "Set-Cookie: c%d=%[1]d; Path=/\r\n")
		})
	},
}
