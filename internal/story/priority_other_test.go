//go:build !linux

package story

func punctual() {}
