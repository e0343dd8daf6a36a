package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// verdict stands in for a test and remembers how it was ended. Skip and Fatal
// leave the goroutine, as the real ones do.
type verdict struct {
	testing.TB
	how, why string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any) { v.end("skipped", args) }

func (v *verdict) Fatal(args ...any) { v.end("failed", args) }

func (v *verdict) end(how string, args []any) {
	v.how, v.why = how, args[0].(string)
	runtime.Goexit()
}

func run(check func(t testing.TB)) *verdict {
	v := &verdict{how: "ran"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(v)
	}()
	<-done
	return v
}

func TestAMissingProgramSkipsAtHomeAndFailsUnderCI(t *testing.T) {
	need := func(t testing.TB) { Need(t, "no-such-program-anywhere") }
	for ci, want := range map[string]string{
		"": "skipped", "false": "skipped", "0": "skipped", "nonsense": "skipped",
		"true": "failed", "1": "failed",
	} {
		t.Setenv("CI", ci)
		got := run(need)
		if got.how != want || !strings.Contains(got.why, "no-such-program-anywhere") {
			t.Errorf("CI=%q: %s with %q, want %s naming the program", ci, got.how, got.why, want)
		}
	}
}

func TestAMissingPathSkipsAtHomeAndFailsUnderCI(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "doc-tree")
	need := func(t testing.TB) { NeedPath(t, missing) }
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		if got := run(need); got.how != want || !strings.Contains(got.why, missing) {
			t.Errorf("CI=%q: %s with %q, want %s naming the path", ci, got.how, got.why, want)
		}
	}
	if got := run(func(t testing.TB) { NeedPath(t, filepath.Dir(missing)) }); got.how == "skipped" || got.how == "failed" {
		t.Errorf("a path that exists ended the test: %s", got.why)
	}
}

func TestAProgramOnThePathIsFound(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "tiptoe-fake")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("CI", "true")
	var found string
	got := run(func(t testing.TB) { found = Need(t, "tiptoe-fake") })
	if got.how != "ran" || found != program {
		t.Fatalf("%s, found %q, want %q", got.how, found, program)
	}
}
