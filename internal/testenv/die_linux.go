package testenv

import (
	"os/exec"
	"syscall"
)

// DieWithTest leaves no process behind when a test is cut off in a way that
// runs no cleanups.
func DieWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
