package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"
)

// Event is one message of a job's stream.
type Event struct {
	ID   string          `json:"id,omitempty"` // empty for what is not kept: live
	Type string          `json:"event"`        // status, warning, stalled, throttled, asked, page, live, end
	Data json.RawMessage `json:"data"`
}

// How a stream that breaks is taken up again.
const (
	streamTries = 8 // in a row without an event
	firstPause  = 500 * time.Millisecond
	maxPause    = 15 * time.Second
	streamQuiet = 45 * time.Second // the server speaks every 15 s, if only a comment
)

// Events follows a job from behind the event named by after ("" from the
// start) to its end. When the connection breaks or the server restarts, it
// goes on behind the last event that was seen; it gives up after streamTries
// without an event.
func (c *Client) Events(ctx context.Context, job, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for failed := 0; ; {
			ended, left := false, false
			err := c.stream(ctx, job, after, func(ev Event) bool {
				failed = 0
				if ev.ID != "" {
					after = ev.ID
				}
				ended = ev.Type == "end"
				left = !yield(ev, nil)
				return !left && !ended
			})
			var p *Problem
			switch {
			case left || ended:
				return
			case ctx.Err() != nil:
				yield(Event{}, ctx.Err())
				return
			case errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusTooManyRequests:
				yield(Event{}, err)
				return
			}
			if failed++; failed >= streamTries {
				yield(Event{}, fmt.Errorf("the job's events broke off %d times in a row: %w", failed, err))
				return
			}
			if err := c.wait(ctx, min(firstPause<<(failed-1), maxPause)); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// stream reads one connection. It returns why it ended, or nil when each said
// that it is enough.
func (c *Client) stream(ctx context.Context, job, after string, each func(Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := http.Header{"Accept": {"text/event-stream"}}
	if after != "" {
		h.Set("Last-Event-ID", after)
	}
	resp, err := c.send(ctx, http.MethodGet, "/v1/jobs/"+Escape(job)+"/events", nil, h, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	quiet := time.AfterFunc(streamQuiet, cancel)
	defer quiet.Stop()
	return readEvents(&watched{resp.Body, quiet}, each)
}

// watched puts off the end of a silent connection while something arrives.
type watched struct {
	r     io.Reader
	quiet *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.quiet.Reset(streamQuiet)
	}
	return n, err
}

// readEvents reads text/event-stream as the HTML standard describes it, but
// for "retry", which is ours to decide.
func readEvents(r io.Reader, each func(Event) bool) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var ev Event
	var data []byte
	for sc.Scan() {
		line := bytes.TrimSuffix(sc.Bytes(), []byte("\r"))
		if len(line) == 0 {
			if len(data) > 0 {
				if ev.Data = bytes.TrimSuffix(data, []byte("\n")); !json.Valid(ev.Data) {
					return errors.New("an event is not JSON")
				}
				if !each(ev) {
					return nil
				}
			}
			ev, data = Event{}, nil
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.Type = string(value)
		case "id":
			ev.ID = string(value)
		case "data":
			if len(data)+len(value) > maxEvent {
				return bufio.ErrTooLong
			}
			data = append(append(data, value...), '\n')
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // before the end of the job
}
