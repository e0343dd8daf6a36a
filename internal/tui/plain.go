package tui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"tiptoe/internal/crawl"
)

// PlainOptions says how Plain reports. Zero durations mean the defaults.
type PlainOptions struct {
	Source   func() crawl.Status
	Out      io.Writer
	Every    time.Duration // between two progress lines; 5 s
	Idle     time.Duration // between two lines while nothing moves; 10 s
	Location *time.Location
}

// Plain writes a progress line every few seconds, and while nothing moves the
// idle line with what the crawl waits for, until ctx ends. It returns early
// only if the output cannot be written to, with the reason.
func Plain(ctx context.Context, o PlainOptions) error {
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = 10 * time.Second
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()

	var seen movement
	seen.changed(o.Source())
	still := time.Duration(0) // since something moved, or since that was said
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var text string
		st := o.Source()
		if seen.changed(st) {
			text, still = progressLine(st, o.Location), 0
		} else if still += o.Every; still >= o.Idle {
			text, still = idleLine(st, o.Location), 0
		}
		if text == "" {
			continue
		}
		if _, err := io.WriteString(o.Out, text+"\n"); err != nil {
			return fmt.Errorf("write progress: %w", err)
		}
	}
}

// movement remembers the figures by which a crawl is seen to move.
type movement struct{ processed, requests, queued, bytes int64 }

func (m *movement) changed(st crawl.Status) bool {
	now := movement{st.Processed, st.Requests, st.Queued, st.Bytes}
	moved := *m != now
	*m = now
	return moved
}

func progressLine(st crawl.Status, loc *time.Location) string {
	var b strings.Builder
	c := st.StatusClasses
	fmt.Fprintf(&b, "%s %s done, %s queued, %s pages/s, %s, in flight %s, 2xx %s 3xx %s 4xx %s 5xx %s none %s, 429s %s",
		st.At.In(loc).Format(time.TimeOnly), Count(st.Processed), Count(st.Queued), perSec(st.PagesPerSec), bytesPerSec(st.BytesPerSec),
		Count(st.InFlight), Count(c[2]), Count(c[3]), Count(c[4]), Count(c[5]), Count(c[0]), Count(st.HTTP429))
	if st.ETA > 0 {
		b.WriteString(", ETA " + about(st.ETA))
		if st.ETAWhy != "" {
			b.WriteString(" (" + Clean(st.ETAWhy, 160) + ")")
		}
	}
	if st.Stopping {
		b.WriteString(", stopping")
	}
	return b.String()
}

func idleLine(st crawl.Status, loc *time.Location) string {
	s := fmt.Sprintf("%s Waiting for work... (frontier_empty: %t, tasks_in_flight: %d)",
		st.At.In(loc).Format(time.TimeOnly), st.Queued == 0, st.InFlight)
	if st.Binding != "" {
		s += " " + Clean(st.Binding, 240)
	}
	return s
}
