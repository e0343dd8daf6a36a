package hostile

// Clients that keep connections open may find one closed when they use it
// again, and many then repeat the request without telling: the two cases count
// what the wire saw.

var closesIdle = Case{
	Name: "closes-idle", What: "promises to keep the connection and closes it right behind the answer",
	serve: func(s *Server) {
		s.accept(func(c *conn) {
			if _, ok := c.request(); ok {
				c.sendf("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
			}
		})
	},
}

var closesOnReuse = Case{
	Name: "closes-on-reuse", What: "answers the first request of a connection, reads the second and closes without a word",
	serve: func(s *Server) {
		s.accept(func(c *conn) {
			if _, ok := c.request(); ok {
				c.sendf("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
				c.request()
			}
		})
	},
}

var speaksIdle = Case{
	Name: "speaks-idle", What: "says more behind its answer than anybody asked for",
	serve: func(s *Server) {
		s.accept(func(c *conn) {
			for {
				if _, ok := c.request(); !ok {
					return
				}
				c.sendf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s\x1b[31mbuy more\r\n", len(page), page)
			}
		})
	},
}
