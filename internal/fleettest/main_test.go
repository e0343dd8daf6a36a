package fleettest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the tiptoe command, as users build it.
var binary string

// full asks for the long forms.
var full = os.Getenv("TIPTOE_FLEET") == "full"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tiptoe-fleettest-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "tiptoe")
		if out, err := exec.Command("go", "build", "-o", binary, "tiptoe/cmd/tiptoe").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build tiptoe: %v\n%s", err, out)
			return 1
		}
		// Most of their time these tests wait for leases and paces.
		if err := flag.Set("test.parallel", "4"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// shortOr picks a figure by the form that runs.
func shortOr[T any](short, long T) T {
	if full {
		return long
	}
	return short
}
