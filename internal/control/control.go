// Package control answers: how does one tiptoe ask the one that is running?
//
// A running crawl serves HTTP on a Unix socket in its data directory,
// control.sock. Whoever may read the directory as its owner may ask; nobody
// else can even connect (mode 0600), and nothing listens on the network.
//
// # Guarantees
//
// The socket appears under its name only when it has its mode: it is made in a
// private folder and renamed. One that a killed process left behind is
// replaced; the data directory's lock has already said that nobody else lives
// there. Close removes it. A client finds out at once that nobody answers
// (ErrNobody) and never waits longer than its context.
//
// A socket's path may have about a hundred bytes. If the data directory's is
// longer, the socket is made among the temporary files instead, and a file
// named control.path says where.
//
// The crawl must never fail because of this room: the caller logs the error
// of Serve and goes on. A crash loses nothing.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Names inside a data directory.
const (
	socketName  = "control.sock"
	pointerName = "control.path"
)

// maxPath is the longest path of a socket that every system takes: 104 bytes
// on some, with the NUL, 108 on Linux.
const maxPath = 103

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// ErrNobody says that no process answers for the data directory.
var ErrNobody = errors.New("no tiptoe is running on this data directory")

// Refusal is the running process's own word that a question has no answer.
type Refusal struct {
	Status int
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Server answers questions until Close.
type Server struct {
	srv     *http.Server
	done    chan struct{}
	cleanup []string // to be removed, files before their folders
}

// Serve begins to answer on the data directory's socket. The caller holds the
// directory's lock.
func Serve(dir string, h http.Handler) (*Server, error) {
	s := &Server{done: make(chan struct{})}
	l, err := s.listen(dir)
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s.srv = &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(s.done)
		_ = s.srv.Serve(l) // ends with Close
	}()
	return s, nil
}

func (s *Server) listen(dir string) (net.Listener, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, stale := range []string{socketName, pointerName} {
		if err := os.Remove(filepath.Join(dir, stale)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	path := filepath.Join(dir, socketName)
	private, err := os.MkdirTemp(dir, ".control-")
	if err != nil {
		return nil, err
	}
	made := filepath.Join(private, "s")
	if len(made) <= maxPath {
		defer os.RemoveAll(private)
		l, err := listenPrivate(made)
		if err != nil {
			return nil, err
		}
		if err := os.Rename(made, path); err != nil {
			l.Close()
			return nil, err
		}
		s.cleanup = append(s.cleanup, path)
		return l, nil
	}
	os.Remove(private)
	return s.listenElsewhere(dir)
}

// listenElsewhere is for a directory whose path is too long for a socket.
func (s *Server) listenElsewhere(dir string) (net.Listener, error) {
	private, err := os.MkdirTemp("", "tiptoe-") // readable by nobody else
	if err != nil {
		return nil, err
	}
	path := filepath.Join(private, "s")
	if len(path) > maxPath {
		os.Remove(private)
		return nil, fmt.Errorf("the paths of %s and of the folder for temporary files are both too long", socketName)
	}
	pointer := filepath.Join(dir, pointerName)
	s.cleanup = append(s.cleanup, pointer, path, private)
	l, err := listenPrivate(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(pointer, []byte(path+"\n"), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func listenPrivate(path string) (net.Listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close stops answering and removes the socket.
func (s *Server) Close() error {
	err := s.srv.Close()
	<-s.done
	s.remove()
	return err
}

func (s *Server) remove() {
	for _, path := range s.cleanup {
		os.Remove(path)
	}
}

// Get asks the process that runs on the data directory and reads its JSON
// answer. ErrNobody means that there is none.
func Get(ctx context.Context, dir, path string, query url.Values, into any) error {
	socket, ok := find(dir)
	if !ok {
		return ErrNobody
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tiptoe"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNobody
	}
	if err != nil {
		return fmt.Errorf("ask the running tiptoe: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the running tiptoe: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return &Refusal{resp.StatusCode, strings.TrimSpace(string(body))}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the running tiptoe's answer: %w", err)
	}
	return nil
}

// find returns the path of the directory's socket, wherever it is.
func find(dir string) (string, bool) {
	if b, err := os.ReadFile(filepath.Join(dir, pointerName)); err == nil {
		return strings.TrimSpace(string(b)), true
	}
	path := filepath.Join(dir, socketName)
	if _, err := os.Lstat(path); err != nil {
		return "", false
	}
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, path); err == nil && len(rel) < len(path) {
			return rel, true
		}
	}
	return path, true
}
