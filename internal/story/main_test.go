package story

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the tiptoe command, as users build it.
var binary string

// full reports whether the runs of many minutes were asked for.
func full() bool { return os.Getenv("TIPTOE_STORY") == "full" }

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tiptoe-story-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "tiptoe")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "tiptoe/cmd/tiptoe").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build tiptoe: %v\n%s", err, out)
			return 1
		}
		punctual()
		return m.Run()
	}())
}
