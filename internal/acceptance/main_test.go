package acceptance

import (
	"os"
	"testing"

	"tiptoe/internal/testenv"
)

// raceDetector says that these tests were built with it. It does not reach the
// tiptoe command, which is built as users build it, but makes the tests' own
// work several times slower.
var raceDetector bool

// binary is the tiptoe command, as users build it.
var binary string

func TestMain(m *testing.M) {
	os.Exit(testenv.WithProgram(func(path string) int {
		binary = path
		return m.Run()
	}))
}
