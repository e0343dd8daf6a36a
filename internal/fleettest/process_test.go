package fleettest

import (
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/testenv"
)

// process is one run of the tiptoe command.
type process struct {
	*testenv.Process
	t *testing.T
}

// launch runs tiptoe with nothing but what is given.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{testenv.Launch(t, binary, nil, args...), t}
	t.Cleanup(func() {
		if t.Failed() {
			said := p.Stderr.String()
			t.Logf("%s said, at last:\n%s", args[0], said[max(len(said)-4000, 0):])
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop is SIGTERM; the exit code must be 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.Ended:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("it did not stop within 30 s; it said:\n%s", p.Said())
	}
	if code := p.Cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Fatalf("exit code %d after SIGTERM; it said:\n%s", code, p.Said())
	}
}
