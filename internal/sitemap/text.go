package sitemap

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// patience is how many lines may go by before the first URL.
const patience = 50

// parseText reads one URL a line. Blank lines and lines starting with "#" are
// passed over; others that are no absolute URL are counted as skipped.
func (p *parser) parseText() error {
	w := &p.win
	for {
		n, ok := w.find("\n")
		line := w.bytes()
		switch {
		case ok:
			line = line[:n]
		case w.full(): // no URL is this long
			p.info.Skipped++
			if !w.skipPast("\n") {
				return p.endText()
			}
			continue
		}
		w.pos += len(line)
		if err := p.line(bytes.TrimSpace(line)); err != nil {
			return err
		}
		if !ok {
			return p.endText()
		}
	}
}

func (p *parser) line(line []byte) error {
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	loc := ""
	if len(line) <= maxLoc && isAbsolute(line) {
		loc = cleanLoc(line)
	}
	if loc == "" {
		p.info.Skipped++
		if p.info.Entries == 0 && p.info.Skipped > patience {
			return fmt.Errorf("%w: text without URLs", ErrNotSitemap)
		}
		return nil
	}
	p.info.Format = Text
	return p.emit(Entry{Loc: loc})
}

func isAbsolute(line []byte) bool {
	scheme, rest, ok := strings.Cut(string(line[:min(len(line), 12)]), "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

func (p *parser) endText() error {
	if err := p.win.err; err != nil && err != io.EOF {
		return p.win.fault("read: %w", err)
	}
	if p.info.Entries == 0 && !p.win.cut {
		return fmt.Errorf("%w: text without URLs", ErrNotSitemap)
	}
	return nil
}
