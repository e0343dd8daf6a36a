package acceptance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/testenv"
)

// nginx is a real web server with a log of its own.
type nginx struct {
	t      *testing.T
	origin string // http://127.0.0.1:port
	log    string
	cmd    *exec.Cmd
	ended  chan struct{}
}

// served is one line of nginx's log.
type served struct {
	status int
	agent  string
	uri    string // as it was sent
}

// One process in the foreground, so that there is one to stop. The log is not
// buffered, and escapes nothing: a URI is logged as it came.
const nginxConfig = `
daemon off; master_process off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
	log_format exact escape=none '$status\t$request_method\t$http_user_agent\t$request_uri';
	access_log %[1]s/access.log exact;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	types { text/html html htm; text/plain txt; text/css css; application/javascript js; image/png png; image/svg+xml svg; }
	default_type application/octet-stream;
	sendfile on; tcp_nodelay on; %[4]s
	server { listen 127.0.0.1:%[2]s; server_name _; root %[3]s; index index.html; absolute_redirect on; }
}
`

// startNginx serves a folder until the test ends.
func startNginx(t *testing.T, root, extra string) *nginx {
	t.Helper()
	program := testenv.Need(t, "nginx")
	dir := t.TempDir()
	var err error
	for range 5 { // somebody may take the port before nginx does
		n := &nginx{t: t, log: filepath.Join(dir, "access.log"), ended: make(chan struct{})}
		port := freePort(t)
		n.origin = "http://127.0.0.1:" + port
		conf := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConfig, dir, port, root, extra), 0o644); err != nil {
			t.Fatal(err)
		}
		n.cmd = exec.Command(program, "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log"))
		testenv.DieWithTest(n.cmd)
		if err = n.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(n.ended)
			_ = n.cmd.Wait() // it says why in its error log
		}()
		t.Cleanup(n.stop)
		if err = n.answers("127.0.0.1:" + port); err == nil {
			return n
		}
	}
	said, _ := os.ReadFile(filepath.Join(dir, "error.log"))
	t.Fatalf("nginx: %v\n%s", err, said)
	return nil
}

func (n *nginx) answers(addr string) error {
	for range 200 {
		select {
		case <-n.ended:
			return fmt.Errorf("ended with %s", n.cmd.ProcessState)
		default:
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("does not answer on %s", addr)
}

// stop lets nginx finish what it is doing, which also completes its log.
func (n *nginx) stop() {
	if err := n.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		<-n.ended // it is gone already
		return
	}
	select {
	case <-n.ended:
	case <-time.After(10 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
}

// served stops nginx and reads its log.
func (n *nginx) served() (lines []served) {
	n.t.Helper()
	n.stop()
	raw, err := os.ReadFile(n.log)
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(f) != 4 || f[1] != "GET" {
			n.t.Fatalf("nginx logged %q", line)
		}
		status, err := strconv.Atoi(f[0])
		if err != nil {
			n.t.Fatalf("nginx logged %q", line)
		}
		lines = append(lines, served{status, f[2], f[3]})
	}
	return lines
}

// freePort finds a port for a program that cannot choose one itself.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
