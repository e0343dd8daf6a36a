//go:build unix

package tui

import "golang.org/x/sys/unix"

// foreground reports whether this process may draw: changing the modes of a
// terminal from a background job would stop the whole job.
func foreground(fd int) bool {
	pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || pgrp == unix.Getpgrp()
}
