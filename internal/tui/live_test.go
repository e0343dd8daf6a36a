package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/tui/fakecrawl"
)

// screen is an output that tests can wait on.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
	has *sync.Cond
}

func newScreen() *screen {
	s := &screen{}
	s.has = sync.NewCond(&s.mu)
	return s
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.has.Broadcast()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *screen) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Reset()
}

// await waits until text has been drawn.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	giveUp := time.AfterFunc(10*time.Second, s.has.Broadcast)
	defer giveUp.Stop()
	deadline := time.Now().Add(10 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.buf.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was never drawn; the screen got %q", text, s.buf.String())
		}
		s.has.Wait()
	}
}

// running is a live view on a fake terminal, with a keyboard.
type running struct {
	*Live
	screen  *screen
	keys    *os.File
	asked   chan string
	end     context.CancelFunc
	stopped chan error
}

func start(t *testing.T, source func() crawl.Status) *running {
	t.Helper()
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{screen: newScreen(), keys: keys, asked: make(chan string, 8), stopped: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	r.end = cancel
	r.Live = NewLive(LiveOptions{
		Source: source, Out: r.screen, In: in, Every: 5 * time.Millisecond, Location: time.UTC,
		Terminal: Terminal{Width: 90, Height: 30, Unicode: true, Live: true},
		Stop:     func() { r.asked <- "stop" },
		Force:    func() { r.asked <- "force" },
	})
	go func() { r.stopped <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		keys.Close()
		in.Close()
	})
	return r
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.stopped:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the view does not end")
		return nil
	}
}

func fakeSource() crawl.Status { return fakecrawl.Status(fakeStart, 95*time.Second) }

func TestTheViewRunsUntilTheCrawlIsOver(t *testing.T) {
	r := start(t, fakeSource)
	r.screen.await(t, "limited.demo.test")
	r.Page(crawl.PageEvent{At: fakeStart, URL: "https://new.demo.test/", Outcome: "ok", Status: 200})
	r.screen.await(t, "https://new.demo.test/")
	slog.New(r.LogHandler(slog.LevelInfo)).Warn("slow down", "domain", "b.example")
	r.screen.await(t, "slow down")
	r.end()
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	out := r.screen.String()
	for what, want := range map[string]string{"leave the alternate screen": "\x1b[?1049l", "show the cursor": "\x1b[?25h"} {
		if off := strings.LastIndex(out, want); off < 0 {
			t.Errorf("the view did not %s", what)
		}
	}
	if tail := out[strings.LastIndex(out, "\x1b[?1049l"):]; !strings.Contains(tail, "WRN slow down domain=b.example\n") {
		t.Errorf("the log line is not left on the terminal: %q", tail)
	}
	_, _ = io.WriteString(r.Log(), "afterwards\n")
	if !strings.HasSuffix(r.screen.String(), "afterwards\n") {
		t.Error("a log line after the view is lost")
	}
}

func TestCtrlCStopsAndASecondLeavesAtOnce(t *testing.T) {
	r := start(t, fakeSource)
	r.screen.await(t, "limited.demo.test")
	_, _ = r.keys.WriteString("\x03")
	if got := <-r.asked; got != "stop" {
		t.Fatalf("the first Ctrl+C asked to %s", got)
	}
	r.screen.await(t, "stopping")
	_, _ = r.keys.WriteString("q") // q never forces
	_, _ = r.keys.WriteString("\x03")
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if got := <-r.asked; got != "force" {
		t.Fatalf("the second Ctrl+C asked to %s", got)
	}
	if !strings.Contains(r.screen.String(), "\x1b[?1049l") {
		t.Error("the terminal was not given back before leaving")
	}
}

func TestKeysShowAndHide(t *testing.T) {
	m := playedModel(Terminal{Width: 90, Height: 30, Unicode: true}, 95*time.Second)
	const page, help = "https://blog.demo.test/2026/03/post-256", "least time between two requests"
	has := func(text string) bool { return strings.Contains(m.View().Content, text) }
	if !has(page) || has(help) {
		t.Fatal("page lines are not shown at first")
	}
	if press(m, "l"); has(page) {
		t.Error("l does not hide the page lines")
	}
	if press(m, "l"); !has(page) {
		t.Error("l does not show them again")
	}
	if press(m, "?"); !has(help) {
		t.Error("? does not show the help")
	}
	if press(m, "?"); has(help) {
		t.Error("? does not close the help")
	}
}

func TestAStopIsAskedForOnce(t *testing.T) {
	stops := 0
	m := playedModel(Terminal{Width: 90, Height: 30}, time.Second)
	m.v.o.Stop = func() { stops++ }
	press(m, "q")
	if cmd := press(m, "q"); stops != 1 || cmd != nil || m.asked != 1 {
		t.Errorf("%d stops after q twice, asked %d", stops, m.asked)
	}
	if cmd := ctrlC(m); cmd == nil || m.asked != 2 || stops != 1 {
		t.Errorf("Ctrl+C after q does not leave: asked %d, %d stops", m.asked, stops)
	}
}

func TestABrokenSourceEndsTheViewNotTheProgram(t *testing.T) {
	r := start(t, func() crawl.Status { panic("no status") })
	err := r.wait(t)
	if err == nil || !strings.Contains(err.Error(), "no status") {
		t.Errorf("got %v", err)
	}
}

func TestAFaultInDrawingIsShownAsALine(t *testing.T) {
	m := playedModel(Terminal{Width: 90, Height: 30}, time.Second)
	m.loc = nil // time.Time.In panics on it
	m.st.Waiting = []crawl.HostStatus{{Host: "a", Until: m.st.At.Add(time.Minute)}}
	if got := m.View().Content; !strings.Contains(got, "the crawl goes on") {
		t.Errorf("got %q", got)
	}
}

func TestManyPagesAndLogLinesStayBounded(t *testing.T) {
	var out bytes.Buffer
	v := NewLive(LiveOptions{Out: &out, Terminal: Terminal{Width: 80}})
	v.logs.start()
	for i := range 1000 {
		v.Page(crawl.PageEvent{Depth: i})
		_, _ = io.WriteString(v.Log(), "line "+Count(int64(i))+"\n")
	}
	if len(v.pages) != keptPages || v.pages[keptPages-1].Depth != 999 {
		t.Errorf("%d pages kept, the newest is %d", len(v.pages), v.pages[len(v.pages)-1].Depth)
	}
	v.logs.stop()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != maxLogKept+1 || lines[0] != "(980 earlier log lines)" || lines[maxLogKept] != "line 999" {
		t.Errorf("left on the terminal: %q", lines)
	}
}

func TestALogLineIsColouredByItsLevelAndCleaned(t *testing.T) {
	var out bytes.Buffer
	v := NewLive(LiveOptions{Out: &out, Terminal: Terminal{Width: 80, Colour: true, Unicode: true}})
	_, _ = io.WriteString(v.Log(), "12:00:00 WRN odd \x1b[2Jtitle\nplain\n")
	want := "\x1b[2m12:00:00 \x1b[m\x1b[33mWRN\x1b[m odd \uFFFD[2Jtitle\nplain\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	_, _ = io.WriteString(v.Log(), strings.Repeat("x", 1<<20))
	if out.Len() > maxLogBytes+1 {
		t.Errorf("a log line of %d bytes was let through", out.Len())
	}
}

func TestAnOutputThatFailsDoesNotHangTheView(t *testing.T) {
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer keys.Close()
	v := NewLive(LiveOptions{Source: fakeSource, Out: failingWriter{}, In: in, Every: time.Millisecond,
		Terminal: Terminal{Width: 80, Height: 24}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_ = v.Run(ctx) // whatever it says, it must return
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }
