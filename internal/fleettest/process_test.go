package fleettest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one run of the tiptoe command.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *output
	ended chan struct{}
}

// launch runs tiptoe with nothing but what is given.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, out: new(output), ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = []string{"HOME=" + p.cmd.Dir, "PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	dieWithTest(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state is looked at by whoever asks
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said, at last:\n%s", strings.Join(args[:1], " "), p.out.tail(4000))
		}
	})
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop is SIGTERM; the exit code must be 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("it did not stop within 30 s; it said:\n%s", p.out)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Fatalf("exit code %d after SIGTERM; it said:\n%s", code, p.out)
	}
}

// output keeps what a process says.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() > 16<<20 {
		return len(p), nil // nobody reads that much
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) tail(n int) string {
	s := o.String()
	return s[max(len(s)-n, 0):]
}
