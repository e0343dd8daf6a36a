package tui

import (
	"strconv"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/outcome"
)

// outcomeStyle colours a page by how it ended: green fetched, cyan moved on,
// yellow the server or robots.txt said no, red something is broken.
func outcomeStyle(name string) style {
	o, known := outcome.Parse(name)
	if !known {
		return plain
	}
	switch o {
	case outcome.OK:
		return good
	case outcome.Redirect, outcome.NotModified:
		return info
	case outcome.NotFound, outcome.Gone, outcome.ClientError, outcome.Throttled, outcome.Blocked, outcome.Robots:
		return warn
	case outcome.Scope, outcome.Trap, outcome.Budget, outcome.Cancelled, outcome.Pending:
		return faint
	}
	return bad
}

// pageRows draws the newest pages, the newest at the bottom; rows that have
// no page yet are blank.
func (f frame) pageRows(width, n int) []line {
	pages := f.pages[max(0, len(f.pages)-n):]
	rows := make([]line, n)
	for i, ev := range pages {
		rows[i] = f.pageRow(ev, width)
	}
	return rows
}

func (f frame) pageRow(ev crawl.PageEvent, width int) line {
	var l line
	l.add(faint, ev.At.In(f.loc).Format("15:04:05"))
	st := outcomeStyle(ev.Outcome)
	l.to(10)
	if ev.Status > 0 {
		l.add(st, strconv.Itoa(ev.Status))
	} else {
		l.add(faint, "–")
	}
	l.to(15)
	l.add(st, Clean(ev.Outcome, 12))
	at := 28
	if width >= 78 {
		if ev.Status > 0 {
			l.right(at+7, plain, Bytes(ev.Bytes))
		}
		if ev.Millis > 0 {
			l.right(at+16, faint, Duration(time.Duration(ev.Millis*float64(time.Millisecond))))
		}
		at += 18
	}
	l.to(at)
	room := max(width-l.cols, 1)
	note := ""
	switch {
	case ev.RedirectTo != "":
		note = " → " + ev.RedirectTo
	case ev.Error != "":
		note = " — " + ev.Error
	}
	if note == "" || room < 40 {
		l.add(plain, cleanMiddle(ev.URL, room))
		return l
	}
	url := cleanMiddle(ev.URL, room*3/5)
	l.add(plain, url)
	l.add(faint, Clean(note, room-cols(url)))
	return l
}

func helpText() []line {
	var rows []line
	for _, h := range [][2]string{
		{"q  Ctrl+C", "stop: nothing new is started, what is under way is finished and saved"},
		{"Ctrl+C", "once more: leave at once; the crawl can still be resumed"},
		{"l", "show or hide the page lines"},
		{"Ctrl+Z", "suspend, as in any program (the crawl sleeps, too)"},
		{"?", "close this help"},
		{"", ""},
		{"flight", "requests under way on the host, and how many it may have"},
		{"gap", "least time between two requests to the host"},
		{"learned", "the part of the gap that the host's 429 answers taught"},
		{"none", "no answer at all: timeouts, refused connections, unknown names"},
		{"parked", "set aside after too many failures in a row"},
	} {
		var l line
		l.add(strong, h[0])
		l.to(labelCols + 2)
		l.add(plain, h[1])
		rows = append(rows, l)
	}
	return rows
}
