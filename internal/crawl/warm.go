package crawl

import (
	"encoding/json"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// A crawl that warms caches asks twice for what a cache did not have: the
// first request fills it, the second proves it. The second waits for warmPause,
// because a cache may store an answer only after it has passed it on, and like
// every request for its host's pace. A page counts once.
const warmPause = 2 * time.Second

// warmth is what one of the two requests found.
type warmth struct {
	Cache  fetch.Cache `json:"cache"` // empty: the server does not say
	Header string      `json:"header,omitempty"`
	Status int         `json:"status"`
	TTFB   float64     `json:"ttfb_ms"`
	Total  float64     `json:"total_ms"`
	At     time.Time   `json:"at"`
}

func warmthOf(h *Hop) warmth {
	w := warmth{Status: h.Status, TTFB: inMillis(h.Timing.TTFB), Total: inMillis(h.Timing.Total), At: h.Ended}
	w.Cache, w.Header = fetch.CacheStatus(h.Header)
	return w
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// warm keeps what a page's cache said. It reports true if the page is to be
// asked for again: then rec says when, and nothing else is done with it.
func (r *Run) warm(en *frontier.Entry, h *Hop, o outcome.Outcome, rec *Record) (again bool) {
	if !r.Spec.Warm || en.Kind != frontier.KindPage || h.Err != nil {
		return false
	}
	now := warmthOf(h)
	content := map[string]any{"first": now}
	if en.Memo != "" {
		content = map[string]any{"first": json.RawMessage(en.Memo), "second": now}
	} else if o == outcome.OK && now.Cache.Missed() {
		memo, err := json.Marshal(now)
		if err == nil {
			next := *en
			next.Memo, next.NotBefore = string(memo), h.Ended.Add(warmPause)
			rec.update = &next
			return true
		}
	}
	rec.evidence = append(rec.evidence, r.evidence(en, ledger.CacheWarmed, 1, h.Ended, content))
	return false
}
