package acceptance

import (
	"regexp"
	"strconv"
	"strings"
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

// start runs tiptoe with a data directory.
func start(t *testing.T, dataDir string, args ...string) *process {
	t.Helper()
	return launch(t, nil, append(args, "--data-dir", dataDir)...)
}

// launch runs tiptoe with nothing but what is given.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return &process{testenv.Launch(t, binary, env, args...), t}
}

// wait returns the exit code. Whoever is not done within the limit is shown
// with what it said, and so is whoever crashed.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(limit):
		p.Kill()
		p.t.Fatalf("tiptoe did not end within %s; it said:\n%s", limit, p.Stderr)
	}
	for _, sign := range []string{"panic:", "fatal error:", "goroutine 1 ["} {
		if strings.Contains(p.Stderr.String(), sign) {
			p.t.Fatalf("tiptoe crashed:\n%s", p.Stderr)
		}
	}
	return p.Cmd.ProcessState.ExitCode()
}

// peak is the most memory the process has had, in bytes; only after wait.
func (p *process) peak() int64 {
	return p.Cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

var progress = regexp.MustCompile(`([\d,]+) done, ([\d,]+) queued`)

// counts reads the last progress line.
func (p *process) counts() (done, queued int64) {
	all := progress.FindAllStringSubmatch(p.Stderr.String(), -1)
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
		case <-p.Ended:
			p.t.Fatalf("tiptoe ended with %d before %s; it said:\n%s", p.Cmd.ProcessState.ExitCode(), what, p.Stderr)
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within %s; tiptoe said:\n%s", what, limit, p.Stderr)
		}
	}
}
