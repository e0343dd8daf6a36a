package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/term"

	api "tiptoe/internal/client"
	"tiptoe/internal/tui"
)

type jobWatchCmd struct {
	ID    string `arg:"" help:"ID of the job."`
	Pages bool   `help:"Also a line for each page, on standard output."`
	service
}

func (c *jobWatchCmd) Help() string {
	return `Examples:
  tiptoe job watch ID
  tiptoe job watch ID --pages
  tiptoe job watch ID --json | jq -c 'select(.event == "throttled") | .data'

Begins with what has happened already and ends with the job: exit code 0 if it
completed, 3 if a limit made it partial, 1 if it failed or was cancelled. Ctrl+C
ends the watching, not the job. A connection that breaks is taken up again
where it broke.`
}

func (c *jobWatchCmd) Run(st *streams) error {
	return c.with(func(ctx context.Context, k *api.Client) error { return follow(ctx, st, k, c.ID, c.JSON, c.Pages) })
}

// liveEvery is how often a running job is told of where there is no terminal.
const liveEvery = 10.0 // seconds of the job's own clock

// watcher tells a job's events to a person.
type watcher struct {
	st       *streams
	width    int // of the terminal that standard error is; 0 if it is none
	pages    bool
	drawn    bool // the terminal's last line is the live one
	last     float64
	status   string
	finished *api.Job
}

// follow watches a job to its end and says with the exit code how that was.
func follow(ctx context.Context, st *streams, k *api.Client, id string, raw, pages bool) error {
	v := &watcher{st: st, pages: pages, last: -liveEvery}
	if w, _, err := term.GetSize(int(st.err.Fd())); err == nil {
		v.width = max(w, 20)
	}
	defer v.clear()
	for ev, err := range k.Events(ctx, id, "") {
		if errors.Is(err, context.Canceled) {
			v.clear()
			fmt.Fprintf(st.err, "the job goes on; \"tiptoe job watch %s\" comes back to it, \"tiptoe job cancel %s\" ends it\n", id, id)
			return err
		}
		if err != nil {
			return err
		}
		if raw {
			line, err := json.Marshal(ev)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(st.out, "%s\n", api.Plain(line)); err != nil {
				return err
			}
		}
		if err := v.tell(ev, raw); err != nil {
			return err
		}
	}
	if v.finished == nil {
		return errors.New("the job's events ended before it did")
	}
	switch v.finished.Status {
	case "completed":
		return nil
	case "partial":
		return exitWith(exitPartial)
	}
	return exitWith(exitError)
}

func (v *watcher) tell(ev api.Event, quiet bool) error {
	var j api.Job
	var err error
	switch ev.Type {
	case "status", "end":
		if err = json.Unmarshal(ev.Data, &j); err != nil {
			break
		}
		if ev.Type == "end" {
			v.finished = &j
			v.say(quiet, "%s\n%s\n", stateOf(&j), progress(&j.Progress))
		} else if s := stateOf(&j); s != v.status && !ended(j.Status) { // the end says it with its figures
			v.status = s
			v.say(quiet, "%s\n", s)
		}
	case "page":
		var p api.Page
		if err = json.Unmarshal(ev.Data, &p); err == nil && v.pages && !quiet {
			v.clear()
			_, err = fmt.Fprintln(v.st.out, pageLine(&p, 0))
			return err
		}
	case "live":
		var l api.Live
		if err = json.Unmarshal(ev.Data, &l); err == nil && !quiet {
			v.live(&l)
		}
	default:
		var n api.Note
		if err = json.Unmarshal(ev.Data, &n); err == nil {
			v.say(quiet, "%s: %s\n", tui.Clean(ev.Type, 20), tui.Clean(n.Message, 0))
		}
	}
	if err != nil {
		return fmt.Errorf("the service does not speak as tiptoe does (event %s: %w)", tui.Clean(ev.Type, 20), err)
	}
	return nil
}

func ended(status string) bool {
	return status == "completed" || status == "partial" || status == "failed" || status == "cancelled"
}

// live tells how far a job is: again and again in one line of a terminal, now
// and then elsewhere.
func (v *watcher) live(l *api.Live) {
	s := fmt.Sprintf("%s, %.1f a second, %s queued, %d in flight", pageCount(l.Progress.Processed), l.PagesPerSec, tui.Count(l.Queued), l.InFlight)
	if n := l.Progress.HTTP429; n > 0 {
		s += ", " + tui.Count(n) + " answers of 429"
	}
	if l.ETA != nil {
		s += ", about " + tui.Duration(time.Duration(*l.ETA*float64(time.Second))) + " left"
	}
	if l.Binding != "" {
		s += "; " + tui.Clean(l.Binding, 0)
	}
	switch {
	case v.width > 0:
		fmt.Fprintf(v.st.err, "\r\x1b[K%s", tui.Clean(s, v.width-1))
		v.drawn = true
	case l.Elapsed-v.last >= liveEvery:
		v.last = l.Elapsed
		fmt.Fprintln(v.st.err, s)
	}
}

func (v *watcher) say(quiet bool, format string, args ...any) {
	if !quiet {
		v.clear()
		fmt.Fprintf(v.st.err, format, args...)
	}
}

// clear takes the live line away before something else is written.
func (v *watcher) clear() {
	if v.drawn {
		fmt.Fprint(v.st.err, "\r\x1b[K")
		v.drawn = false
	}
}
