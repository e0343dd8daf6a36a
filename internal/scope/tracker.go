package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// bounds hold a Tracker's memory.
type bounds struct {
	patterns   int // counted; the least recently used is forgotten
	pinned     int // of these, quarantined or released: not forgotten
	facetPaths int // the least recently used is forgotten
	sessions   int // URLs known with a session id; more are refused
}

// About 20 MB when all is full, and a tenth of that on ordinary sites.
var defaultBounds = bounds{patterns: 50_000, pinned: 10_000, facetPaths: 4_096, sessions: 65_536}

// When a pattern stops being worth it.
const (
	yieldWindow  = 128 // pages; then the counts are halved, so old ones fade
	yieldPages   = 24  // fewer say nothing
	yieldUseless = 0.8 // share of duplicates
	barrenPages  = 48  // with no new link at all, half of that share is enough
	treePages    = 256 // below one directory, whatever the patterns
	treeUseless  = 0.95
	calendarCap  = 120   // pages of one pattern with a date in a calendar
	archiveCap   = 1_500 // with a date in another path
)

// Yield is what fetching one page brought.
type Yield struct {
	NewContent bool // no page of this crawl had this content before
	NewLinks   int  // links on it that nobody had found before
}

// Quarantine is one pattern that is refused, for people.
type Quarantine struct {
	Pattern string `json:"pattern"`
	Reason  string `json:"reason"`
	Refused int    `json:"refused"` // URLs turned away so far
}

// Tracker learns what a site's URL patterns are worth. The zero value is not
// usable; a Tracker is not safe for concurrent use. The same calls in the same
// order always give the same answers.
type Tracker struct {
	max      bounds
	patterns lru[entry]
	facets   lru[facets]
	sessions map[uint64]bool
	pinned   int
}

// entry is what is known of one pattern. Pages, Dups and Links fade.
type entry struct {
	Pattern  string `json:"pattern"`
	Admitted int    `json:"admitted,omitempty"`
	Pages    int    `json:"pages,omitempty"`
	Dups     int    `json:"dups,omitempty"`
	Links    int    `json:"links,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it is in quarantine
	Refused  int    `json:"refused,omitempty"`
	Released bool   `json:"released,omitempty"` // never again in quarantine
}

func (e *entry) isPinned() bool { return e.Reason != "" || e.Released }

// NewTracker returns a Tracker that knows nothing.
func NewTracker() *Tracker { return newTracker(defaultBounds) }

func newTracker(max bounds) *Tracker {
	return &Tracker{
		max:      max,
		patterns: newLRU(max.patterns, (*entry).isPinned),
		facets:   newLRU(max.facetPaths, func(*facets) bool { return false }),
		sessions: make(map[uint64]bool),
	}
}

var accepted = Verdict{OK: true, Rule: "pattern in good standing"}

// Admit judges and counts a URL that is about to be queued for the first
// time. It must be asked after Rules.Judge and after the seen set.
func (t *Tracker) Admit(u weburl.URL) Verdict {
	var buf [maxPattern + 64]byte
	key := appendPattern(buf[:0], u)
	if v := t.quarantined(key, u); !v.OK {
		return v
	}
	var whole [1024]byte
	if id, has := appendSessionless(whole[:0], u); has {
		if v := t.admitSession(xxh3.Hash(id)); !v.OK {
			return v
		}
	}
	e := t.entry(key)
	e.Admitted++
	if e.Released {
		return accepted
	}
	if limit, what := calendarLimit(u); limit > 0 && e.Admitted > limit {
		return t.turnAway(e, fmt.Sprintf("more than %d %s pages", limit, what))
	}
	if q := u.Query(); q != "" && isFaceted(q) {
		return t.admitFacets(u)
	}
	return accepted
}

// Check judges a URL that is already queued, just before it is fetched: its
// pattern may have been quarantined meanwhile.
func (t *Tracker) Check(u weburl.URL) Verdict {
	var buf [maxPattern + 64]byte
	return t.quarantined(appendPattern(buf[:0], u), u)
}

// Observe learns what fetching u brought. It is for pages that were read; an
// error says nothing about a pattern.
func (t *Tracker) Observe(u weburl.URL, y Yield) {
	var buf [maxPattern + 64]byte
	if e := t.entry(appendPattern(buf[:0], u)); e.learn(y) {
		share := float64(e.Dups) / float64(e.Pages)
		switch {
		case e.Pages >= yieldPages && share >= yieldUseless:
			t.quarantine(e, fmt.Sprintf("%d of its last %d pages were duplicates", e.Dups, e.Pages))
		case e.Pages >= barrenPages && share >= yieldUseless/2 && e.Links == 0:
			t.quarantine(e, fmt.Sprintf("%d of its last %d pages were duplicates, and none had a new link", e.Dups, e.Pages))
		}
	}
	if tree := appendTree(buf[:0], u); len(tree) > 0 {
		e := t.entry(tree)
		if e.learnTree(y) && e.Pages >= treePages && float64(e.Dups) >= treeUseless*float64(e.Pages) {
			t.quarantine(e, fmt.Sprintf("%d of its last %d pages were duplicates", e.Dups, e.Pages))
		}
	}
}

// Quarantined lists what is refused, by pattern.
func (t *Tracker) Quarantined() []Quarantine {
	var out []Quarantine
	t.patterns.each(func(e *entry) {
		if e.Reason != "" {
			out = append(out, Quarantine{e.Pattern, e.Reason, e.Refused})
		}
	})
	slices.SortFunc(out, func(a, b Quarantine) int { return strings.Compare(a.Pattern, b.Pattern) })
	return out
}

// Release lets a pattern out of quarantine, for good, and reports whether it
// was in. URLs refused meanwhile come back when they are found again.
func (t *Tracker) Release(pattern string) bool {
	e := t.patterns.get([]byte(pattern))
	if e == nil || e.Reason == "" {
		return false
	}
	e.Reason, e.Released = "", true
	return true
}

// Trust keeps a pattern out of quarantine from the start: it was released in
// an earlier life of the crawl.
func (t *Tracker) Trust(pattern string) {
	e := t.entry([]byte(pattern))
	if !e.isPinned() {
		t.pinned++
	}
	e.Reason, e.Released = "", true
}

func (t *Tracker) quarantined(key []byte, u weburl.URL) Verdict {
	e := t.patterns.get(key)
	if e == nil || e.Reason == "" {
		var buf [maxPattern + 64]byte
		tree := appendTree(buf[:0], u)
		if len(tree) == 0 || e != nil && e.Released {
			return accepted
		}
		if e = t.patterns.get(tree); e == nil || e.Reason == "" {
			return accepted
		}
	}
	e.Refused++
	return refusal(e)
}

func refusal(e *entry) Verdict {
	return refuse(outcome.Trap, "pattern "+e.Pattern+" in quarantine: "+e.Reason)
}

// quarantine refuses a pattern from now on, unless it was released or too
// many are put aside already.
func (t *Tracker) quarantine(e *entry, reason string) {
	if e.isPinned() || t.pinned >= t.max.pinned {
		return
	}
	t.pinned++
	e.Reason = reason
}

// turnAway is quarantine, and the refusal of the URL that was one too many.
func (t *Tracker) turnAway(e *entry, reason string) Verdict {
	t.quarantine(e, reason)
	if e.Reason == "" {
		return refuse(outcome.Trap, "pattern "+e.Pattern+": "+reason)
	}
	e.Refused++
	return refusal(e)
}

func (t *Tracker) entry(key []byte) *entry {
	e := t.patterns.get(key)
	if e == nil {
		e = t.patterns.put(key)
		e.Pattern = string(key)
	}
	return e
}

func (t *Tracker) admitSession(id uint64) Verdict {
	switch {
	case t.sessions[id]:
		return refuse(outcome.Trap, "known already with another session id")
	case len(t.sessions) >= t.max.sessions:
		return refuse(outcome.Trap, fmt.Sprintf("more than %d URLs with session ids", t.max.sessions))
	}
	t.sessions[id] = true
	return accepted
}

// admitFacets counts by path, because each filter more or less is another
// pattern; what goes to quarantine is the path with any faceted query.
func (t *Tracker) admitFacets(u weburl.URL) Verdict {
	var buf [maxPattern + 64]byte
	key := append(append(append(buf[:0], u.HostKey()...), u.Path()...), "?**"...)
	if len(key) > maxPattern {
		key = append(key[:maxPattern], '*')
	}
	if e := t.patterns.get(key); e != nil && e.isPinned() {
		if e.Released {
			return accepted
		}
		e.Refused++
		return refusal(e)
	}
	f := t.facets.get(key)
	if f == nil {
		f = t.facets.put(key)
		f.Path = string(key)
		f.Keys = make(map[string]*sketch)
	}
	if !f.add(u) {
		return accepted
	}
	return t.turnAway(t.entry(key), fmt.Sprintf("%d combinations of %d query parameters", f.Queries, len(f.Keys)))
}

func calendarLimit(u weburl.URL) (int, string) {
	switch findDate(u).shape {
	case calendarDate:
		return calendarCap, "calendar"
	case archiveDate:
		return archiveCap, "date"
	}
	return 0, ""
}

// learn counts a page and reports whether there is enough to judge by.
func (e *entry) learn(y Yield) bool {
	if e.Pages >= yieldWindow {
		e.fade()
	}
	e.count(y)
	return e.Pages >= yieldPages
}

func (e *entry) learnTree(y Yield) bool {
	if e.Pages >= 2*treePages {
		e.fade()
	}
	e.count(y)
	return e.Pages >= treePages
}

func (e *entry) fade() { e.Pages, e.Dups, e.Links = e.Pages/2, e.Dups/2, e.Links/2 }

func (e *entry) count(y Yield) {
	e.Pages++
	e.Links += y.NewLinks
	if !y.NewContent {
		e.Dups++
	}
}
