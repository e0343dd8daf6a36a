package story

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// The stories are about milliseconds, and other tests may keep all cores busy.
// The servers and crawlers here need little time, but they need it when it is
// due; so they ask to go first. Who may not ask goes without.
const goFirst = -15

// punctual asks for this process.
func punctual() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, goFirst)
		}
	}
}

// launch starts a program in a session of its own, because Linux shares the
// cores between sessions before it looks at priorities. It ends with the test,
// however that ends.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(strconv.Itoa(goFirst)), 0)
	return nil
}
