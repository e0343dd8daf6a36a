package tui

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// plainFor runs Plain for a virtual while and returns its lines.
func plainFor(t *testing.T, length time.Duration, source func(elapsed time.Duration) crawl.Status) []string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		err := Plain(ctx, PlainOptions{Out: &out, Location: time.UTC, Source: func() crawl.Status {
			st := source(time.Since(start))
			st.At = fakeStart.Add(time.Since(start))
			return st
		}})
		if err != nil {
			t.Error(err)
		}
	})
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestPlainWritesALineEveryFiveSeconds(t *testing.T) {
	lines := plainFor(t, 12*time.Second, func(elapsed time.Duration) crawl.Status {
		return crawl.Status{
			Counters: ledger.Counters{Processed: int64(elapsed.Seconds()) * 1000, HTTP429: 3}, Queued: 5678, InFlight: 2,
			PagesPerSec: 3.21, BytesPerSec: 41_200, StatusClasses: [6]int64{1, 0, 1200, 20, 14, 0},
			ETA: 26 * time.Minute, ETAWhy: "a.example: 812 URLs\x1b[2J",
		}
	})
	want := []string{
		"14:00:35 5,000 done, 5,678 queued, 3.2 pages/s, 41 kB/s, in flight 2, 2xx 1,200 3xx 20 4xx 14 5xx 0 none 1, 429s 3, ETA about 26 min (a.example: 812 URLs\uFFFD[2J)",
		"14:00:40 10,000 done, 5,678 queued, 3.2 pages/s, 41 kB/s, in flight 2, 2xx 1,200 3xx 20 4xx 14 5xx 0 none 1, 429s 3, ETA about 26 min (a.example: 812 URLs\uFFFD[2J)",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

func TestPlainSaysWhatItWaitsForEveryTenSeconds(t *testing.T) {
	lines := plainFor(t, 41*time.Second, func(elapsed time.Duration) crawl.Status {
		st := crawl.Status{Queued: 12, Binding: "87 % of waiting URLs are on 3 hosts; a.example blocked by Retry-After until 14:02:10"}
		st.Processed = int64(min(elapsed, 8*time.Second).Seconds()) // moves for 8 seconds, then stands still
		return st
	})
	const idle = " Waiting for work... (frontier_empty: false, tasks_in_flight: 0) 87 % of waiting URLs are on 3 hosts; a.example blocked by Retry-After until 14:02:10"
	var got []string
	for _, l := range lines {
		got = append(got, strings.Fields(l)[1])
	}
	if strings.Join(got, " ") != "5 8 Waiting Waiting Waiting" || lines[2] != "14:00:50"+idle || lines[4] != "14:01:10"+idle {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

func TestPlainEndsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Plain(t.Context(), PlainOptions{Out: failingWriter{}, Source: func() crawl.Status { return crawl.Status{Queued: 1} }})
		if err == nil || err.Error() != "write progress: gone" {
			t.Errorf("got %v", err)
		}
	})
}
