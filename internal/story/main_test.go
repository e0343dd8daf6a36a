package story

import (
	"os"
	"testing"

	"tiptoe/internal/testenv"
)

// binary is the tiptoe command, as users build it.
var binary string

// full reports whether the runs of many minutes were asked for.
func full() bool { return os.Getenv("TIPTOE_STORY") == "full" }

func TestMain(m *testing.M) {
	os.Exit(testenv.WithProgram(func(path string) int {
		binary = path
		punctual()
		return m.Run()
	}))
}
