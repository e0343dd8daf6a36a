//go:build !linux

package story

import "os/exec"

func punctual() {}

func launch(cmd *exec.Cmd) error { return cmd.Start() }
