package hostile

import "net/http"

// oddStatus are statuses that say something else than their body.
var (
	status999       = oddStatus("status-999", "a status nobody defined, as some sites answer crawlers", "999 Request denied")
	noContentBody   = oddStatus("no-content-with-body", "204 No Content, with content", "204 No Content")
	notModifiedBody = oddStatus("not-modified-unasked", "304 Not Modified to a request without a condition", "304 Not Modified")
	switching       = oddStatus("switching-protocols", "101 to a request that did not ask to switch", "101 Switching Protocols")
)

func oddStatus(name, what, status string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.answer(func(c *conn, r *http.Request) {
				c.sendf("HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", status, len(page), page)
			})
		},
	}
}
