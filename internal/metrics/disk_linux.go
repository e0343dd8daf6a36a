package metrics

import "golang.org/x/sys/unix"

// room is what the file system of dir has left for us, and its size.
func room(dir string) (free, size uint64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, false
	}
	block := uint64(st.Bsize)
	return st.Bavail * block, st.Blocks * block, true
}
