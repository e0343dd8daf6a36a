package hostile

import (
	"net/http"
	"strings"
)

var giantHeader = Case{
	Name: "giant-header", What: "one header field of Count MiB",
	Defaults: Options{Count: 2},
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			c.sendf("HTTP/1.1 200 OK\r\nX-Giant: ")
			block := strings.Repeat("g", 1<<20)
			for range s.options.Count {
				if !c.sendf("%s", block) {
					return
				}
			}
			c.sendf("\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
		})
	},
}
