package tui

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/crawl"
)

func TestTheViewFitsAndLooksAsAgreed(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 50}} {
		name := fmt.Sprintf("view-%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			m := playedModel(Terminal{Width: size[0], Height: size[1], Unicode: true}, 95*time.Second)
			golden(t, "testdata/"+name+".txt", m.View().Content+"\n")
		})
	}
}

func TestTheViewHasOtherFaces(t *testing.T) {
	term := Terminal{Width: 80, Height: 24, Unicode: true}
	faces := map[string]func() *model{
		"ascii": func() *model {
			return playedModel(Terminal{Width: 80, Height: 24}, 95*time.Second)
		},
		"colour": func() *model {
			return playedModel(Terminal{Width: 80, Height: 24, Unicode: true, Colour: true}, 95*time.Second)
		},
		"help":     func() *model { m := playedModel(term, 95*time.Second); press(m, "?"); return m },
		"no-lines": func() *model { m := playedModel(term, 95*time.Second); press(m, "l"); return m },
		"stopping": func() *model { m := playedModel(term, 95*time.Second); press(m, "q"); return m },
		"starting": func() *model { return &model{v: NewLive(LiveOptions{}), frame: frame{term: term, loc: time.UTC}} },
		"no-eta": func() *model {
			m := playedModel(term, 95*time.Second)
			m.st.ETA = 0
			return m
		},
		"tiny": func() *model { return playedModel(Terminal{Width: 24, Height: 5, Unicode: true}, 95*time.Second) },
	}
	for name, face := range faces {
		t.Run(name, func(t *testing.T) {
			golden(t, "testdata/face-"+name+".txt", strings.ReplaceAll(face().View().Content, "\x1b", "␛")+"\n")
		})
	}
}

// failer is what testing.T and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var sgrCode = regexp.MustCompile("\x1b\\[[0-9]*m")

// checkFrame fails if a picture is larger than its terminal or carries
// anything but text and the colours of this package.
func checkFrame(t failer, f frame) {
	t.Helper()
	rows := f.lines()
	if len(rows) > f.term.Height {
		t.Fatalf("%d rows in a terminal of %d", len(rows), f.term.Height)
	}
	for _, l := range rows {
		text := sgrCode.ReplaceAllString(f.term.draw(l), "")
		if n := cols(text); n > f.term.Width {
			t.Fatalf("%d columns in a terminal of %d: %q", n, f.term.Width, text)
		}
		if text != Clean(text, 0) {
			t.Fatalf("not clean: %q", text)
		}
		if !f.term.Unicode && !plainASCII(text) {
			t.Fatalf("not ASCII: %q", text)
		}
	}
}

func TestEveryPictureFitsItsTerminal(t *testing.T) {
	m := playedModel(Terminal{Width: 80, Height: 24}, 95*time.Second)
	rapid.Check(t, func(r *rapid.T) {
		f := m.frame
		f.term = Terminal{
			Width: rapid.IntRange(1, 260).Draw(r, "width"), Height: rapid.IntRange(1, 70).Draw(r, "height"),
			Colour: rapid.Bool().Draw(r, "colour"), Unicode: rapid.Bool().Draw(r, "unicode"),
		}
		f.help, f.hideRows = rapid.Bool().Draw(r, "help"), rapid.Bool().Draw(r, "hide")
		f.asked = rapid.IntRange(0, 2).Draw(r, "asked")
		f.holdBusy, f.holdWait = rapid.IntRange(0, 20).Draw(r, "busy"), rapid.IntRange(0, 20).Draw(r, "wait")
		f.holdName = rapid.IntRange(0, 300).Draw(r, "name")
		f.st.Queued = rapid.Int64().Draw(r, "queued")
		f.st.Processed = rapid.Int64().Draw(r, "processed")
		f.st.PagesPerSec, f.st.BytesPerSec = rapid.Float64().Draw(r, "pages"), rapid.Float64().Draw(r, "bytes")
		f.st.ETA = time.Duration(rapid.Int64().Draw(r, "eta"))
		f.st.Elapsed = time.Duration(rapid.Int64().Draw(r, "elapsed"))
		checkFrame(r, f)
	})
}

func FuzzAPageNeverDrivesTheScreen(f *testing.F) {
	f.Add("a.example", "Retry-After", "https://a.example/\x1b[2J", "\u202etitle\x07", 80, 24)
	f.Add("東京.example", "\x9b31m", "http://\xff/", "", 60, 40)
	f.Fuzz(func(t *testing.T, host, reason, url, errText string, width, height int) {
		width, height = 1+abs(width)%250, 1+abs(height)%80
		st := crawl.Status{
			At: fakeStart, Seeds: []string{url, host}, ETA: time.Minute, ETAWhy: reason, Binding: reason,
			Busiest: []crawl.HostStatus{{Host: host, State: reason, Reason: reason}},
			Waiting: []crawl.HostStatus{{Host: host, State: "waiting", Reason: reason, Until: fakeStart.Add(time.Minute)}, {Host: url, State: "parked", Reason: errText}},
		}
		pages := []crawl.PageEvent{
			{At: fakeStart, URL: url, Outcome: reason, Error: errText, Status: 500},
			{At: fakeStart, URL: url, Outcome: "redirect", RedirectTo: errText, Status: 301},
		}
		for _, unicode := range []bool{true, false} {
			checkFrame(t, frame{term: Terminal{Width: width, Height: height, Unicode: unicode}, loc: time.UTC, st: st, known: true,
				pages: pages, logs: []line{logLine(errText), logLine("12:00:00 WRN " + reason)}, holdName: longestName(st)})
		}
		checkSafe(t, "the progress line", progressLine(st, time.UTC))
		checkSafe(t, "the idle line", idleLine(st, time.UTC))
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestShortWaitsAreNotListed(t *testing.T) {
	st := crawl.Status{At: fakeStart, Waiting: []crawl.HostStatus{
		{Host: "pacing", State: "waiting", Until: fakeStart.Add(300 * time.Millisecond)},
		{Host: "blocked", State: "waiting", Until: fakeStart.Add(30 * time.Second)},
		{Host: "parked", State: "parked"},
	}}
	got := longWaits(st)
	if len(got) != 2 || got[0].Host != "blocked" || got[1].Host != "parked" {
		t.Errorf("got %v", got)
	}
}

func TestATableKeepsItsRowsForAWhile(t *testing.T) {
	var h hold
	now := fakeStart
	h.see(5, now)
	if got := h.see(2, now.Add(9*time.Second)); got != 5 {
		t.Errorf("after 9 s: %d rows, want 5", got)
	}
	if got := h.see(2, now.Add(11*time.Second)); got != 2 {
		t.Errorf("after 11 s: %d rows, want 2", got)
	}
}

func TestASparklineShowsTheLastMinute(t *testing.T) {
	var h history
	st := crawl.Status{At: fakeStart}
	for i := range 100 {
		h.sample(st)
		st.At = st.At.Add(time.Second)
		if i >= 69 { // the last 30 seconds are busy ones
			st.Processed += 7
		}
	}
	if got := sparkline(h.pages, 60, 10); got != "▁▁▁▁▁█████" {
		t.Errorf("got %q", got)
	}
	if got := sparkline([]float64{1}, 1, 4); got != "   █" {
		t.Errorf("one sample: got %q", got)
	}
	if got := sparkline(nil, 0, 3); got != "   " {
		t.Errorf("no sample: got %q", got)
	}
	// One second later a new column is begun, the others keep their heights.
	if got := sparkline(append(h.pages[1:60:60], 0), 61, 10); got != "▁▁▁▁█████▁" {
		t.Errorf("a second later: got %q", got)
	}
	st.At = st.At.Add(10 * time.Second) // the machine slept
	h.sample(st)
	if got := len(h.pages); got != historyLen {
		t.Errorf("%d samples kept, want %d", got, historyLen)
	}
}

func TestTheProgressBarNeverClaimsToBeDone(t *testing.T) {
	f := frame{term: Terminal{Width: 100, Height: 30}, known: true}
	f.st.ETA, f.st.Processed, f.st.Queued = time.Second, 999_999_999, 1
	l := f.progress(98)
	if text := (Terminal{Unicode: true}).draw(l); !strings.Contains(text, " 99 %") {
		t.Errorf("got %q", text)
	}
}

func BenchmarkView(b *testing.B) {
	m := playedModel(Terminal{Width: 120, Height: 40, Unicode: true, Colour: true}, 95*time.Second)
	for b.Loop() {
		m.View()
	}
}
