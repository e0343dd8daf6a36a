package tui

import (
	"strings"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

const (
	boxWidth    = 76 // columns, borders included, if the terminal has them
	boxMinWidth = 40
)

// SummaryBox is what remains on the screen: why the crawl ended, what it did,
// where the results are, and what to do next. It ends in a line break.
func SummaryBox(s crawl.Summary, t Terminal) string {
	width := max(boxMinWidth, min(boxWidth, t.Width))
	inner := width - 4
	results, resume := dataDir(s.DataDir), dataDir(s.DataDir)
	if s.Database { // addresses may hold passwords: they are not repeated
		results, resume = " --database-url ...", " --database-url ..."+resume
		if s.DataDir == "" {
			resume += " --redis-url ..."
		}
	}
	box := &boxWriter{t: t, width: width}

	st := summaryStyle(s.Status)
	box.top(st, string(s.Status))
	for _, text := range wrapText(s.Reason, inner, 3) {
		box.row(styled(st, text))
	}
	box.rule()
	c := s.Counters
	box.figures([]figure{
		{"processed", Count(c.Processed), strong},
		{"successful", Count(c.Successful), nonzero(c.Successful, good)},
		{"failed", Count(c.Failed), nonzero(c.Failed, bad)},
		{"throttled", Count(c.Throttled), nonzero(c.Throttled, warn)},
		{"blocked", Count(c.Blocked), nonzero(c.Blocked, warn)},
		{"timeouts", Count(c.Timeouts), nonzero(c.Timeouts, bad)},
		{"skipped", Count(c.Skipped), nonzero(c.Skipped, plain)},
		{"requests", Count(c.Requests), plain},
		{"retries", Count(c.Retries), nonzero(c.Retries, plain)},
		{"429s", Count(c.HTTP429), nonzero(c.HTTP429, warn)},
		{"received", Bytes(c.Bytes), plain},
		{"duration", Duration(s.Duration), plain},
	})
	if s.Remaining > 0 || s.ParkedURLs > 0 {
		box.rule()
		if s.Remaining > 0 {
			box.field("remaining", Count(s.Remaining)+" URLs", strong)
			box.field("resume", "tiptoe resume"+resume, plain)
		}
		if s.ParkedURLs > 0 {
			box.field("parked", Count(s.ParkedURLs)+" URLs on hosts that kept failing", warn)
		}
	}
	box.rule()
	switch {
	case s.Database:
		box.field("results", "PostgreSQL", strong)
	case s.DataDir != "":
		box.field("results", s.DataDir, strong)
	}
	for i, cmd := range []string{"tiptoe pages", "tiptoe links --broken", "tiptoe export"} {
		label := ""
		if i == 0 {
			label = "next"
		}
		box.field(label, cmd+results, plain)
	}
	box.bottom()
	return box.b.String()
}

func summaryStyle(s ledger.Status) style {
	switch s {
	case ledger.Completed:
		return good
	case ledger.Failed:
		return bad
	}
	return warn
}

func nonzero(n int64, st style) style {
	if n == 0 {
		return faint
	}
	return st
}

// dataDir is the flag that names the crawl's directory, quoted for a shell;
// the default one needs none.
func dataDir(dir string) string {
	if dir == "" || dir == "tiptoe-data" {
		return ""
	}
	if strings.Trim(dir, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=") != "" {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return " --data-dir " + dir
}

func styled(st style, text string) line {
	var l line
	l.add(st, text)
	return l
}

type figure struct {
	name, value string
	style       style
}

// boxWriter draws a frame around rows of known width.
type boxWriter struct {
	t     Terminal
	width int
	b     strings.Builder
}

func (w *boxWriter) put(l line) { w.b.WriteString(w.t.draw(l) + "\n") }

func (w *boxWriter) top(st style, status string) {
	var l line
	l.add(faint, "╭─ ")
	l.add(strong, "tiptoe")
	if status != "" {
		l.add(faint, " · ")
		l.add(st, Clean(status, 16))
	}
	l.add(faint, " "+strings.Repeat("─", max(0, w.width-l.cols-2))+"╮")
	w.put(l)
}

func (w *boxWriter) rule() {
	w.put(styled(faint, "├"+strings.Repeat("─", w.width-2)+"┤"))
}

func (w *boxWriter) bottom() {
	w.put(styled(faint, "╰"+strings.Repeat("─", w.width-2)+"╯"))
}

func (w *boxWriter) row(inside line) {
	var l line
	l.add(faint, "│")
	l.add(plain, " ")
	l.join(inside.clip(w.width - 4))
	l.to(w.width - 2)
	l.add(plain, " ")
	l.add(faint, "│")
	w.put(l)
}

// field is a label and a text, which may take a second row.
func (w *boxWriter) field(label, text string, st style) {
	const at = 12
	for i, part := range wrapText(text, w.width-4-at, 3) {
		var l line
		if i == 0 {
			l.add(faint, label)
		}
		l.to(at)
		l.add(st, part)
		w.row(l)
	}
}

// figures stand in as many columns as fit, read from top to bottom.
func (w *boxWriter) figures(list []figure) {
	inner := w.width - 4
	columns := min(3, max(1, (inner+3)/23))
	rows := (len(list) + columns - 1) / columns
	each := (inner - 3*(columns-1)) / columns
	for r := range rows {
		var l line
		for c := range columns {
			i := c*rows + r
			if i >= len(list) {
				continue
			}
			start := c * (each + 3)
			l.to(start)
			l.add(faint, list[i].name)
			l.right(start+each, list[i].style, list[i].value)
		}
		w.row(l)
	}
}
