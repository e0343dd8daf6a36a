package fleettest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"tiptoe/internal/testenv"
)

// binary is the tiptoe command, as users build it.
var binary string

// full asks for the long forms.
var full = os.Getenv("TIPTOE_FLEET") == "full"

func TestMain(m *testing.M) {
	os.Exit(testenv.WithProgram(func(path string) int {
		binary = path
		// Most of their time these tests wait for leases and paces.
		if err := flag.Set("test.parallel", "4"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}))
}

// shortOr picks a figure by the form that runs.
func shortOr[T any](short, long T) T {
	if full {
		return long
	}
	return short
}
