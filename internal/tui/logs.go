package tui

import (
	"io"
	"strings"
	"sync"
	"time"
)

const (
	maxLogKept  = 20      // log lines kept while the view owns the terminal
	maxLogBytes = 4 << 10 // of one log line
)

// logKeeper takes log lines. While the view owns the terminal the newest are
// kept for its log area and written out when it is gone; otherwise lines go
// straight to the output.
type logKeeper struct {
	mu      sync.Mutex
	term    Terminal
	out     io.Writer
	running bool
	lines   []line // the newest maxLogKept
	older   int64  // how many had to go
}

// Write takes one or more whole lines, as loggers write them. It never waits
// for the view and never fails.
func (k *logKeeper) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for text := range strings.SplitSeq(strings.TrimRight(string(p), "\r\n"), "\n") {
		if len(text) > maxLogBytes {
			text = text[:maxLogBytes]
		}
		l := logLine(text)
		if !k.running {
			_, _ = io.WriteString(k.out, k.term.draw(l)+"\n")
			continue
		}
		if len(k.lines) == maxLogKept {
			copy(k.lines, k.lines[1:])
			k.lines = k.lines[:maxLogKept-1]
			k.older++
		}
		k.lines = append(k.lines, l)
	}
	return len(p), nil
}

func (k *logKeeper) newest() []line {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]line(nil), k.lines...)
}

func (k *logKeeper) start() {
	k.mu.Lock()
	k.running = true
	k.mu.Unlock()
}

// stop writes what was kept, now that the terminal is free again.
func (k *logKeeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = false
	if k.older > 0 {
		_, _ = io.WriteString(k.out, k.term.draw(styled(faint, "("+Count(k.older)+" earlier log lines)"))+"\n")
	}
	for _, l := range k.lines {
		_, _ = io.WriteString(k.out, k.term.draw(l)+"\n")
	}
	k.lines, k.older = nil, 0
}

// logLine colours a line by the level word that slog handlers put in front.
func logLine(text string) line {
	var l line
	rest := text
	for range 2 { // the time, or the level itself, comes first
		word, tail, _ := strings.Cut(rest, " ")
		if st, ok := levelStyle(word); ok {
			l.add(faint, text[:len(text)-len(rest)])
			l.add(st, word)
			l.add(plain, " "+tail)
			return l
		}
		rest = tail
	}
	l.add(plain, text)
	return l
}

func levelStyle(word string) (style, bool) {
	switch strings.TrimPrefix(word, "level=") {
	case "DBG", "DEBUG":
		return faint, true
	case "INF", "INFO":
		return info, true
	case "WRN", "WARN":
		return warn, true
	case "ERR", "ERROR":
		return bad, true
	}
	return plain, false
}

// hold keeps a number from falling for some seconds after its last peak.
type hold struct {
	n     int
	until time.Time
}

const holdFor = 10 * time.Second

func (h *hold) see(n int, now time.Time) int {
	if n >= h.n || now.After(h.until) {
		h.n, h.until = n, now.Add(holdFor)
	}
	return h.n
}
