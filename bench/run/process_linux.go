package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// canPin reports whether both cores exist, and are two.
func canPin(a, b int) bool {
	var set unix.CPUSet
	return unix.SchedGetaffinity(0, &set) == nil && a != b && set.IsSet(a) && set.IsSet(b)
}

// startPinned starts cmd on one core: a child inherits the cores of the
// thread that forks it. On a machine without that core it is not pinned.
func startPinned(cmd *exec.Cmd, core int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the allowed cores: %w", err)
	}
	if !before.IsSet(core) {
		return cmd.Start()
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pin to core %d: %w", core, err)
	}
	startErr := cmd.Start()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		return fmt.Errorf("unpin: %w", err)
	}
	return startErr
}

// peakRSS is in bytes. The kernel counts the moment between fork and exec to
// the child, so a figure below this program's own size is not to be had.
func peakRSS(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// cpuOf is the processor time a running process has used; 0 if unknown.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; the fields after it are
	// numbers, user and system time being the 12th and 13th.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(string(f), 10, 64)
		ticks += n
	}
	const perSecond = 100 // USER_HZ is 100 on every Linux that Go runs on
	return time.Duration(ticks) * time.Second / perSecond
}
