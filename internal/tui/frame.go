package tui

import (
	"fmt"
	"strings"
	"time"

	"tiptoe/internal/crawl"
)

// frame is everything one picture depends on. Drawing it is a pure function,
// so pictures can be compared with golden files.
type frame struct {
	term     Terminal
	loc      *time.Location
	st       crawl.Status
	known    bool // st has been read at least once
	hist     history
	pages    []crawl.PageEvent // newest last
	logs     []line            // newest last
	hideRows bool              // no page lines
	help     bool
	asked    int // how often a stop was asked for

	// Rows and columns that the tables keep although they need less now, so
	// that the picture does not jump.
	holdBusy, holdWait, holdName int
}

const (
	margin    = 1  // blank columns left and right
	labelCols = 10 // the labels of the figures
	keptPages = 64 // page lines kept, more than most terminals have rows
	maxHosts  = 8  // rows of a table
	maxLogs   = 4  // rows of the log area
	sideFrom  = 150
	maxWidth  = 240
)

// lines draws the picture: no more rows and columns than the terminal has.
func (f frame) lines() []line {
	width := min(max(f.term.Width, 1), maxWidth)
	height := max(f.term.Height, 1)
	inner := max(width-2*margin, 1)

	core := f.core(inner)
	var foot []line
	if height >= 10 {
		foot = []line{{}, f.footer()}
	}
	rows := core
	if free := height - len(core) - len(foot); free > 0 && f.known {
		rows = append(rows, f.blocks(inner, free)...)
	}
	for len(foot) > 0 && len(rows)+len(foot) < height {
		rows = append(rows, line{})
	}
	rows = append(rows, foot...)
	rows = rows[:min(len(rows), height)]
	for i, l := range rows {
		l = l.clip(inner)
		if len(l.spans) > 0 {
			var indented line
			indented.to(margin)
			indented.join(l)
			l = indented
		}
		rows[i] = l.clip(width)
	}
	return rows
}

// core is what even the smallest terminal shows, the weightiest row first.
func (f frame) core(width int) []line {
	rows := []line{f.title(width)}
	if !f.known {
		var l line
		l.add(faint, "starting…")
		return append(rows, l)
	}
	rows = append(rows, f.progress(width))
	if f.term.Height >= 14 {
		rows = append(rows, f.eta(), line{})
	} else if f.st.ETA > 0 {
		rows = append(rows, f.eta())
	}
	return append(rows, f.rates(width), f.answers(), f.hosts(width))
}

func (f frame) title(width int) line {
	var l line
	l.add(strong, "tiptoe")
	l.add(plain, "  ")
	elapsed := Duration(f.st.Elapsed.Truncate(time.Second))
	note, noteStyle := "", warn
	switch {
	case f.asked > 1:
		note, noteStyle = "leaving now", bad
	case f.asked == 1 || f.st.Stopping:
		note = "stopping; Ctrl+C again leaves at once"
	}
	room := width - l.cols - cols(elapsed) - 2
	if note != "" {
		room -= cols(note) + 2
	}
	if room > 0 {
		l.add(plain, seedText(f.st.Seeds, room))
	}
	if note != "" {
		l.add(plain, "  ")
		l.add(noteStyle, note)
	}
	l.right(width, faint, elapsed)
	return l
}

func seedText(seeds []string, room int) string {
	if len(seeds) == 0 {
		return ""
	}
	more := ""
	if n := len(seeds) - 1; n > 0 {
		more = " and " + Count(int64(n)) + " more"
	}
	if room <= len(more)+8 {
		return Clean(seeds[0], room)
	}
	return cleanMiddle(seeds[0], room-len(more)) + more
}

func (f frame) progress(width int) line {
	var nums line
	nums.add(strong, Count(f.st.Processed))
	nums.add(faint, " done  ")
	nums.add(strong, Count(f.st.Queued))
	nums.add(faint, " queued")
	total := f.st.Processed + f.st.Queued + f.st.InFlight + f.st.Uncommitted
	barCols := min(width-nums.cols-9, 60)
	if f.st.ETA <= 0 || total <= 0 || barCols < 8 {
		return nums
	}
	fraction := float64(f.st.Processed) / float64(total)
	var l line
	l.bar(barCols, fraction)
	// Never "100 %" while something is left.
	percent := int(fraction * 100)
	if percent == 100 && f.st.Processed < total {
		percent = 99
	}
	l.add(plain, fmt.Sprintf("  %3d %%  ", percent))
	l.join(nums)
	return l
}

func (f frame) eta() line {
	var l line
	if f.st.ETA > 0 {
		l.add(plain, about(f.st.ETA)+" left")
		if f.st.ETAWhy != "" {
			l.add(faint, " — "+f.st.ETAWhy)
		}
		return l
	}
	if f.st.Binding != "" {
		l.add(faint, f.st.Binding)
	}
	return l
}

func (f frame) rates(width int) line {
	var l line
	if width < 50 {
		l.add(strong, perSec(f.st.PagesPerSec))
		l.add(faint, " pages/s  ")
		l.add(strong, bytesPerSec(f.st.BytesPerSec))
		return l
	}
	half := width / 2
	spark := min(30, half-labelCols-11)
	l.add(faint, "pages/s")
	l.to(labelCols)
	l.add(strong, perSec(f.st.PagesPerSec))
	if spark >= 6 {
		l.to(labelCols + 9)
		l.add(info, sparkline(f.hist.pages, f.hist.total, spark))
	}
	second := min(half, labelCols+9+30+3)
	l.to(second)
	l.add(faint, "bytes/s")
	l.to(second + labelCols - 1)
	l.add(strong, strings.TrimSuffix(bytesPerSec(f.st.BytesPerSec), "/s"))
	if spark >= 6 {
		l.to(second + labelCols - 1 + 9)
		l.add(info, sparkline(f.hist.bytes, f.hist.total, spark))
	}
	return l
}

// answers counts the answers by class. A zero is faint: what never happened
// should not draw the eye.
func (f frame) answers() line {
	var l line
	l.add(faint, "answers")
	l.to(labelCols)
	for _, c := range []struct {
		name  string
		style style
		n     int64
	}{
		{"2xx", good, f.st.StatusClasses[2]},
		{"3xx", info, f.st.StatusClasses[3]},
		{"4xx", warn, f.st.StatusClasses[4]},
		{"5xx", bad, f.st.StatusClasses[5]},
		{"none", bad, f.st.StatusClasses[0]},
		{"429s", warn, f.st.HTTP429},
	} {
		l.figure(c.name, c.style, c.n)
	}
	return l
}

func (l *line) figure(name string, st style, n int64) {
	if n == 0 {
		l.add(faint, name+" 0  ")
		return
	}
	l.add(st, name)
	l.add(plain, " "+Count(n)+"  ")
}

func (f frame) hosts(width int) line {
	var l line
	l.add(faint, "hosts")
	l.to(labelCols)
	h := f.st.Hosts
	// The last of these are the first to go when the terminal is narrow.
	var flight line
	flight.add(faint, "in flight ")
	flight.add(strong, Count(f.st.InFlight))
	if limit := f.workers(); limit > 0 {
		flight.add(faint, " of "+Count(limit))
	}
	for i, c := range []struct {
		name  string
		style style
		n     int
	}{
		{"running", good, h.Running},
		{"ready", info, h.Ready},
		{"waiting", warn, h.Waiting},
		{"parked", bad, h.Parked},
		{"idle", faint, h.Idle},
	} {
		text := Count(int64(c.n)) + " " + c.name
		if i > 0 && l.cols+len(text)+2+flight.cols > width {
			break
		}
		if c.n == 0 {
			l.add(faint, text+"  ")
			continue
		}
		l.add(plain, Count(int64(c.n))+" ")
		l.add(c.style, c.name)
		l.add(plain, "  ")
	}
	l.join(flight)
	return l
}

// workers is the size of the first concurrency layer, if the status names it.
func (f frame) workers() int64 {
	for _, layer := range f.st.Layers {
		if strings.EqualFold(layer.Name, "workers") {
			return layer.Limit
		}
	}
	return 0
}

func (f frame) footer() line {
	var l line
	for i, k := range [][2]string{{"q", "stop"}, {"l", "page lines"}, {"?", "help"}} {
		if i > 0 {
			l.add(faint, " · ")
		}
		l.add(plain, k[0])
		l.add(faint, " "+k[1])
	}
	return l
}
