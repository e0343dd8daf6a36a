package fleettest

import (
	"os/exec"
	"syscall"
)

// dieWithTest leaves no process behind when a test is cut off in a way that
// runs no cleanups.
func dieWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
