package crawl

import (
	"sync"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/scope"
	"tiptoe/internal/weburl"
)

// tracker shares one scope.Tracker between workers. Its answer about a URL is
// remembered until that URL's commit has surely marked it seen, so that two
// pages that name it at the same time are told the same.
type tracker struct {
	mu       sync.Mutex
	t        *scope.Tracker
	recent   map[uint64]scope.Verdict
	before   map[uint64]scope.Verdict
	contents map[uint64]struct{}
	logged   map[string]bool
}

const (
	recentVerdicts = 32_768
	maxContents    = 1_000_000 // bodies whose hash is remembered
	maxLoggedTraps = 200       // patterns
)

func (r *Run) openScope() error {
	mode, err := scope.ParseMode(r.Spec.Scope)
	if err != nil {
		return err
	}
	opt := scope.Options{Mode: mode, Include: r.Spec.Include, Exclude: r.Spec.Exclude, MaxDepth: r.Spec.Depth, Now: r.e.cfg.Now()}
	for _, s := range r.Spec.Seeds {
		opt.Seeds = append(opt.Seeds, weburl.FromCanonical(s))
	}
	if r.rules, err = scope.New(opt); err != nil {
		return err
	}
	r.tracker.t = scope.NewTracker()
	r.tracker.recent = make(map[uint64]scope.Verdict)
	r.tracker.contents = make(map[uint64]struct{})
	r.tracker.logged = make(map[string]bool)
	return nil
}

// judge says why a URL stays out, or outcome.Pending if it may be queued.
func (r *Run) judge(u weburl.URL, depth int, _ time.Time) (string, outcome.Outcome) {
	v := r.rules.Judge(u, depth)
	if v.OK {
		v = r.tracker.admit(u)
	}
	if !v.OK {
		if p := scope.PatternOf(u); v.Outcome == outcome.Trap && r.tracker.firstOf(p) {
			r.e.log.Warn("set aside as a trap; tiptoe pages --outcome trap lists them", "pattern", p, "because", v.Rule)
		}
		return v.Rule, v.Outcome
	}
	return "", outcome.Pending
}

func (t *tracker) admit(u weburl.URL) scope.Verdict {
	fp := u.Fingerprint().Lo
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.recent[fp]; ok {
		return v
	}
	if v, ok := t.before[fp]; ok {
		return v
	}
	v := t.t.Admit(u)
	if len(t.recent) >= recentVerdicts {
		t.before, t.recent = t.recent, make(map[uint64]scope.Verdict)
	}
	t.recent[fp] = v
	return v
}

// firstOf reports the first refusal of a pattern, for the log.
func (t *tracker) firstOf(pattern string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logged[pattern] || len(t.logged) >= maxLoggedTraps {
		return false
	}
	t.logged[pattern] = true
	return true
}

// fetched tells the tracker what a page was worth.
func (t *tracker) fetched(u weburl.URL, content uint64, o outcome.Outcome, fresh int) {
	if o != outcome.OK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, dup := t.contents[content]
	if !dup && len(t.contents) < maxContents {
		t.contents[content] = struct{}{}
	}
	t.t.Observe(u, scope.Yield{NewContent: !dup, NewLinks: fresh})
}

// Quarantined lists the URL patterns that were set aside as traps.
func (r *Run) Quarantined() []scope.Quarantine {
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	return r.tracker.t.Quarantined()
}
