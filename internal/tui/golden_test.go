package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	tea "charm.land/bubbletea/v2"

	"tiptoe/internal/crawl"
	"tiptoe/internal/tui/fakecrawl"
)

var update = flag.Bool("update", false, "rewrite the golden files and the picture in docs")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares with a file, or rewrites it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", filepath.Base(path), diff)
	}
}

var fakeStart = time.Date(2026, 3, 14, 14, 0, 30, 0, time.UTC)

// playedModel is a model that has watched the made-up crawl for a while.
func playedModel(term Terminal, elapsed time.Duration) *model {
	v := NewLive(LiveOptions{Terminal: term, Location: time.UTC})
	m := &model{v: v, frame: frame{term: term, loc: time.UTC}}
	v.logs.start()
	const step = time.Second
	for at := time.Duration(0); at <= elapsed; at += step {
		for _, ev := range fakecrawl.Pages(fakeStart, max(0, at-step), at) {
			v.Page(ev)
		}
		if at == 20*time.Second || at == 71*time.Second {
			_, _ = v.Log().Write([]byte(fakeStart.Add(at).Format(time.TimeOnly) +
				" WRN throttled, slowing down domain=limited.demo.test delay=3s error_streak=2\n"))
		}
		m.Update(statusMsg{fakecrawl.Status(fakeStart, at), append([]crawl.PageEvent(nil), v.pages...), v.logs.newest()})
	}
	return m
}

func press(m *model, key string) tea.Cmd {
	_, cmd := m.Update(tea.KeyPressMsg{Code: rune(key[0]), Text: key})
	return cmd
}

func ctrlC(m *model) tea.Cmd {
	_, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	return cmd
}
