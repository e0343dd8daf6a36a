//go:build !unix

package tui

func foreground(int) bool { return true }
