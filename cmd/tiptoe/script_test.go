package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

func TestMain(m *testing.M) {
	// Scripts wait for clocks more than for cores.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"tiptoe": main})
}

// TestScripts runs the program as its users do. The commands that the scripts
// have besides testscript's own are:
//
//	web NAME [DIR]        serve the files of DIR (default NAME); see web_test.go
//	requests NAME         print what the server of that name was asked, in order
//	await NAME N [RE]     wait until it was asked N times for a path that matches
//	exits CODE PROGRAM    run a program and demand its exit code
//	start NAME PROGRAM    run a program in the background
//	signal NAME INT       send it a signal
//	says NAME TEXT        wait until its standard error holds the text
//	finish NAME CODE [D]  wait for it (at most D) and demand its exit code;
//	                      its output becomes the current output
//	lines FILE N          demand N lines
//	jsonlines FILE [N]    demand JSON objects, one a line, N of them
//	nowhere TEXT PATH...  demand that no file under the paths holds the text
//	narrow FILE           demand lines of at most 80 columns
//	service NAME [FLAGS]  start tiptoe serve; $TIPTOE_SERVER and $TIPTOE_KEY are its
//	keep NAME             the output's first line becomes $NAME
//	dashboard NAME        $TIPTOE_SERVER and $TIPTOE_KEY are those that it says
//	sql STATEMENT         run it in $DATABASE_URL; the first columns are the output
//	redis ARGS...         send a command to $REDIS_URL
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", func(*testscript.Env) {})
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env)) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values["webs"] = &sync.Map{}
			env.Values["jobs"] = map[string]*job{}
			env.Setenv("LANG", "C.UTF-8")
			env.Setenv("GOVERNOR_ENABLED", "false") // a busy disk of the test machine is no news
			setup(env)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"web": cmdWeb, "requests": cmdRequests, "await": cmdAwait, "exits": cmdExits,
			"start": cmdStart, "signal": cmdSignal, "says": cmdSays, "finish": cmdFinish,
			"lines": cmdLines, "jsonlines": cmdJSONLines, "nowhere": cmdNowhere, "narrow": cmdNarrow,
			"service": cmdService, "keep": cmdKeep, "dashboard": cmdDashboard,
			"sql": cmdSQL, "redis": cmdRedis,
		},
	})
}

// want ends a script whose author used a command wrongly.
func want(ts *testscript.TestScript, ok bool, usage string) {
	if !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

func number1(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "exits CODE PROGRAM ARGS...")
	demand(ts, number1(ts, args[0]), ts.Exec(args[1], args[2:]...))
}

// demand compares an exit code.
func demand(ts *testscript.TestScript, code int, err error) {
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode() // -1: killed by a signal
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != code {
		ts.Fatalf("exit code %d, want %d", got, code)
	}
}

// job is a program in the background.
type job struct {
	cmd         *exec.Cmd
	out, errOut tape
	done        chan error
}

// tape is a buffer that can be read while it is written.
type tape struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "start NAME PROGRAM ARGS...")
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, args[1]); path == "" && isFile(p) {
			path = p
		}
	}
	j := &job{cmd: exec.Command(path, args[2:]...), done: make(chan error, 1)}
	j.cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "LANG", "WORK", "GOVERNOR_ENABLED", "DATABASE_URL", "REDIS_URL"} {
		j.cmd.Env = append(j.cmd.Env, key+"="+ts.Getenv(key))
	}
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.errOut
	ts.Check(j.cmd.Start())
	go func() { j.done <- j.cmd.Wait() }()
	ts.Defer(func() {
		if j.done != nil {
			_ = j.cmd.Process.Kill()
			<-j.done
		}
	})
	ts.Value("jobs").(map[string]*job)[args[0]] = j
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func jobOf(ts *testscript.TestScript, name string) *job {
	j := ts.Value("jobs").(map[string]*job)[name]
	if j == nil || j.done == nil {
		ts.Fatalf("no program %q is running", name)
	}
	return j
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	want(ts, !neg && len(args) == 2 && signals[args[1]] != nil, "signal NAME INT|TERM|KILL")
	ts.Check(jobOf(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 2, "says NAME TEXT")
	j := jobOf(ts, args[0])
	for end := time.Now().Add(30 * time.Second); !strings.Contains(j.errOut.String(), args[1]); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%s has not said %q in 30 s:\n%s", args[0], args[1], j.errOut.String())
		}
	}
}

func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && (len(args) == 2 || len(args) == 3), "finish NAME CODE [DURATION]")
	limit := 60 * time.Second
	if len(args) == 3 {
		d, err := time.ParseDuration(args[2])
		ts.Check(err)
		limit = d
	}
	j := jobOf(ts, args[0])
	select {
	case err := <-j.done:
		j.done = nil
		fmt.Fprint(ts.Stdout(), j.out.String())
		fmt.Fprint(ts.Stderr(), j.errOut.String())
		demand(ts, number1(ts, args[1]), err)
	case <-time.After(limit):
		ts.Fatalf("%s is still running after %s", args[0], limit)
	}
}

func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 2, "lines FILE|stdout|stderr N")
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); n != number1(ts, args[1]) {
		ts.Fatalf("%s has %d lines, want %s:\n%s", args[0], n, args[1], ts.ReadFile(args[0]))
	}
}

func cmdJSONLines(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && (len(args) == 1 || len(args) == 2), "jsonlines FILE|stdout|stderr [N]")
	n := 0
	sc := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0])))
	for sc.Scan() {
		var v map[string]any
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			ts.Fatalf("line %d is not a JSON object: %v\n%s", n+1, err, sc.Text())
		}
		n++
	}
	ts.Check(sc.Err())
	if len(args) == 2 && n != number1(ts, args[1]) {
		ts.Fatalf("%d JSON lines, want %s", n, args[1])
	}
}

func cmdNowhere(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "nowhere TEXT PATH...")
	looked := 0
	for _, root := range args[1:] {
		if root == "stdout" || root == "stderr" {
			looked++
			if strings.Contains(ts.ReadFile(root), args[0]) {
				ts.Fatalf("%s holds %q", root, args[0])
			}
			continue
		}
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			looked++
			b, err := os.ReadFile(path)
			if err == nil && bytes.Contains(b, []byte(args[0])) {
				err = fmt.Errorf("%s holds %q", path, args[0])
			}
			return err
		}))
	}
	if looked == 0 {
		ts.Fatalf("there is nothing to look at in %v", args[1:])
	}
}

func cmdNarrow(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 1, "narrow FILE|stdout|stderr")
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			ts.Fatalf("line %d is wider than 80 columns:\n%s", i+1, line)
		}
	}
}
