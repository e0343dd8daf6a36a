package tui

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// Terminal says what an output can show.
type Terminal struct {
	Width, Height int
	Live          bool // a terminal that understands cursor movement, and is ours to draw on
	Colour        bool
	Unicode       bool
}

// Detect looks at an output and the environment. NO_COLOR and TERM=dumb
// switch colours off, a locale without UTF-8 the characters beyond ASCII.
// What is no terminal, a dumb one, or one that this process is in the
// background of, is not Live: print plain lines there.
func Detect(f *os.File, getenv func(string) string) Terminal {
	t := Terminal{Width: 80, Height: 24}
	t.Unicode = utf8Locale(getenv)
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return t
	}
	if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
		t.Width, t.Height = w, h
	}
	kind := getenv("TERM")
	dumb := kind == "dumb" || kind == "" && runtime.GOOS != "windows"
	t.Colour = !dumb && getenv("NO_COLOR") == ""
	t.Live = !dumb && foreground(fd)
	return t
}

// utf8Locale follows the order of POSIX: LC_ALL, then LC_CTYPE, then LANG.
func utf8Locale(getenv func(string) string) bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(key)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin"
}
