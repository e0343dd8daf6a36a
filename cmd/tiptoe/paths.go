package main

import (
	"os"
	"path/filepath"
	"strings"
)

// defaultDir is where data goes when nobody says otherwise.
const defaultDir = "tiptoe-data"

// shortPath is a path as a person in this folder would write it.
func shortPath(path string) string {
	cwd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(cwd, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}

// dirFlag is the flag that names a data directory in a command to copy; the
// default one needs none.
func dirFlag(dir string) string {
	dir = shortPath(dir)
	if dir == defaultDir {
		return ""
	}
	if strings.ContainsAny(dir, " \t'\"\\$`&;|<>()*?[]#~!{}") {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return " --data-dir " + dir
}
