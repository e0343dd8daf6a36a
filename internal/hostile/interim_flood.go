package hostile

import "net/http"

var interimFlood = Case{
	Name: "interim-flood", What: "Count interim answers (103 Early Hints) before the real one",
	Defaults: Options{Count: 10_000},
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			for range s.options.Count {
				if !c.sendf("HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n") {
					return
				}
			}
			c.sendf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
		})
	},
}
