package frontier

import (
	"context"
	"encoding/json"
	"fmt"

	"tiptoe/internal/politeness"
)

// durable is the group's clocks as they are written. In memory the Crawl-delay
// is that of the origin asked last, and each request owes its own origin's. On
// disk it is the longest of all: after a crash nobody knows which was last.
func (g *group) durable() politeness.State {
	st := g.clocks
	for _, o := range g.origins {
		if o.delay > st.CrawlDelay {
			st.SetCrawlDelay(o.delay)
		}
	}
	return st
}

// ClocksNote is the note in which a store keeps a group's clocks.
func ClocksNote(group string, st politeness.State) Note {
	n := NoClocksNote(group)
	b, err := json.Marshal(&st)
	if err != nil {
		panic(err) // numbers and times only
	}
	n.Value = b
	return n
}

// NoClocksNote deletes that note.
func NoClocksNote(group string) Note { return Note{Group: group, Name: clocksNoteName} }

// ReadClocks reads that note; false if there is none.
func ReadClocks(ctx context.Context, s Store, group string) (st politeness.State, ok bool, err error) {
	b, err := s.Note(ctx, group, clocksNoteName)
	if err == nil && b != nil {
		ok = true
		err = json.Unmarshal(b, &st)
	}
	if err != nil {
		return politeness.State{}, false, fmt.Errorf("load clocks of %s: %w", group, err)
	}
	return st, ok, nil
}
