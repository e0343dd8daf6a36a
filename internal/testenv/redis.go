//go:build unix

package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Redis is a real redis-server of a test's own in a throw-away directory, on a
// free port of the loopback address, with its log of writes (AOF) on and
// synced before every reply. Like Server it never outlives the process that
// started it.
type Redis struct {
	dir, program string
	port         int
	args         []string

	mu     sync.Mutex // guards what runs now
	parent *exec.Cmd  // nil while the server is down
	leash  *os.File
}

// superviseRedis runs "$@" until it ends. It passes on every signal that a line
// names (a server that is writing its first log declines TERM) and, once nobody
// is left who could write one, ends it by KILL and removes the directory.
const superviseRedis = `exec 3<&0
"$@" </dev/null 3<&- >>log 2>&1 &
server=$!
{ while read -r signal; do kill -s "$signal" $server; done
trap "" TERM; kill -s KILL $server; cd /; rm -rf "$0"; } <&3 2>/dev/null &
watch=$!
wait $server
kill $watch 2>/dev/null
wait $watch`

// StartRedis starts a server that ends with the test. args are added to its
// command line, such as "--appendfsync", "everysec". Where there is no
// redis-server the test is skipped, or fails when CI=true.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	program := Need(t, "redis-server")
	dir, err := os.MkdirTemp("", "tiptoe-redis-")
	if err != nil {
		t.Fatal(err)
	}
	r := &Redis{dir: dir, program: program, args: args}
	t.Cleanup(r.discard)
	for range 5 { // somebody else may take the port before the server does
		if r.port, err = freePort(); err != nil {
			t.Fatal(err)
		}
		if err = r.start(); err == nil {
			return r
		}
	}
	t.Fatal(err)
	return nil
}

// StartRedisCluster starts a server in cluster mode that owns every slot: it
// refuses whatever a cluster would refuse.
func StartRedisCluster(t testing.TB) *Redis {
	t.Helper()
	bus, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	r := StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-announce-ip", "127.0.0.1")
	if _, err := r.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(10 * time.Millisecond) {
		info, err := r.Do("CLUSTER", "INFO")
		if err == nil && strings.Contains(info, "cluster_state:ok") {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cluster does not come up: %v\n%s", err, info)
		}
	}
}

// Addr is where the server listens, also while it is down.
func (r *Redis) Addr() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

// URL is Addr as users write it.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Start starts a stopped server and waits until it has read its log and
// answers.
func (r *Redis) Start(t testing.TB) {
	t.Helper()
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop shuts the server down as an administrator would.
func (r *Redis) Stop(t testing.TB) { t.Helper(); r.end(t, "TERM") }

// Kill is kill -9.
func (r *Redis) Kill(t testing.TB) { t.Helper(); r.end(t, "KILL") }

// Restart is Stop and Start.
func (r *Redis) Restart(t testing.TB) {
	t.Helper()
	r.Stop(t)
	r.Start(t)
}

var redisProcess = regexp.MustCompile(`process_id:(\d+)`)

// Pid is the server's process: for a test that freezes it, or weighs it.
func (r *Redis) Pid(t testing.TB) int {
	t.Helper()
	info, err := r.Do("INFO", "server")
	m := redisProcess.FindStringSubmatch(info)
	if err != nil || m == nil {
		t.Fatalf("redis does not say its process: %v", err)
	}
	pid, _ := strconv.Atoi(m[1]) // the pattern lets nothing else pass
	return pid
}

// Do sends one command over a connection of its own and returns a simple,
// integer or bulk reply as text.
func (r *Redis) Do(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", r.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(readyWithin))
	var req strings.Builder
	fmt.Fprintf(&req, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&req, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write([]byte(req.String())); err != nil {
		return "", err
	}
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '+', ':':
		return line[1:], nil
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", err
		}
		body := make([]byte, n)
		for got := 0; got < n; {
			m, err := in.Read(body[got:])
			if err != nil {
				return "", err
			}
			got += m
		}
		return string(body), nil
	}
	return "", errors.New("redis: " + line)
}

func (r *Redis) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parent != nil {
		return errors.New("the server is up already")
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	args := append([]string{"-c", superviseRedis, r.dir, r.program,
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always"}, r.args...)
	parent := exec.Command("sh", args...)
	parent.Dir = r.dir
	parent.Stdin = read
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := parent.Start(); err != nil {
		write.Close()
		return err
	}
	r.parent, r.leash = parent, write
	if err := r.ready(); err != nil {
		r.finish("KILL")
		log, _ := os.ReadFile(filepath.Join(r.dir, "log"))
		return fmt.Errorf("redis-server did not start: %w\n%s", err, log)
	}
	return nil
}

// ready waits until the server answers, or until it has given up.
func (r *Redis) ready() error {
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(5 * time.Millisecond) {
		pong, err := r.Do("PING")
		if err == nil && pong == "PONG" {
			dir, err := r.Do("INFO", "server")
			if err == nil && !strings.Contains(dir, "tcp_port:"+strconv.Itoa(r.port)) {
				return errors.New("somebody else's server is on the port")
			}
			return err
		}
		log, _ := os.ReadFile(filepath.Join(r.dir, "log"))
		if strings.Contains(string(log), "Address already in use") || time.Now().After(deadline) {
			return err
		}
	}
}

func (r *Redis) end(t testing.TB, signal string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parent == nil {
		t.Fatal("the server is down already")
	}
	r.finish(signal)
}

func (r *Redis) finish(signal string) {
	leash := r.leash
	giveUp := time.AfterFunc(readyWithin, func() { fmt.Fprintln(leash, "KILL") })
	fmt.Fprintln(leash, signal)
	r.parent.Wait()
	giveUp.Stop()
	r.leash.Close()
	r.parent, r.leash = nil, nil
}

func (r *Redis) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parent != nil {
		r.finish("KILL")
	}
	os.RemoveAll(r.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
