// Package scope answers: does this URL belong to the crawl, and if not, why?
//
// Two values decide, one after the other:
//
//   - Rules is what the user asked for, and it never changes: which hosts, how
//     deep, which patterns; and the traps one can see by looking at a single
//     URL (a path that repeats itself, a calendar page centuries away).
//     Judge is a function of the URL alone, safe for concurrent use, and does
//     not allocate for a URL that belongs.
//   - Tracker is what the crawl has learned about the site: URLs that differ
//     in a session id only, filter combinations without end, patterns that
//     bring one duplicate after the other. Such a pattern goes to quarantine,
//     where it is listed with its reason and can be released; a released
//     pattern is never quarantined again.
//
// Every refusal carries its rule as a sentence fragment for the evidence:
// "outside domain example.com", "depth 4 > 3", "excluded by pattern /admin/*".
// A refusal by what the user asked for has the outcome Scope, a refusal by a
// trap defence has the outcome Trap.
//
// # Hosts
//
// Mode Host admits the seeds' hosts, port included; www.example.com and
// example.com are two hosts. Mode Domain, the default, admits all hosts and
// ports of the seeds' registrable domains; for an IP address or a name without
// a registrable domain, that name on any port. Mode Any admits everything.
//
// # Patterns
//
//	re:EXPR    a Go regular expression, found anywhere in the URL
//	/docs/*.md with a star: a glob that must match whole, where * stands for
//	           any characters, slashes included; it is held against path and
//	           query if it begins with a slash, else against the whole URL
//	/docs/     with a slash first: a prefix of path and query
//	print=1    anything else: a substring of the whole URL
//
// URLs are compared in canonical form, so percent-encoded. An excluded URL is
// out whatever else matches. If there are include patterns, a URL must match
// one of them, except the seeds themselves: they are where the crawl begins.
//
// # States and losses
//
// The room is pure: no clock (Options.Now is given), no disk, no goroutines.
// A Tracker is bounded by defaultBounds in tracker.go and is its own JSON
// form; a crash loses what was learned since it was last saved, and the crawl
// learns it again.
package scope

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Mode says how far from the seeds' hosts a crawl may go.
type Mode uint8

const (
	Domain Mode = iota // the seeds' registrable domains
	Host               // the seeds' hosts
	Any                // everywhere
)

var modeNames = [...]string{Domain: "domain", Host: "host", Any: "any"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// ParseMode reads a mode's name.
func ParseMode(name string) (Mode, error) {
	for m, n := range modeNames {
		if n == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("scope %q is not one of host, domain, any", name)
}

// Options is what Rules are made of.
type Options struct {
	Mode     Mode
	Seeds    []weburl.URL
	Include  []string
	Exclude  []string
	MaxDepth int // links from a seed; negative: no limit; 0: the seeds only

	MaxURLLength int // in bytes; 0: weburl.MaxLength

	// Now is the middle of the window in which calendar pages are believed.
	// With a zero Now there is no window.
	Now        time.Time
	YearsAhead int // 0: 2; negative: no limit
	YearsBack  int // 0: 40; negative: no limit
}

// Verdict is an answer with its reason. Of a URL that belongs, Outcome is
// outcome.Pending and Rule says what let it in.
type Verdict struct {
	OK      bool
	Outcome outcome.Outcome
	Rule    string
}

func refuse(o outcome.Outcome, rule string) Verdict { return Verdict{false, o, rule} }

// Rules judge URLs one by one. They are safe for concurrent use.
type Rules struct {
	mode     Mode
	allowed  map[string]Verdict // by host key or domain
	outside  Verdict
	seeds    map[weburl.URL]bool
	include  []pattern
	exclude  []pattern
	maxDepth int
	maxLen   int
	window   window

	// memo remembers the verdicts on the hosts seen last: looking a domain
	// up in the public suffix list costs more than all other rules together.
	memo [256]atomic.Pointer[hostVerdict]
}

type hostVerdict struct {
	key string
	v   Verdict
}

// New builds rules. An error names the pattern or the setting it is about.
func New(o Options) (*Rules, error) {
	if int(o.Mode) >= len(modeNames) {
		return nil, fmt.Errorf("scope mode %d is unknown", o.Mode)
	}
	if o.Mode != Any && len(o.Seeds) == 0 {
		return nil, errors.New("scope " + o.Mode.String() + " needs at least one seed")
	}
	r := &Rules{
		mode:     o.Mode,
		allowed:  make(map[string]Verdict),
		seeds:    make(map[weburl.URL]bool, len(o.Seeds)),
		maxDepth: o.MaxDepth,
		maxLen:   o.MaxURLLength,
		window:   newWindow(o.Now, o.YearsAhead, o.YearsBack),
	}
	if r.maxLen <= 0 {
		r.maxLen = weburl.MaxLength
	}
	var names []string
	for _, s := range o.Seeds {
		r.seeds[s] = true
		name := r.territory(s)
		if _, ok := r.allowed[name]; !ok {
			r.allowed[name] = Verdict{OK: true, Rule: "inside " + r.mode.String() + " " + name}
			names = append(names, name)
		}
	}
	r.outside = refuse(outcome.Scope, "outside "+r.mode.String()+" "+list(names))
	var err error
	if r.include, err = compile("include", o.Include); err != nil {
		return nil, err
	}
	if r.exclude, err = compile("exclude", o.Exclude); err != nil {
		return nil, err
	}
	return r, nil
}

// list names a few and counts the rest.
func list(names []string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + " and " + strconv.Itoa(len(names)-shown) + " more"
}

// territory is what the mode compares of a URL.
func (r *Rules) territory(u weburl.URL) string {
	if r.mode == Host {
		return u.HostKey()
	}
	return u.Domain()
}

var everywhere = Verdict{OK: true, Rule: "scope any"}

// Judge says whether u, found depth links from a seed, belongs.
func (r *Rules) Judge(u weburl.URL, depth int) Verdict {
	v := everywhere
	if r.mode != Any {
		if v = r.judgeHost(u); !v.OK {
			return v
		}
	}
	if r.maxDepth >= 0 && depth > r.maxDepth {
		return refuse(outcome.Scope, "depth "+strconv.Itoa(depth)+" > "+strconv.Itoa(r.maxDepth))
	}
	if n := len(u.String()); n > r.maxLen {
		return refuse(outcome.Scope, "URL of "+strconv.Itoa(n)+" bytes > "+strconv.Itoa(r.maxLen))
	}
	for i := range r.exclude {
		if r.exclude[i].match(u) {
			return refuse(outcome.Scope, "excluded by pattern "+r.exclude[i].text)
		}
	}
	if len(r.include) > 0 {
		by := firstMatch(r.include, u)
		switch {
		case by != nil:
			v.Rule = by.admits
		case r.seeds[u]:
			v.Rule = "a seed"
		default:
			return refuse(outcome.Scope, "matches no include pattern")
		}
	}
	if rule := repeats(u.Path()); rule != "" {
		return refuse(outcome.Trap, rule)
	}
	if rule := r.window.excludes(u); rule != "" {
		return refuse(outcome.Trap, rule)
	}
	return v
}

func (r *Rules) judgeHost(u weburl.URL) Verdict {
	key := u.HostKey()
	slot := &r.memo[xxh3.HashString(key)%uint64(len(r.memo))]
	if m := slot.Load(); m != nil && m.key == key {
		return m.v
	}
	v, ok := r.allowed[r.territory(u)]
	if !ok {
		v = r.outside
	}
	// The key is cloned: it must not keep a long URL alive.
	slot.Store(&hostVerdict{strings.Clone(key), v})
	return v
}
