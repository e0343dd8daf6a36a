package tui

import (
	"math"
	"strings"
	"time"

	"tiptoe/internal/crawl"
)

// historyLen is how many seconds the sparklines look back.
const historyLen = 60

// history holds what was done in each of the last seconds. The rates are
// taken from the counters, not from the smoothed rates of the status, so
// that a pause is seen as a pause.
type history struct {
	pages, bytes []float64
	total        int // samples ever taken
	at           time.Time
	lastPages    int64
	lastBytes    int64
}

func (h *history) sample(st crawl.Status) {
	if h.at.IsZero() || st.At.Before(h.at) {
		h.at, h.lastPages, h.lastBytes = st.At, st.Processed, st.Bytes
		return
	}
	dt := st.At.Sub(h.at)
	if dt < time.Second {
		return
	}
	sec := dt.Seconds()
	pages := float64(max(0, st.Processed-h.lastPages)) / sec
	bytes := float64(max(0, st.Bytes-h.lastBytes)) / sec
	// A late sample stands for every second it covers.
	for range min(historyLen, int(sec)) {
		h.pages = push(h.pages, pages)
		h.bytes = push(h.bytes, bytes)
		h.total++
	}
	h.at, h.lastPages, h.lastBytes = st.At, st.Processed, st.Bytes
}

func push(s []float64, v float64) []float64 {
	if len(s) == historyLen {
		copy(s, s[1:])
		s = s[:historyLen-1]
	}
	return append(s, v)
}

var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the samples in width columns, newest on the right. With
// fewer columns than samples, several samples share a column (their mean);
// which ones, depends on their number since the beginning (total), so that
// columns move to the left and do not change their height on the way.
func sparkline(samples []float64, total, width int) string {
	if width <= 0 {
		return ""
	}
	per := max(1, (historyLen+width-1)/width)
	size := total % per // of the newest column, which may still be filling
	if size == 0 {
		size = per
	}
	var points []float64
	for end := len(samples); end > 0 && len(points) < width; end, size = end-size, per {
		sum, n := 0.0, 0
		for _, v := range samples[max(0, end-size):end] {
			sum, n = sum+v, n+1
		}
		points = append(points, sum/float64(n))
	}
	top := 0.0
	for _, p := range points {
		top = math.Max(top, p)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(points)))
	for i := len(points) - 1; i >= 0; i-- {
		level := 0
		if top > 0 {
			level = int(math.Round(points[i] / top * float64(len(sparks)-1)))
		}
		b.WriteRune(sparks[level])
	}
	return b.String()
}

// bar adds a progress bar of a width for a fraction of 0 to 1.
func (l *line) bar(width int, fraction float64) {
	full := int(math.Round(math.Min(1, math.Max(0, fraction)) * float64(width)))
	l.add(good, strings.Repeat("━", full))
	l.add(faint, strings.Repeat("─", width-full))
}
