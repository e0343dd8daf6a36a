package hostile

import "net/http"

// badLocation are redirects that lead nowhere.
var (
	locationMissing = badLocation("location-missing", "a redirect without a target", "")
	locationEmpty   = badLocation("location-empty", "a redirect with an empty target", "Location: \r\n")
	locationGarbage = badLocation("location-garbage", "a redirect to something that is no URL", "Location: http://[::bad/%zz \x01\xff\r\n")
	locationMany    = badLocation("location-many", "a redirect with two different targets", "Location: /one\r\nLocation: /two\r\n")
)

func badLocation(name, what, field string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.answer(func(c *conn, r *http.Request) {
				c.sendf("HTTP/1.1 302 Found\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", field)
			})
		},
	}
}
