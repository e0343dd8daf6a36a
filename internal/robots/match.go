package robots

import (
	"bytes"
	"strings"
	"time"
)

const (
	// pathBuffer is the normalised length up to which Check needs no heap.
	pathBuffer = 1024

	// maxWork bounds one Check, in octets of path looked at, over all rules.
	// 4 Mi is a file of 500 KiB with nothing but wildcards against a path of
	// 100 octets, or 400 wildcard rules against a path of 10,000.
	maxWork = 4 << 20
)

// Decision is the answer for one path.
type Decision struct {
	Allowed bool
	// Rule quotes the deciding rule, "Disallow: /private"; "" if no rule
	// applies.
	Rule string
	// Pattern is the deciding rule's pattern as it was compared.
	Pattern string
	// Line is where the rule stands in the file, from 1; 0 if no rule decided.
	Line int
	// TooCostly says that the rules could not be evaluated within bounds,
	// which counts as disallowed.
	TooCostly bool
}

// Matcher is one agent's rules, ready to check paths. The zero value allows
// everything.
type Matcher struct {
	agent     string
	delay     time.Duration
	delayLine int
	fixed     *Decision

	rules []rule
	nodes []node
	order []int32 // rules that are more than their head, grouped by node
	needs []needs // beside order

	queries bool // some rule compares queries decoded
}

// Fixed returns a Matcher that answers alike for every path but /robots.txt:
// for a site whose robots.txt could not be had. why takes the place of the
// rule's text.
func Fixed(allowed bool, why string) *Matcher {
	return &Matcher{fixed: &Decision{Allowed: allowed, Rule: why}}
}

// Agent returns the name of the groups that apply: the agent's own, "*", or ""
// if the file has neither.
func (m *Matcher) Agent() string { return m.agent }

// CrawlDelay returns the delay asked of this agent and the line that asks; the
// line is 0 if none does. It is what the site wrote: clamping is politeness's.
func (m *Matcher) CrawlDelay() (delay time.Duration, line int) { return m.delay, m.delayLine }

// Check decides about one path with its query, as it would go on the wire.
func (m *Matcher) Check(pathAndQuery string) Decision {
	var buf [pathBuffer]byte
	path := appendPath(buf[:0], pathAndQuery)
	if string(path) == "/robots.txt" {
		return Decision{Allowed: true}
	}
	if m.fixed != nil {
		return *m.fixed
	}
	if m.queries && bytes.IndexByte(path, '?') >= 0 {
		return m.decideQuery(path)
	}
	return m.decide(path, nil)
}

// decideQuery decides with the path's second form at hand, in which reserved
// characters of the query are decoded.
func (m *Matcher) decideQuery(path []byte) Decision {
	var buf [pathBuffer]byte
	return m.decide(path, appendDecodedQuery(buf[:0], path))
}

func (m *Matcher) decide(path, decoded []byte) Decision {
	best, ok := m.strongest(path, decoded)
	switch {
	case !ok:
		return Decision{TooCostly: true}
	case best == nil:
		return Decision{Allowed: true}
	default:
		return Decision{Allowed: best.allow, Rule: best.text, Pattern: best.pattern, Line: best.line}
	}
}

// appendPath appends a path in the form patterns are compared with.
func appendPath(dst []byte, p string) []byte {
	if i := strings.IndexByte(p, '#'); i >= 0 {
		p = p[:i]
	}
	if p == "" || p[0] != '/' {
		dst = append(dst, '/')
	}
	return appendNormal(dst, p, true)
}

// strongest returns the matching rule that wins over all others, nil if none
// matches, and false if finding out would cost too much. decoded is the second
// form of a path with a query; nil if no rule asks for it.
func (m *Matcher) strongest(path, decoded []byte) (best *rule, ok bool) {
	var (
		sig     signature
		haveSig bool
		work    int
	)
	for i := m.deepest(path); i >= 0; i = m.nodes[i].parent {
		n := &m.nodes[i]
		if n.whole >= 0 {
			if r := &m.rules[n.whole]; best == nil || stronger(r, best) < 0 {
				best = r
			}
		}
		if n.lo == n.hi {
			continue
		}
		if !haveSig {
			sig.add(path)
			haveSig = true
		}
		work += int(n.hi - n.lo)
		for k, need := range m.needs[n.lo:n.hi] {
			if !sig.has(need[0]) || !sig.has(need[1]) || !sig.has(need[2]) || !sig.has(need[3]) {
				continue
			}
			r := &m.rules[m.order[int(n.lo)+k]]
			if best != nil && stronger(best, r) < 0 {
				break // so are all that follow under this head
			}
			hit, cost := r.match(path[len(n.head):])
			if !hit && r.query != nil && decoded != nil {
				var more int
				hit, more = r.query.match(decoded[len(n.head):])
				cost += more
			}
			if work += cost; work > maxWork {
				return nil, false
			}
			if hit {
				best = r
				break
			}
		}
	}
	return best, true
}
