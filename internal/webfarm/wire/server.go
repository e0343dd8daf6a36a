package wire

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"tiptoe/internal/webfarm/books"
)

// maxRequestBody bounds what a client may send after a head.
const maxRequestBody = 1 << 20

// Handler answers one request. It is called from many goroutines.
type Handler interface {
	Serve(r *Request, a *Answer)
}

// Site is one host: who answers, and in which book it is written.
type Site struct {
	Handler Handler
	Book    *books.Host // nil: not booked
}

// Server serves sites. Find chooses the site of a request; nil means no such
// host. Find and Recorder must not change after the first Serve.
type Server struct {
	Find     func(r *Request) *Site
	Recorder *books.Recorder

	mu        sync.Mutex
	closed    bool
	done      chan struct{}
	listeners map[net.Listener]struct{}
	conns     map[net.Conn]struct{}
	wg        sync.WaitGroup
}

// NewServer returns a server without listeners.
func NewServer(rec *books.Recorder, find func(r *Request) *Site) *Server {
	return &Server{
		Find: find, Recorder: rec,
		done:      make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		conns:     map[net.Conn]struct{}{},
	}
}

// Go serves ln in the background until Close; number is what requests coming
// through it carry as Listener.
func (s *Server) Go(ln net.Listener, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ln.Close()
		return
	}
	s.listeners[ln] = struct{}{}
	s.wg.Go(func() { s.accept(ln, number) })
}

// Close ends everything and waits for it. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		for ln := range s.listeners {
			ln.Close()
		}
		for c := range s.conns {
			c.Close()
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) accept(ln net.Listener, number int) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		c, err := ln.Accept()
		if err != nil {
			// Out of file descriptors passes; a closed listener does not.
			if errors.Is(err, net.ErrClosed) {
				return
			}
			pause.Reset(10 * time.Millisecond)
			select {
			case <-s.done:
				return
			case <-pause.C:
			}
			continue
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			c.Close()
			return
		}
		s.conns[c] = struct{}{}
		s.wg.Go(func() { s.serve(c, number) })
		s.mu.Unlock()
		s.Recorder.Connected()
	}
}

// conn is what one connection keeps between its requests.
type conn struct {
	net.Conn
	buf   []byte // received and not yet used: buf[from:to]
	from  int
	to    int
	req   Request
	ans   Answer
	timer *time.Timer
}

func (s *Server) serve(nc net.Conn, number int) {
	c := &conn{Conn: nc, buf: make([]byte, 2<<10)}
	c.req.Listener = number
	defer func() {
		nc.Close()
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	}()
	for {
		err := c.next()
		if err != nil {
			if status := statusOf(err); status != 0 {
				s.Recorder.Malformed()
				c.refuse(status)
			}
			return
		}
		if !s.answer(c) {
			return
		}
		// The head's slices are used until here; only now may the
		// request's body overwrite the buffer.
		if err := c.discard(c.req.bodyLen); err != nil || c.req.close {
			return
		}
	}
}

// next reads until one whole head is in the buffer and takes it out.
func (c *conn) next() error {
	for {
		if c.to > c.from {
			n, err := parse(c.buf[c.from:c.to], &c.req)
			if err != nil {
				return err
			}
			if n > 0 {
				c.from += n
				return nil
			}
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

var errHead = errors.New("request head too large")

// fill reads once, making room first.
func (c *conn) fill() error {
	if c.from == c.to {
		c.from, c.to = 0, 0
	} else if c.to == len(c.buf) && c.from > 0 {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
	} else if c.to == len(c.buf) {
		if len(c.buf) >= MaxHead {
			return errHead
		}
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

func (c *conn) discard(n int) error {
	for n > 0 {
		if c.from == c.to {
			if err := c.fill(); err != nil {
				return err
			}
		}
		take := min(n, c.to-c.from)
		c.from += take
		n -= take
	}
	return nil
}

// answer serves the request in c.req and reports whether the connection can
// go on.
func (s *Server) answer(c *conn) bool {
	site := s.Find(&c.req)
	if site == nil {
		s.Recorder.Malformed()
		c.refuse(http.StatusMisdirectedRequest)
		return false
	}
	if site.Book != nil {
		site.Book.Begin(s.Recorder.Now())
	}
	a := &c.ans
	a.reset()
	site.Handler.Serve(&c.req, a)
	alive := a.Delay <= 0 || s.wait(c, a.Delay)
	out := a.seal(c.req.IsHead(), c.req.close)
	if site.Book != nil {
		if !c.req.IsHead() {
			a.Entry.Bytes = len(a.buf) - headroom
		}
		site.Book.End(s.Recorder.Now(), a.Entry)
	}
	if !alive {
		return false
	}
	_, err := c.Write(out)
	return err == nil
}

func (s *Server) wait(c *conn, d time.Duration) bool {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return true
	case <-s.done:
		c.timer.Stop()
		return false
	}
}

// refuse answers a request that belongs to no site, for the last time.
func (c *conn) refuse(status int) {
	c.ans.reset()
	c.ans.Status = status
	c.ans.Type = "text/plain"
	c.ans.WriteString(http.StatusText(status) + "\n")
	c.Write(c.ans.seal(false, true))
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errMalformed):
		return http.StatusBadRequest
	case errors.Is(err, errCoding):
		return http.StatusNotImplemented
	case errors.Is(err, errBody):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errHead):
		return http.StatusRequestHeaderFieldsTooLarge
	}
	return 0 // the client left
}
