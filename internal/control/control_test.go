package control_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tiptoe/internal/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/hello" {
		http.Error(w, "nothing here", http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(`"hello ` + r.FormValue("name") + `"`))
})

func ask(t *testing.T, dir string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var s string
	err := control.Get(ctx, dir, "/hello", url.Values{"name": {"you & me"}}, &s)
	return s, err
}

func serve(t *testing.T, dir string) *control.Server {
	t.Helper()
	s, err := control.Serve(dir, hello)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// short is a temporary folder whose path leaves room for a socket.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func Test_a_running_process_answers_and_leaves_nothing_behind(t *testing.T) {
	dir := short(t)
	if _, err := ask(t, dir); !errors.Is(err, control.ErrNobody) {
		t.Errorf("nobody is there, but: %v", err)
	}
	s := serve(t, dir)
	if got, err := ask(t, dir); err != nil || got != "hello you & me" {
		t.Errorf("%q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(dir, "control.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; only the owner may connect", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := ask(t, dir); !errors.Is(err, control.ErrNobody) {
		t.Errorf("nobody is there any more, but: %v", err)
	}
}

func Test_a_socket_that_a_killed_process_left_is_replaced(t *testing.T) {
	dir := short(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "control.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := ask(t, dir); !errors.Is(err, control.ErrNobody) {
		t.Errorf("nobody listens behind a stale socket, but: %v", err)
	}
	s := serve(t, dir)
	defer s.Close()
	if got, err := ask(t, dir); err != nil || got != "hello you & me" {
		t.Errorf("%q, %v", got, err)
	}
}

func Test_a_path_too_long_for_a_socket_is_no_obstacle(t *testing.T) {
	dir := filepath.Join(short(t), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	temp := short(t)
	t.Setenv("TMPDIR", temp)
	s := serve(t, dir)
	if got, err := ask(t, dir); err != nil || got != "hello you & me" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range []string{dir, temp} {
		if left, _ := os.ReadDir(d); len(left) != 0 {
			t.Errorf("left behind in %s: %v", d, left)
		}
	}
	if _, err := ask(t, dir); !errors.Is(err, control.ErrNobody) {
		t.Errorf("nobody is there any more, but: %v", err)
	}
}

func Test_a_place_that_takes_no_socket_is_an_error_and_not_a_panic(t *testing.T) {
	dir := filepath.Join(short(t), "gone")
	if _, err := control.Serve(dir, hello); err == nil || !strings.Contains(err.Error(), "control socket: ") {
		t.Errorf("%v", err)
	}
}

func Test_a_refusal_comes_with_the_words_of_the_process(t *testing.T) {
	dir := short(t)
	s := serve(t, dir)
	defer s.Close()
	var no *control.Refusal
	if err := control.Get(context.Background(), dir, "/else", nil, nil); !errors.As(err, &no) || no.Status != 404 || no.Text != "nothing here" {
		t.Errorf("%v", err)
	}
}
