package crawl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/robots"
	"tiptoe/internal/scope"
	"tiptoe/internal/weburl"
)

// Questions about a crawl that change nothing: for explanations, which must
// judge by the very rules that the crawl itself goes by.

// JudgeScope says whether a URL belongs to the crawl, found depth links from a
// seed. What the trap defence has learned meanwhile only a running crawl knows.
func (s *Spec) JudgeScope(u weburl.URL, depth int, now time.Time) (scope.Verdict, error) {
	mode, err := scope.ParseMode(s.Scope)
	if err != nil {
		return scope.Verdict{}, err
	}
	opt := scope.Options{Mode: mode, Include: s.Include, Exclude: s.Exclude, MaxDepth: s.Depth, Now: now}
	for _, seed := range s.Seeds {
		opt.Seeds = append(opt.Seeds, weburl.FromCanonical(seed))
	}
	rules, err := scope.New(opt)
	if err != nil {
		return scope.Verdict{}, err
	}
	return rules.Judge(u, depth), nil
}

// JudgeRobots decides about a URL by a copy of its robots.txt, which must be
// the caller's own; nil if there is none.
func (s *Spec) JudgeRobots(c *frontier.RobotsCopy, url string) (d frontier.Decision, known bool, err error) {
	r := &Run{Spec: *s, product: robots.ProductToken(s.UserAgent)}
	if r.policy, err = robots.ParsePolicy(s.RobotsPolicy); err != nil {
		return d, false, err
	}
	if r.overrides, err = s.RobotsRules.Parse(); err != nil {
		return d, false, err
	}
	switch o, ok := r.overrule(url); {
	case ok && (c == nil || s.IgnoreRobots):
		return o, true, nil
	case s.IgnoreRobots:
		return frontier.Decision{Allowed: true, Ignored: true, Confidence: 1, Rule: "robots.txt ignored on request"}, true, nil
	case c == nil:
		return d, false, nil
	}
	return r.decide(c, url), true, nil
}

// Priority says in words when a URL's turn comes among those of its host; the
// number is its rank, lower goes first.
func Priority(kind, via string, depth int) (int, string) {
	switch {
	case kind == "source":
		return prioHome, "first: a question to an outside index"
	case kind == "sitemap":
		return prioSitemapFile, "sitemap files go right after the seeds"
	case via == frontier.ViaSeed.String():
		return prioHome, "first: a seed"
	case via == frontier.ViaSource.String():
		return prioSource, "last: only an outside index names it"
	case via == frontier.ViaSitemap.String():
		return prioSitemapPage, "after all linked pages: only a sitemap names it"
	}
	n := int(prioOf(max(depth, 1)))
	switch {
	case depth <= 1:
		return n, "by depth: right after seeds and sitemap files"
	case depth == 2:
		return n, "by depth: after the pages that are 1 link from a seed"
	}
	return n, fmt.Sprintf("by depth: after the pages that are %d links from a seed", depth-1)
}

// Group names the pace group of a host.
func (e *Engine) Group(hostKey string) string { return e.cfg.GroupOf(hostKey) }

// Statuses takes a picture of every crawl that is alive, by number.
func (e *Engine) Statuses() []Status {
	var all []Status
	for _, r := range e.allRuns() {
		all = append(all, r.Status())
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Crawl, b.Crawl) })
	return all
}

// Trapped says whether the trap defence of a running crawl would set a URL
// aside now, and why.
func (e *Engine) Trapped(crawl int64, u weburl.URL) (rule string, trapped bool) {
	r := e.run(frontier.CrawlID(crawl))
	if r == nil {
		return "", false
	}
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	v := r.tracker.t.Check(u)
	return v.Rule, !v.OK
}

// Now is the engine's clock.
func (e *Engine) Now() time.Time { return e.cfg.Now() }
