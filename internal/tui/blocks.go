package tui

import (
	"sort"
	"time"

	"tiptoe/internal/crawl"
)

// block is a part of the picture whose number of rows depends on the room.
type block struct {
	want int                   // rows it would like, without its heading
	head int                   // rows of heading
	draw func(rows int) []line // with the heading
	got  int
}

// blocks fills the free rows below the figures: first every block gets a
// blank row, its heading and one row, in order of weight; then the rows left
// go round. With a wide terminal the two tables stand side by side.
func (f frame) blocks(width, free int) []line {
	var list []*block
	if f.help {
		text := helpText()
		list = []*block{{want: len(text), draw: func(n int) []line { return text[:min(n, len(text))] }}}
	} else {
		list = append(f.tables(width), &block{want: min(len(f.logs), maxLogs), draw: func(n int) []line { return f.logs[len(f.logs)-n:] }})
		if !f.hideRows {
			list = append(list, &block{want: keptPages, draw: func(n int) []line { return f.pageRows(width, n) }})
		}
	}
	for _, b := range list {
		if cost := 1 + b.head + 1; b.want > 0 && free >= cost {
			b.got, free = 1, free-cost
		}
	}
	for more := true; more; {
		more = false
		for _, b := range list {
			if b.got > 0 && b.got < b.want && free > 0 {
				b.got, free, more = b.got+1, free-1, true
			}
		}
	}
	var rows []line
	for _, b := range list {
		if b.got > 0 {
			rows = append(rows, line{})
			rows = append(rows, b.draw(b.got)...)
		}
	}
	return rows
}

func (f frame) tables(width int) []*block {
	busy, wait := f.st.Busiest, longWaits(f.st)
	wantBusy := min(maxHosts, max(len(busy), f.holdBusy))
	wantWait := min(maxHosts, max(len(wait), f.holdWait))
	if width+2*margin < sideFrom || wantBusy == 0 || wantWait == 0 {
		return []*block{
			{want: wantBusy, head: 1, draw: func(n int) []line { return f.busyTable(busy, width, n) }},
			{want: wantWait, head: 1, draw: func(n int) []line { return f.waitTable(wait, width, n) }},
		}
	}
	left := width/2 - 2
	return []*block{{want: max(wantBusy, wantWait), head: 1, draw: func(n int) []line {
		a, b := f.busyTable(busy, left, n), f.waitTable(wait, width-left-4, n)
		for i := range a {
			a[i] = a[i].clip(left)
			if i < len(b) {
				a[i].to(left + 4)
				a[i].join(b[i])
			}
		}
		return a
	}}}
}

// nameCols is the width both tables give to host names.
func (f frame) nameCols() int { return min(44, max(18, f.holdName)) }

// longestName is the width of the longest host name in the tables.
func longestName(st crawl.Status) int {
	n := 0
	for _, list := range [][]crawl.HostStatus{st.Busiest, st.Waiting} {
		for _, h := range list {
			n = max(n, cols(Clean(h.Host, 0)))
		}
	}
	return n
}

// longWaits leaves out hosts that merely keep their pace: a row that is there
// for less than a second tells nobody anything.
func longWaits(st crawl.Status) []crawl.HostStatus {
	var out []crawl.HostStatus
	for _, h := range st.Waiting {
		if !h.Until.IsZero() && h.Until.Sub(st.At) < time.Second && h.State != "parked" {
			continue
		}
		out = append(out, h)
	}
	return out
}

func stateStyle(state string) style {
	switch state {
	case "running":
		return good
	case "ready":
		return info
	case "waiting":
		return warn
	case "parked":
		return bad
	}
	return faint
}

// busyTable draws a heading and n rows; rows without a host are blank. The
// busiest are picked first and then put in the order of their names, so that
// rows do not change places four times a second.
func (f frame) busyTable(hosts []crawl.HostStatus, width, n int) []line {
	hosts = append([]crawl.HostStatus(nil), hosts[:min(n, len(hosts))]...)
	sort.SliceStable(hosts, func(i, j int) bool { return hosts[i].Host < hosts[j].Host })

	// Columns right of the name; a narrow table leaves out the last ones.
	type column struct {
		name  string
		cols  int
		left  bool
		value func(crawl.HostStatus) (style, string)
	}
	columns := []column{
		{"state", 7, true, func(h crawl.HostStatus) (style, string) { return stateStyle(h.State), h.State }},
		{"queued", 9, false, func(h crawl.HostStatus) (style, string) { return plain, Count(h.Queued) }},
		{"flight", 6, false, func(h crawl.HostStatus) (style, string) {
			return plain, Count(int64(h.InFlight)) + "/" + Count(int64(h.Cap))
		}},
		{"gap", 7, false, func(h crawl.HostStatus) (style, string) { return plain, Duration(h.Gap) }},
		{"req/s", 5, false, func(h crawl.HostStatus) (style, string) { return plain, perSec(h.Recent) }},
		{"429s", 5, false, func(h crawl.HostStatus) (style, string) { return zero(h.HTTP429, warn) }},
		{"learned", 8, false, func(h crawl.HostStatus) (style, string) {
			if h.Learned == 0 {
				return faint, "–"
			}
			return warn, Duration(h.Learned)
		}},
	}
	const gap = 2
	need := 0
	for _, c := range columns {
		need += gap + c.cols
	}
	for len(columns) > 1 && width-need < 17 {
		need -= gap + columns[len(columns)-1].cols
		columns = columns[:len(columns)-1]
	}
	name := max(8, min(f.nameCols(), width-need))

	var head line
	head.add(faint, "host")
	at := name
	for _, c := range columns {
		if c.left {
			head.to(at + gap)
			head.add(faint, c.name)
		} else {
			head.right(at+gap+c.cols, faint, c.name)
		}
		at += gap + c.cols
	}
	rows := []line{head}
	for i := range n {
		var l line
		if i < len(hosts) {
			l.add(plain, cleanMiddle(hosts[i].Host, name))
			at := name
			for _, c := range columns {
				st, v := c.value(hosts[i])
				v = Clean(v, c.cols)
				if c.left {
					l.to(at + gap)
					l.add(st, v)
				} else {
					l.right(at+gap+c.cols, st, v)
				}
				at += gap + c.cols
			}
		}
		rows = append(rows, l)
	}
	return rows
}

func zero(n int64, st style) (style, string) {
	if n == 0 {
		return faint, "0"
	}
	return st, Count(n)
}

// waitTable draws a heading and n rows: who waits, until when, and for what.
func (f frame) waitTable(hosts []crawl.HostStatus, width, n int) []line {
	hosts = hosts[:min(n, len(hosts))]
	const queued, until = 9, 18
	name := max(8, min(f.nameCols(), width-(2+queued+2+until)-12))
	cell := func(l *line, h, q, u, why string, st, whySt style) {
		l.add(st, cleanMiddle(h, name))
		l.right(name+2+queued, st, q)
		l.to(name + 2 + queued + 2)
		l.add(st, Clean(u, until))
		if room := width - (name + 2 + queued + 2 + until + 2); room >= 4 {
			l.to(width - room)
			l.add(whySt, Clean(why, room))
		}
	}
	var head line
	cell(&head, "waiting", "queued", "until", "for", faint, faint)
	rows := []line{head}
	for i := range n {
		var l line
		if i < len(hosts) {
			h := hosts[i]
			why := plain
			if h.State == "parked" {
				why = bad
			}
			cell(&l, h.Host, Count(h.Queued), f.until(h), h.Reason, plain, why)
		}
		rows = append(rows, l)
	}
	return rows
}

// until is the wake-up time on the clock and from now.
func (f frame) until(h crawl.HostStatus) string {
	if h.Until.IsZero() {
		if h.State == "parked" {
			return "parked"
		}
		return "–"
	}
	left := h.Until.Sub(f.st.At)
	layout := "15:04:05"
	if left > 18*time.Hour {
		layout = "Jan 2 15:04"
	}
	return h.Until.In(f.loc).Format(layout) + " " + inTime(left)
}
