package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// raceDetector says that these tests were built with it. It does not reach the
// tiptoe command, which is built as users build it, but makes the tests' own
// work several times slower.
var raceDetector bool

// binary is the tiptoe command, as users build it.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tiptoe-acceptance-")
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
		return m.Run()
	}())
}
