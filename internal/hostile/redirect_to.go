package hostile

import "net/http"

// redirectTo are redirects to where a crawler must not go. The requests that a
// crawler without a guard would make leave this server, so none is counted.
var (
	redirectToLoopback = redirectTo("redirect-to-loopback", "http://127.0.0.1:9/secret")
	redirectToShort    = redirectTo("redirect-to-short-loopback", "http://127.1:9/secret")
	redirectToNumber   = redirectTo("redirect-to-number", "http://2130706433:9/secret")
	redirectToMapped   = redirectTo("redirect-to-mapped-loopback", "http://[::ffff:127.0.0.1]:9/secret")
	redirectToPrivate  = redirectTo("redirect-to-private", "http://10.0.0.1/secret")
	redirectToMetadata = redirectTo("redirect-to-metadata", "http://169.254.169.254/latest/meta-data/")
	redirectToFile     = redirectTo("redirect-to-file", "file:///etc/passwd")
	redirectToScript   = redirectTo("redirect-to-javascript", "javascript:alert(1)")
	redirectToData     = redirectTo("redirect-to-data", "data:text/html,<a href=/x>x</a>")
)

func redirectTo(name, target string) Case {
	return Case{
		Name: name, What: "a page that redirects to " + target,
		serve: func(s *Server) {
			s.answer(func(c *conn, r *http.Request) {
				c.sendf("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", target)
			})
		},
	}
}
