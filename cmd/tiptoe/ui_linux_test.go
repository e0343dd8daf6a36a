package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal runs the program on a pseudo-terminal of its own.
func onTerminal(t *testing.T, args ...string) (cmd *exec.Cmd, keyboard *os.File, screen *tape) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd = exec.Command("tiptoe", args...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen = new(tape)
	go io.Copy(screen, keyboard)
	return cmd, keyboard, screen
}

func Test_on_a_terminal_the_dashboard_stays_until_Ctrl_C(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	cmd, keyboard, screen := onTerminal(t, "crawl", site.URL, "--ui", "--seeding", "none")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(screen.String(), "until Ctrl+C."); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the screen shows\n%s", screen.String())
		}
	}
	if !strings.Contains(screen.String(), "Nothing left to crawl") {
		t.Errorf("there is no summary:\n%s", screen.String())
	}
	m := dashboardLine.FindStringSubmatch(screen.String())
	if m == nil {
		t.Fatalf("there is no address:\n%s", screen.String())
	}
	req, err := http.NewRequest("GET", m[1]+"/v1/jobs/crawl_1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m[2])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), `"status":"completed"`) {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	if _, err := keyboard.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v:\n%s", err, screen.String())
		}
	case <-time.After(10 * time.Second):
		t.Error("Ctrl+C did not end it")
	}
}
