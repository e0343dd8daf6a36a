package demo

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"tiptoe/internal/webfarm/books"
	"tiptoe/internal/webfarm/wire"
)

// domain is where all hosts of the demo live; the name is reserved for tests.
const domain = ".demo.test"

// Host is one host of the demo and what it is there to show.
type Host struct {
	Name  string // with port
	Shows string
}

// Web is the running demo.
type Web struct {
	server   *wire.Server
	recorder *books.Recorder
	sites    []*site
	find     map[string]*wire.Site
	port     string
	deadPort string
	reserved net.Conn // holds deadPort
	detach   func() bool
	once     sync.Once
}

// Start opens the demo on free ports of 127.0.0.1; it ends with ctx or Close.
func Start(ctx context.Context) (*Web, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo: %w", err)
	}
	// A local port that is one end of an open connection is in use and yet
	// listens to nobody: connecting to it is refused for as long as we like.
	reserved, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("start the demo: reserve a dead port: %w", err)
	}
	w := &Web{
		port:     portOf(ln.Addr()),
		deadPort: portOf(reserved.LocalAddr()),
		reserved: reserved,
		find:     map[string]*wire.Site{},
	}
	w.sites = allSites(w)
	var all []*books.Host
	for _, s := range w.sites {
		s.web = w
		s.book = books.NewHost(w.host(s.name), 0)
		all = append(all, s.book)
		w.find[s.name] = &wire.Site{Handler: s, Book: s.book}
	}
	w.recorder = books.NewRecorder(all...)
	w.server = wire.NewServer(w.recorder, func(r *wire.Request) *wire.Site {
		label, _, _ := bytes.Cut(r.Host, []byte{'.'})
		return w.find[string(bytes.ToLower(label))]
	})
	w.server.Go(ln, 0)
	w.detach = context.AfterFunc(ctx, w.stop)
	return w, nil
}

// Seeds are the home pages of all hosts, the dead one included.
func (w *Web) Seeds() []string {
	var out []string
	for _, h := range w.Describe() {
		out = append(out, "http://"+h.Name+"/")
	}
	return out
}

// Resolve says where the hosts are, in the form host:port:address.
func (w *Web) Resolve() []string {
	var out []string
	for _, h := range w.Describe() {
		out = append(out, h.Name+":127.0.0.1")
	}
	return out
}

// Describe lists the hosts and what each is there to show.
func (w *Web) Describe() []Host {
	var out []Host
	for _, s := range w.sites {
		out = append(out, Host{w.host(s.name), s.shows})
	}
	return append(out, Host{"dead" + domain + ":" + w.deadPort, "nobody at home: every connection is refused"})
}

// Books are the hosts' own accounts of the visit. The dead host has none: it
// never hears anybody knock.
func (w *Web) Books() books.Books { return w.recorder.Books() }

// Close ends the demo and waits for it. It may be called more than once.
func (w *Web) Close() {
	w.detach()
	w.stop()
}

func (w *Web) stop() {
	w.once.Do(func() {
		w.reserved.Close()
		w.server.Close()
	})
}

func (w *Web) host(label string) string { return label + domain + ":" + w.port }

// at is an absolute URL on another host of the demo.
func (w *Web) at(label, path string) string {
	if label == "dead" {
		return "http://dead" + domain + ":" + w.deadPort + path
	}
	return "http://" + w.host(label) + path
}

func portOf(a net.Addr) string { return strconv.Itoa(a.(*net.TCPAddr).Port) }
