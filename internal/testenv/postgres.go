//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// readyWithin bounds the start of a server, recovery after a crash included.
const readyWithin = 60 * time.Second

// Server is a PostgreSQL of a test's own in a throw-away directory, reached
// over a Unix socket in it, so that no port can be taken by somebody else
// while it is down.
//
// It never outlives the process that started it, however that one ends: its
// parent is a small shell that waits for the end of a pipe, which the system
// closes with the process, and then ends the server and removes the directory.
type Server struct {
	dir, bin string
	settings []string            // arguments of the server
	cred     *syscall.Credential // nil: as ourselves
	names    atomic.Int64        // of databases

	mu     sync.Mutex // guards what runs now
	parent *exec.Cmd  // nil while the server is down
	leash  *os.File   // the end of the pipe that the parent waits for
	alive  *os.File   // ends with the parent, and so with the server
}

// supervise runs "$@" until it ends by itself, until a line names the signal
// that ends it, or until nobody is left who could write one: then the
// directory goes too. What a shell runs in the background ignores QUIT until it
// says otherwise, and a server that has just begun has not yet: so it is told
// again, and killed in the end.
const supervise = `exec 3<&0
"$@" </dev/null >>log 2>&1 &
server=$!
{ read -r signal || signal=
trap "" TERM
[ -z "$signal" ] || { kill -s "$signal" $server; exit; }
for again in 1 2 3 4 5; do kill -s QUIT $server || exit 7; sleep 1; done
kill -s KILL $server
exit 7; } <&3 >/dev/null 2>&1 &
watch=$!
wait $server
kill $watch
wait $watch
[ $? != 7 ] || { cd /; rm -rf "$0"; }`

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Postgres returns the URL of a new, empty database on a real PostgreSQL. All
// tests of one binary share the server; the database is dropped with the test.
// The server does not wait for the disk, which only a power cut could tell: to
// make a database and to drop it then costs a twentieth. Where there is no
// PostgreSQL the test is skipped, or fails when CI=true.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	bin := postgresPrograms(t)
	shared.once.Do(func() { shared.server, shared.err = newServer(bin, "-c", "fsync=off", "-c", "full_page_writes=off") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.Database(t)
}

// PostgresServer starts a server that belongs to the test alone and writes as
// one in service does: for tests that stop it, and for benchmarks.
func PostgresServer(t testing.TB) *Server {
	t.Helper()
	s, err := newServer(postgresPrograms(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.discard)
	return s
}

// Database makes an empty database and returns its URL. It is dropped at the
// end of the test if the server is up by then.
func (s *Server) Database(t testing.TB) (url string) {
	t.Helper()
	name := fmt.Sprintf("t_%d", s.names.Add(1))
	err := s.run("CREATE DATABASE " + name + " STRATEGY file_copy") // the faster one here
	if err != nil {
		err = s.run("CREATE DATABASE " + name) // before PostgreSQL 15 there was no other
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.up() {
			if err := s.run("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		}
	})
	return s.url(name)
}

// Start starts a stopped server and waits until it takes connections.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop shuts the server down as an administrator would: sessions are ended,
// what runs is undone.
func (s *Server) Stop(t testing.TB) { t.Helper(); s.end(t, "INT") }

// Crash ends the server as a panic would: no clean-up, recovery at the start.
func (s *Server) Crash(t testing.TB) { t.Helper(); s.end(t, "QUIT") }

// Kill is kill -9 on the server's main process; its sessions notice and quit.
func (s *Server) Kill(t testing.TB) { t.Helper(); s.end(t, "KILL") }

// Restart is Stop and Start.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

func newServer(bin string, settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "tiptoe-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, settings: settings}
	if err := s.create(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func (s *Server) create() error {
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		cred, err := unprivileged()
		if err != nil {
			return err
		}
		if err := os.Chown(s.dir, int(cred.Uid), int(cred.Gid)); err != nil {
			return err
		}
		s.cred = cred
	}
	initdb := s.command(filepath.Join(s.bin, "initdb"), "-D", "data", "-U", "tiptoe", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s.start()
}

// start hands the server to its parent. A server that was killed may leave
// sessions behind that hold its memory for a moment: then it is tried again.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent != nil {
		return errors.New("the server is up already")
	}
	deadline := time.Now().Add(readyWithin)
	for {
		if err := s.launch(); err != nil {
			return err
		}
		err := s.ready(deadline)
		if err == nil {
			return nil
		}
		s.finish("QUIT")
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, log)
		}
	}
}

func (s *Server) launch() error {
	stdin, leash, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	alive, stdout, err := os.Pipe()
	if err != nil {
		leash.Close()
		return err
	}
	defer stdout.Close()
	parent := s.command("sh", append([]string{"-c", supervise, s.dir,
		filepath.Join(s.bin, "postgres"), "-D", "data", "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200"}, s.settings...)...)
	parent.Stdin, parent.Stdout = stdin, stdout
	if err := parent.Start(); err != nil {
		leash.Close()
		alive.Close()
		return err
	}
	s.parent, s.leash, s.alive = parent, leash, alive
	return nil
}

// ready waits until the server answers or has given up. It answers only those
// who ask.
func (s *Server) ready(deadline time.Time) error {
	for {
		err := s.run("SELECT 1")
		if err == nil || time.Now().After(deadline) {
			return err
		}
		s.alive.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, end := s.alive.Read(make([]byte, 1)); !errors.Is(end, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

func (s *Server) end(t testing.TB, signal string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent == nil {
		t.Fatal("the server is down already")
	}
	s.finish(signal)
}

func (s *Server) finish(signal string) {
	fmt.Fprintln(s.leash, signal)
	s.parent.Wait()
	s.leash.Close()
	s.alive.Close()
	s.parent, s.leash, s.alive = nil, nil, nil
}

func (s *Server) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent != nil {
		s.finish("QUIT")
	}
	os.RemoveAll(s.dir)
}

func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parent != nil
}

func (s *Server) url(database string) string {
	return "postgres://tiptoe@/" + database + "?host=" + s.dir
}

func (s *Server) run(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// command runs in the server's directory, as its user, in a process group of
// its own, so that a Ctrl+C for the test does not reach it first.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.cred}
	return c
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

// postgresPrograms returns the folder of the newest PostgreSQL. Debian and
// others keep the server's programs where no PATH leads.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	if path, ok := find("initdb"); ok {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real)
		}
	}
	dirs := postgresFolders("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
	if len(dirs) == 0 {
		absent(t, "needs PostgreSQL, which is not installed here (make test installs it where it may)")
	}
	return dirs[0]
}

// postgresFolders lists folders that hold an initdb, by version, newest first.
func postgresFolders(patterns ...string) []string {
	var dirs []string
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(p, "initdb"))
		for _, f := range found {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	version := func(dir string) int {
		parent := filepath.Base(filepath.Dir(dir)) // 15, or pgsql-15
		n, _ := strconv.Atoi(parent[strings.LastIndexByte(parent, '-')+1:])
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}
