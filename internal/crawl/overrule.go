package crawl

import (
	"fmt"
	"strings"

	"tiptoe/internal/frontier"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/robots"
	"tiptoe/internal/weburl"
)

// RulesFile is the operator's own rules on top of robots.txt [NXT-5], kept
// whole so that a resume decides as the beginning did.
type RulesFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Parse reads the rules. An error names the file and the line.
func (f *RulesFile) Parse() (*robots.Overrides, error) {
	if f == nil {
		return nil, nil
	}
	o, err := robots.ParseRules(strings.NewReader(f.Text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return o, nil
}

// overrule judges a URL by the operator's rules; false if none applies. It
// runs under a shard's lock. The line is part of the rule's text, because the
// evidence's own line is one of robots.txt.
func (r *Run) overrule(url string) (frontier.Decision, bool) {
	if r.overrides == nil {
		return frontier.Decision{}, false
	}
	u := weburl.FromCanonical(url)
	a, ok := r.overrides.Check(u.HostKey(), u.RequestURI())
	if !ok {
		return frontier.Decision{}, false
	}
	return frontier.Decision{Allowed: a.Allowed, Confidence: 1, Outcome: outcome.Robots, Ignored: r.Spec.IgnoreRobots,
		Rule: fmt.Sprintf("%s line %d: %s", r.Spec.RobotsRules.Name, a.Line, a.Rule)}, true
}

// warnDelay says, once a host, that its robots.txt asks for more than is kept.
func (r *Run) warnDelay(url string, d *frontier.Decision) {
	if d.CrawlDelay <= politeness.MaxCrawlDelay {
		return
	}
	host := weburl.FromCanonical(url).HostKey()
	r.mu.Lock()
	told := r.clamped[host]
	if r.clamped == nil {
		r.clamped = make(map[string]bool)
	}
	r.clamped[host] = true
	r.mu.Unlock()
	if !told {
		r.e.log.Warn("robots.txt asks for a Crawl-delay above the longest that is kept", "host", host,
			"asked", d.CrawlDelay, "kept", politeness.MaxCrawlDelay)
	}
}
