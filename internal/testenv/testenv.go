// Package testenv answers one question for tests: is the program or the file
// this test stands on here?
//
// Some tests drive real things that are not part of a Go installation: a web
// server, a tree of documentation to crawl, an SQLite shell. On a developer's
// machine a missing one skips the test with a sentence that says what to
// install. Under continuous integration (CI=true) the same absence fails the
// test: a check that quietly did not run must never look like one that passed.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Need returns the path of a program, or ends the test: skipped, or failed
// when CI=true. Debian keeps servers in the sbin folders, which an ordinary
// user's PATH leaves out, so those are looked into as well.
func Need(t testing.TB, program string) (path string) {
	t.Helper()
	path, ok := find(program)
	if !ok {
		absent(t, "needs the program "+strconv.Quote(program)+
			", which is not installed here (make test installs it where it may)")
	}
	return path
}

// NeedPath ends the test unless a file or folder exists: skipped, or failed
// when CI=true.
func NeedPath(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		absent(t, "needs "+path+", which is not here (make test installs it where it may)")
	}
}

// CI reports whether an absence is a failure. Any value strconv calls true
// counts, as the CI services do not agree on one spelling.
func CI() bool {
	on, err := strconv.ParseBool(os.Getenv("CI"))
	return err == nil && on
}

func find(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, true
		}
	}
	return "", false
}

func absent(t testing.TB, why string) {
	t.Helper()
	if CI() {
		t.Fatal("CI=true, and this test " + why)
	}
	t.Skip("this test " + why)
}
