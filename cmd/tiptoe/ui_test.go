package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var dashboardLine = regexp.MustCompile(`Dashboard: (http://127\.0\.0\.1:[0-9]+)/#key=(tt_[A-Za-z0-9_-]+)`)

// cmdDashboard waits for the address that a crawl with --ui says, once.
func cmdDashboard(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 1, "dashboard NAME")
	j := jobOf(ts, args[0])
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		said := j.errOut.String() + j.out.String()
		if m := dashboardLine.FindStringSubmatch(said); m != nil {
			if strings.Count(said, m[2]) != 1 {
				ts.Fatalf("the key is said more than once:\n%s", said)
			}
			ts.Setenv("TIPTOE_SERVER", m[1])
			ts.Setenv("TIPTOE_KEY", m[2])
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s has not said where its dashboard is:\n%s", args[0], said)
		}
	}
}
