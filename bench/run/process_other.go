//go:build !linux

package main

import (
	"os"
	"os/exec"
	"time"
)

func canPin(int, int) bool { return false }

func startPinned(cmd *exec.Cmd, _ int) error { return cmd.Start() }

func peakRSS(*os.ProcessState) int64 { return 0 }

func cpuOf(int) time.Duration { return 0 }
