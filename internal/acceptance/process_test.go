package acceptance

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one run of the tiptoe command.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{}
}

// start runs tiptoe with a data directory. It knows nothing of this machine's
// settings: no variable and no config file reaches it.
func start(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	return launch(t, nil, append(args, "--data-dir", dataDir)...)
}

// launch runs tiptoe with nothing but what is given.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, stdout: new(output), stderr: new(output), ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"HOME=" + p.cmd.Dir, "PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	dieWithTest(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state is looked at by wait
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// kill is kill -9. It reports whether the process was still there.
func (p *process) kill() bool {
	err := p.cmd.Process.Kill()
	<-p.ended
	if err != nil {
		return false
	}
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// wait returns the exit code. Whoever is not done within the limit is shown
// with what it said, and so is whoever crashed.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.kill()
		p.t.Fatalf("tiptoe did not end within %s; it said:\n%s", limit, p.stderr)
	}
	for _, sign := range []string{"panic:", "fatal error:", "goroutine 1 ["} {
		if strings.Contains(p.stderr.String(), sign) {
			p.t.Fatalf("tiptoe crashed:\n%s", p.stderr)
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// peak is the most memory the process has had, in bytes; only after wait.
func (p *process) peak() int64 {
	return p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

var progress = regexp.MustCompile(`([\d,]+) done, ([\d,]+) queued`)

// counts reads the last progress line.
func (p *process) counts() (done, queued int64) {
	all := progress.FindAllStringSubmatch(p.stderr.String(), -1)
	if len(all) == 0 {
		return 0, 0
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64) // the pattern lets nothing else pass
		return n
	}
	last := all[len(all)-1]
	return number(last[1]), number(last[2])
}

// until polls, which is all one can do to a process from outside.
func (p *process) until(limit time.Duration, what string, is func() bool) {
	p.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			p.t.Fatalf("tiptoe ended with %d before %s; it said:\n%s", p.cmd.ProcessState.ExitCode(), what, p.stderr)
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within %s; tiptoe said:\n%s", what, limit, p.stderr)
		}
	}
}

// output keeps what a process says, up to a bound.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var errTooMuch = errors.New("too much was said")

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() > 16<<20 {
		return 0, errTooMuch
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
