package hostile

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

// conn is a connection served by hand, for what net/http would not send.
type conn struct {
	net.Conn
	server *Server
	reader *bufio.Reader
}

// accept serves every connection with the function, then closes it.
func (s *Server) accept(serve func(*conn)) {
	s.running.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(&conn{c, s, bufio.NewReader(c)})
			}()
		}
	})
}

// answer serves one request a connection with the function, which writes the
// answer down to its last byte.
func (s *Server) answer(serve func(c *conn, r *http.Request)) {
	s.accept(func(c *conn) {
		for {
			r, ok := c.request()
			if !ok {
				return
			}
			if !s.aside(r.URL.Path) {
				serve(c, r)
				return
			}
			if !c.sendf("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") || r.Close {
				return
			}
		}
	})
}

// request reads the next request head.
func (c *conn) request() (*http.Request, bool) {
	r, err := http.ReadRequest(c.reader)
	if err != nil {
		return nil, false
	}
	c.server.note(r.Method, r.URL.RequestURI())
	return r, true
}

// sendf writes; false means that nobody listens any more.
func (c *conn) sendf(format string, args ...any) bool {
	_, err := fmt.Fprintf(c, format, args...)
	return err == nil
}

// trickle writes one byte an interval.
func (c *conn) trickle(text string) bool {
	for i := range len(text) {
		if !c.sendf("%s", text[i:i+1]) || !c.server.pause() {
			return false
		}
	}
	return true
}

// hold keeps the connection open and silent until the client leaves or the
// server is over.
func (c *conn) hold() {
	for {
		if _, err := c.reader.Discard(1); err != nil {
			return
		}
	}
}

// abort closes with a reset instead of an orderly end.
func (c *conn) abort() {
	under := c.Conn
	if b, ok := under.(*bounded); ok {
		under = b.Conn
	}
	if t, ok := under.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}
