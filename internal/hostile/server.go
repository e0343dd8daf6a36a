package hostile

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Case is one named misbehaviour.
type Case struct {
	Name string
	What string // one sentence for people
	// Defaults are the case's own sizes; Options given to StartWith win.
	Defaults Options

	path  string // of the URL that misbehaves; "/" if empty
	serve func(*Server)
}

// Options size a misbehaviour. Zero values mean the case's default.
type Options struct {
	Interval time.Duration // pause of cases that trickle
	Count    int           // how many hops, headers, links, MiB, … of cases that have a number
	Bytes    int64         // most bytes written to one connection
	Life     time.Duration // after this the server is gone
}

var common = Options{Interval: time.Second, Count: 1, Bytes: 256 << 20, Life: 30 * time.Second}

func (o Options) or(d Options) Options {
	if o.Interval == 0 {
		o.Interval = d.Interval
	}
	if o.Count == 0 {
		o.Count = d.Count
	}
	if o.Bytes == 0 {
		o.Bytes = d.Bytes
	}
	if o.Life == 0 {
		o.Life = d.Life
	}
	return o
}

// Server is a running misbehaviour.
type Server struct {
	URL   string
	Roots *x509.CertPool // trusts the server's certificate; nil without TLS

	options  Options
	listener net.Listener
	page     string // path of URL
	over     chan struct{}
	stopOnce sync.Once
	running  sync.WaitGroup

	requests, conns atomic.Int64
	mu              sync.Mutex
	open            map[*bounded]struct{}
	seen            []string
}

// maxSeen bounds the list of requests; the count goes on.
const maxSeen = 10_000

// Start starts the named case with its defaults.
func Start(tb testing.TB, name string) *Server {
	tb.Helper()
	return StartWith(tb, name, Options{})
}

// StartWith starts the named case with other sizes.
func StartWith(tb testing.TB, name string, o Options) *Server {
	tb.Helper()
	for _, c := range All() {
		if c.Name == name {
			return c.Start(tb, o)
		}
	}
	tb.Fatalf("hostile: no misbehaviour is called %q", name)
	return nil
}

// Start starts the case. It ends with the test.
func (c Case) Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("hostile: %v", err)
	}
	s := &Server{
		options: o.or(c.Defaults).or(common),
		page:    c.path,
		over:    make(chan struct{}),
		open:    map[*bounded]struct{}{},
	}
	if s.page == "" {
		s.page = "/"
	}
	s.listener = &listener{l, s}
	s.URL = "http://" + l.Addr().String() + s.page
	c.serve(s)
	end := time.AfterFunc(s.options.Life, s.stop)
	tb.Cleanup(func() {
		end.Stop()
		s.stop()
		s.running.Wait()
	})
	return s
}

// Requests counts the request heads that arrived whole.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Conns counts the connections accepted.
func (s *Server) Conns() int64 { return s.conns.Load() }

// Seen lists the requests in order of arrival, as "GET /path".
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *Server) note(method, path string) {
	s.requests.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) < maxSeen {
		s.seen = append(s.seen, method+" "+path)
	}
}

// aside reports whether a path is fetched by crawlers on their own account and
// is not the one that misbehaves.
func (s *Server) aside(path string) bool {
	return path != s.page && (strings.HasPrefix(path, "/robots") || strings.HasPrefix(path, "/sitemap"))
}

// stop closes everything that a goroutine of the server could wait for.
func (s *Server) stop() {
	s.stopOnce.Do(func() {
		close(s.over)
		s.listener.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.open {
			c.Conn.Close() // whoever serves it notices, and closes it properly
		}
	})
}

// pause waits for the interval; false means the server is over.
func (s *Server) pause() bool {
	t := time.NewTimer(s.options.Interval)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.over:
		return false
	}
}

// web serves with net/http, for misbehaviours that are valid HTTP.
func (s *Server) web(handler http.HandlerFunc) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r.Method, r.URL.RequestURI())
		if s.aside(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	})}
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	s.running.Go(func() { srv.Serve(s.listener) })
}

// listener hands out connections that the server can close and that stop
// writing at its byte bound.
type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := l.server
	t := &bounded{Conn: c, server: s}
	t.left.Store(s.options.Bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		c.Close()
		return nil, net.ErrClosed
	default:
	}
	s.conns.Add(1)
	s.open[t] = struct{}{}
	s.running.Add(1)
	return t, nil
}

type bounded struct {
	net.Conn
	server *Server
	left   atomic.Int64
	once   sync.Once
}

var errSpent = errors.New("hostile: the connection's byte bound is reached")

func (c *bounded) Write(p []byte) (int, error) {
	if c.left.Add(-int64(len(p))) < 0 {
		return 0, errSpent
	}
	return c.Conn.Write(p)
}

// Close is called by whoever serves the connection when done with it: the
// server's end waits for that.
func (c *bounded) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.server.mu.Lock()
		delete(c.server.open, c)
		c.server.mu.Unlock()
		c.server.running.Done()
	})
	return err
}
