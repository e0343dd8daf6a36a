package story

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
)

// running is one run of the tiptoe command.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	said   bytes.Buffer // to be read once it has ended
	ended  chan struct{}
	exited int
}

// start runs tiptoe with a data directory. It knows nothing of this machine's
// settings: no variable and no config file reaches it.
func start(t *testing.T, dataDir string, args ...string) *running {
	t.Helper()
	r := &running{t: t, ended: make(chan struct{})}
	r.cmd = exec.Command(binary, append(args, "--data-dir", dataDir)...)
	r.cmd.Dir = t.TempDir()
	r.cmd.Env = []string{"HOME=" + r.cmd.Dir, "PATH=" + os.Getenv("PATH")}
	r.cmd.Stderr = &r.said
	if err := launch(r.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // how it ended is looked at by whoever waits
		r.exited = r.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(r.kill)
	return r
}

// kill is kill -9.
func (r *running) kill() {
	_ = r.cmd.Process.Signal(syscall.SIGKILL) // it may be gone already
	<-r.ended
}

// done reports whether it has ended.
func (r *running) done() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// complete waits for the end, which must come in time and with exit code 0.
func (r *running) complete(limit time.Duration) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		r.kill()
		r.t.Fatalf("tiptoe did not end within %s; it said:\n%s", limit, tail(r.said.Bytes()))
	}
	if r.exited != 0 {
		r.t.Fatalf("tiptoe ended with %d; it said:\n%s", r.exited, tail(r.said.Bytes()))
	}
}

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// learned reads what the data directory knows of a host.
func learned(t *testing.T, dataDir, host string) (ledger.Domain, politeness.State) {
	t.Helper()
	l, err := app.OpenLedger(context.Background(), config.In(dataDir))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, ok, err := l.Domain(context.Background(), host)
	if err != nil || !ok {
		t.Fatalf("the ledger knows nothing of %s (%v)", host, err)
	}
	var st politeness.State
	if err := json.Unmarshal(d.State, &st); err != nil {
		t.Fatal(err)
	}
	return d, st
}
