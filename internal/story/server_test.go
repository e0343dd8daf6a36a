package story

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
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

// nginx is a running nginx with a rate limit over one site of pages.
type nginx struct {
	t    *testing.T
	addr string
	log  string
}

// seen is one request as nginx logged it.
type seen struct {
	at     time.Duration
	status int
	path   string
}

const nginxConf = `daemon off;
master_process off;
pid %[1]s/pid;
error_log %[1]s/error.log warn;
events { worker_connections 256; }
http {
  client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3;
  uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
  keepalive_requests 100000;
  log_format seen '$msec $status $request_uri';
  access_log %[1]s/access.log seen;
  limit_req_zone $server_port zone=all:1m rate=%[3]dr/s;
  limit_req_status 429;
  limit_req_log_level info;
  types { text/html html; text/plain txt; }
  server {
    listen %[2]s;
    root %[1]s/site;
    limit_req zone=all%[4]s;
    location /p/ { try_files /page.html =404; }
  }
}
`

// startNginx serves a home page that links to so many pages. form is what
// follows the zone's name in limit_req.
func startNginx(t *testing.T, perSecond int, form string, pages int) *nginx {
	t.Helper()
	program := testenv.Need(t, "nginx")
	dir := memoryDir(t)
	site := filepath.Join(dir, "site")
	if err := os.Mkdir(site, 0o755); err != nil {
		t.Fatal(err)
	}
	var home strings.Builder
	home.WriteString("<!doctype html><title>home</title>\n")
	for i := 1; i < pages; i++ {
		fmt.Fprintf(&home, "<a href=/p/%d>%d</a>\n", i, i)
	}
	// A port that was free a moment ago may be taken when nginx asks for it.
	for range 10 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n := &nginx{t: t, addr: ln.Addr().String(), log: filepath.Join(dir, "access.log")}
		ln.Close()
		for name, text := range map[string]string{
			"site/index.html": home.String(), "site/page.html": "<!doctype html><title>a page</title><p>Text.",
			"site/robots.txt": "User-agent: *\nDisallow:\n",
			"nginx.conf":      fmt.Sprintf(nginxConf, dir, n.addr, perSecond, form),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(program, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "nginx.conf"))
		if err := launch(cmd); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		if n.answers(ended) {
			t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGKILL); <-ended })
			return n
		}
		_ = cmd.Process.Kill()
		<-ended
	}
	said, _ := os.ReadFile(filepath.Join(dir, "error.log"))
	t.Fatalf("nginx does not start:\n%s", said)
	return nil
}

// memoryDir is a folder in memory where there is one: nginx writes its log
// between two requests, and a disk that other tests keep busy would make it
// read the next one late.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tiptoe-story-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// answers waits for the first answer, which empties no bucket that a crawl
// could notice: the log is read from after it.
func (n *nginx) answers(ended chan struct{}) bool {
	for range 500 {
		select {
		case <-ended:
			return false
		default:
		}
		if resp, err := http.Get("http://" + n.addr + "/ready"); err == nil {
			resp.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// requests reads the log: everything that was asked, in order.
func (n *nginx) requests() []seen {
	n.t.Helper()
	f, err := os.Open(n.log)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	var all []seen
	var first time.Duration
	for sc := bufio.NewScanner(f); sc.Scan(); {
		w := strings.Fields(sc.Text())
		if len(w) != 3 {
			n.t.Fatalf("log line %q", sc.Text())
		}
		if w[2] == "/ready" {
			continue
		}
		secs, frac, _ := strings.Cut(w[0], ".")
		ms, err1 := strconv.ParseInt(secs+frac, 10, 64)
		status, err2 := strconv.Atoi(w[1])
		if err1 != nil || err2 != nil || len(frac) != 3 {
			n.t.Fatalf("log line %q", sc.Text())
		}
		at := time.Duration(ms) * time.Millisecond
		if first == 0 {
			first = at
		}
		all = append(all, seen{at - first, status, w[2]})
	}
	return all
}
