package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var greeting = regexp.MustCompile(`(?s)tiptoe serves (http://[0-9.:]+) .*Operator key: (tt_[A-Za-z0-9_-]+)\n`)

// cmdService starts a service on a port of its own and waits for its first
// key: $TIPTOE_SERVER and $TIPTOE_KEY are then what the client reads.
func cmdService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 1, "service NAME [FLAG...]")
	cmdStart(ts, false, append([]string{args[0], "tiptoe", "serve", "--listen", "127.0.0.1:0", "--data-dir", args[0]}, args[1:]...))
	j := jobOf(ts, args[0])
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if m := greeting.FindStringSubmatch(j.out.String()); m != nil {
			ts.Setenv("TIPTOE_SERVER", m[1])
			ts.Setenv("TIPTOE_KEY", m[2])
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s has not begun in 30 s:\n%s%s", args[0], j.out.String(), j.errOut.String())
		}
	}
}

// cmdKeep makes the last output's first line a variable.
func cmdKeep(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 1, "keep NAME")
	line, _, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	ts.Setenv(args[0], line)
}
