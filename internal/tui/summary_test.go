package tui

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/tui/fakecrawl"
)

func TestTheSummaryLooksAsAgreed(t *testing.T) {
	partial := fakecrawl.Summary(fakeStart, 95*time.Second)
	done := partial
	done.Status, done.Reason, done.Remaining, done.ParkedURLs = ledger.Completed, "Nothing left to crawl", 0, 0
	odd := partial
	odd.Reason = "Reached max_urls limit of 50,\x1b[2J stopping crawl of 東京.example and everything that belongs to it, for good"
	odd.DataDir = "my crawls/東京's shop"
	for name, c := range map[string]struct {
		s crawl.Summary
		t Terminal
	}{
		"partial":   {partial, Terminal{Width: 100, Unicode: true}},
		"completed": {done, Terminal{Width: 100, Unicode: true}},
		"colour":    {done, Terminal{Width: 100, Unicode: true, Colour: true}},
		"ascii":     {partial, Terminal{Width: 100}},
		"narrow":    {odd, Terminal{Width: 50, Unicode: true}},
		"tiny":      {partial, Terminal{Width: 10, Unicode: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := SummaryBox(c.s, c.t)
			golden(t, "testdata/summary-"+name+".txt", strings.ReplaceAll(got, "\x1b", "␛"))
			width := 0
			for row := range strings.SplitSeq(strings.TrimSuffix(got, "\n"), "\n") {
				n := cols(sgrCode.ReplaceAllString(row, ""))
				if width == 0 {
					width = n
				}
				if n != width || n > max(c.t.Width, boxMinWidth) {
					t.Errorf("a row of %d columns in a box of %d: %q", n, width, row)
				}
			}
		})
	}
}

func FuzzTheSummaryIsAlwaysABox(f *testing.F) {
	f.Add("Nothing left to crawl", "data", "completed", int64(5), 80)
	f.Add("\x1b[2J", "東京 's", "\u202e", int64(-1), 41)
	f.Fuzz(func(t *testing.T, reason, dir, status string, n int64, width int) {
		s := crawl.Summary{Reason: reason, DataDir: dir, Status: ledger.Status(status), Remaining: n, ParkedURLs: n, Duration: time.Duration(n)}
		s.Counters = ledger.Counters{Processed: n, Bytes: n, HTTP429: n}
		got := SummaryBox(s, Terminal{Width: abs(width) % 300, Unicode: true})
		want := -1
		for row := range strings.SplitSeq(strings.TrimSuffix(got, "\n"), "\n") {
			checkSafe(t, "a row", row)
			if want < 0 {
				want = cols(row)
			}
			if cols(row) != want {
				t.Fatalf("a row of %d columns in a box of %d: %q", cols(row), want, row)
			}
		}
	})
}
