package tui

import (
	"context"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPTY opens a pseudo-terminal: what is written to the first end is typed
// into the second.
func openPTY(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	resize(t, keyboard, 90, 30)
	return keyboard, terminal
}

func resize(t *testing.T, keyboard *os.File, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		t.Fatal(err)
	}
}

func TestTheTerminalIsLeftAsItWasFound(t *testing.T) {
	keyboard, terminal := openPTY(t)
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(k string) string { return map[string]string{"TERM": "xterm", "LANG": "C.UTF-8"}[k] }
	term := Detect(terminal, getenv)
	if want := (Terminal{Width: 90, Height: 30, Live: true, Colour: true, Unicode: true}); term != want {
		t.Errorf("the terminal is %+v, want %+v", term, want)
	}
	if dumb := Detect(terminal, func(string) string { return "dumb" }); dumb.Live || dumb.Colour {
		t.Errorf("a dumb terminal is %+v", dumb)
	}
	if bare := Detect(terminal, func(k string) string { return map[string]string{"TERM": "xterm", "NO_COLOR": "1"}[k] }); bare.Colour || !bare.Live {
		t.Errorf("with NO_COLOR the terminal is %+v", bare)
	}

	shown := newScreen()
	drained := make(chan struct{})
	go func() { // what a terminal emulator does
		defer close(drained)
		_, _ = io.Copy(shown, keyboard)
	}()
	for name, end := range map[string]func(cancel context.CancelFunc){
		"the crawl ends":    func(cancel context.CancelFunc) { cancel() },
		"Ctrl+C, and again": func(context.CancelFunc) { _, _ = keyboard.WriteString("\x03\x03") },
		"the terminal shrinks": func(cancel context.CancelFunc) {
			resize(t, keyboard, 7, 3)
			_ = unix.Kill(os.Getpid(), unix.SIGWINCH)
			time.AfterFunc(50*time.Millisecond, cancel)
		},
	} {
		shown.reset()
		resize(t, keyboard, 90, 30)
		v := NewLive(LiveOptions{Source: fakeSource, Out: terminal, In: terminal, Terminal: term, Every: 5 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.Run(ctx) }()
		shown.await(t, "limited.demo.test")
		during, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || during.Lflag&unix.ICANON != 0 {
			t.Errorf("%s: the terminal is not in raw mode while the view is up (%v)", name, err)
		}
		end(cancel)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the view does not end", name)
		}
		cancel()
		after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%s: the terminal's modes differ (%v):\nbefore %+v\nafter  %+v", name, err, before, after)
		}
	}
	terminal.Close()
	keyboard.Close()
	<-drained
}
