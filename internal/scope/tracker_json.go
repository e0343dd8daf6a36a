package scope

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// saved is a Tracker on disk. Lists run from the least to the most recently
// used, so that a Tracker read back forgets in the same order.
type saved struct {
	Patterns []entry  `json:"patterns"`
	Facets   []facets `json:"facets"`
	Sessions []uint64 `json:"sessions"`
}

// MarshalJSON writes all that the Tracker knows.
func (t *Tracker) MarshalJSON() ([]byte, error) {
	var s saved
	t.patterns.each(func(e *entry) { s.Patterns = append(s.Patterns, *e) })
	t.facets.each(func(f *facets) { s.Facets = append(s.Facets, *f) })
	s.Sessions = slices.Sorted(maps.Keys(t.sessions))
	return json.Marshal(s)
}

// UnmarshalJSON replaces the Tracker by a saved one. Bounds hold for it too:
// of a file with more, the oldest are dropped.
func (t *Tracker) UnmarshalJSON(raw []byte) error {
	var s saved
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read saved tracker: %w", err)
	}
	if t.max == (bounds{}) {
		t.max = defaultBounds
	}
	*t = *newTracker(t.max)
	for _, e := range s.Patterns {
		if e.Pattern == "" || len(e.Pattern) > maxPattern+1 || e.Pages < 0 || e.Dups < 0 || t.patterns.get([]byte(e.Pattern)) != nil {
			return fmt.Errorf("read saved tracker: pattern %.80q is damaged", e.Pattern)
		}
		if e.isPinned() {
			if t.pinned == t.max.pinned {
				continue
			}
			t.pinned++
		}
		*t.patterns.put([]byte(e.Pattern)) = e
	}
	for _, f := range s.Facets {
		if f.Path == "" || len(f.Keys) > maxKeys || t.facets.get([]byte(f.Path)) != nil {
			return fmt.Errorf("read saved tracker: facets of %.80q are damaged", f.Path)
		}
		if f.Keys == nil {
			f.Keys = make(map[string]*sketch)
		}
		for k, v := range f.Keys {
			if v == nil {
				delete(f.Keys, k)
			}
		}
		*t.facets.put([]byte(f.Path)) = f
	}
	for _, id := range s.Sessions {
		if len(t.sessions) < t.max.sessions {
			t.sessions[id] = true
		}
	}
	return nil
}
