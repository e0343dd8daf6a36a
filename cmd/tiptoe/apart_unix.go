//go:build unix

package main

import "syscall"

// apart keeps the Ctrl+C of our terminal from a program that we start.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
