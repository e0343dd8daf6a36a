package testenv

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
)

// WithProgram builds the tiptoe command, as users build it, for a TestMain, and
// gives its path to run.
func WithProgram(run func(binary string) (code int)) (code int) {
	dir, err := os.MkdirTemp("", "tiptoe-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "tiptoe")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "tiptoe/cmd/tiptoe").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build tiptoe: %v\n%s", err, out)
		return 1
	}
	return run(binary)
}

// Process is one run of a program.
type Process struct {
	Cmd            *exec.Cmd
	Stdout, Stderr *Output
	Ended          chan struct{} // closed when it has; then Cmd has its state
}

// Launch runs a program that knows nothing of this machine's settings: no
// variable but those that are given and no config file reaches it. It ends with
// the test at the latest.
func Launch(t testing.TB, program string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(program, args...), Stdout: new(Output), Stderr: new(Output), Ended: make(chan struct{})}
	p.Cmd.Dir = t.TempDir()
	p.Cmd.Env = append([]string{"HOME=" + p.Cmd.Dir, "PATH=" + os.Getenv("PATH")}, env...)
	p.Cmd.Stdout, p.Cmd.Stderr = p.Stdout, p.Stderr
	DieWithTest(p.Cmd)
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Ended)
		_ = p.Cmd.Wait() // the state is looked at by whoever asks
	}()
	t.Cleanup(func() { p.Kill() })
	return p
}

// Kill is kill -9. It reports whether the process was still there.
func (p *Process) Kill() bool {
	err := p.Cmd.Process.Kill()
	<-p.Ended
	if err != nil {
		return false
	}
	ws, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// Said is all that it said: the answers first, then the log.
func (p *Process) Said() string { return p.Stdout.String() + p.Stderr.String() }

var (
	serveLine = regexp.MustCompile(`tiptoe serves (http://\S+)`)
	keyLine   = regexp.MustCompile(`Operator key: (tt_\S+)`)
)

// Serves reports whether a tiptoe serve can be asked, and where. The first one
// on its data says the operator's key.
func (p *Process) Serves() (base, key string, ok bool) {
	at := serveLine.FindStringSubmatch(p.Stdout.String())
	if at == nil {
		return "", "", false
	}
	resp, err := http.Get(at[1] + "/v1/ready")
	if err != nil {
		return "", "", false
	}
	resp.Body.Close()
	if m := keyLine.FindStringSubmatch(p.Stdout.String()); m != nil { // which comes behind the address
		key = m[1]
	}
	return at[1], key, resp.StatusCode == http.StatusOK
}

// Output keeps what a process says, up to a bound.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() > 16<<20 {
		return len(p), nil // nobody reads that much
	}
	return o.b.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
