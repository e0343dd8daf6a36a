// Package audit answers: was every promise to every host kept, and how does
// one know?
//
// It replays the ledger's log of requests and recomputes, for each group of
// hosts that is paced together:
//
//   - the distance between each request's start and the one before, against
//     what was owed. What was owed is the larger of what the row itself says
//     (the gap drawn when the request before was granted, learned delays
//     included) and what can be known without believing the row: the least
//     base delay of the settings in force, and the Crawl-delay of the
//     robots.txt that the page's row names;
//   - how many requests were in flight, from their intervals, against the caps
//     they were granted under, and those against the settings;
//   - that after an answer that asked for quiet (Retry-After, rate-limit
//     headers) nothing was granted before that time had come. The Retry-After
//     of a throttled answer is read again from its evidence. What had been
//     granted before the answer arrived may still reach the wire;
//   - that nothing was requested that robots.txt disallows, nor before any
//     robots.txt was known, nor what scope, trap defence or budget turned away.
//
// All crawls of a data directory are judged together, because they meet on the
// same hosts, and so are the processes that a resumed crawl ran in.
//
// # What it does not prove
//
// Times are those of this machine, taken when the request's bytes had been
// written: the network may bring two of them closer together. A process that
// was killed leaves no rows of the requests it had in flight. A learned delay
// is taken from the row, as are the operator's groups. If the wall clock was
// set back between two processes, what looks like a gap may not be one.
//
// # Bounds
//
// The log arrives sorted by group and start, so memory is the state of one
// group, a few words and a line of the report for each host, a filter of fixed
// size over the pages that were turned away, and at most keptViolations details;
// all violations are counted. The room is pure: rows in, report out.
package audit

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// tolerance is the log's own precision.
const tolerance = time.Microsecond

// keptViolations bounds the details of a report.
const keptViolations = 1000

// Log is the part of the ledger that is replayed.
type Log interface {
	Replay(ctx context.Context, crawl int64) iter.Seq2[ledger.Replayed, error]
	Judgements(ctx context.Context) iter.Seq2[ledger.Judged, error]
	Settings(ctx context.Context) ([]ledger.Settings, error)
	PageByFP(ctx context.Context, crawl int64, fp weburl.Fingerprint) (ledger.Page, bool, error)
}

// Run replays the log. With a crawl's number only what that crawl took part in
// is judged, beside everybody else's requests to the same hosts.
func Run(ctx context.Context, log Log, only int64) (*Report, error) {
	settings, err := log.Settings(ctx)
	if err != nil {
		return nil, err
	}
	a, err := newAuditor(settings, only)
	if err != nil {
		return nil, err
	}
	for j, err := range log.Judgements(ctx) {
		if err != nil {
			return nil, err
		}
		a.pages.add(&j)
	}
	for row, err := range log.Replay(ctx, only) {
		if err != nil {
			return nil, err
		}
		q := &request{Replayed: row}
		if a.mustAsk(q) {
			p, ok, err := log.PageByFP(ctx, row.Crawl, row.FP)
			if err != nil {
				return nil, err
			}
			q.hasPage, q.outcome, q.robots = ok, p.Outcome, p.Robots
		}
		a.add(q)
	}
	r := a.finish()
	for i := range r.Violations {
		for _, q := range r.Violations[i].Requests {
			if q.URL != "" {
				continue
			}
			p, ok, err := log.PageByFP(ctx, q.Crawl, q.fp)
			if err != nil {
				return nil, err
			}
			if ok {
				q.URL = p.URL
			}
		}
	}
	return r, nil
}

// request is a row of the log with what its page says.
type request struct {
	ledger.Replayed
	hasPage bool // the page was looked up and is there
	outcome outcome.Outcome
	robots  ledger.RobotsDecision
}

// mustAsk fills in what is certain about the request's page, and reports
// whether the page itself must be asked.
func (a *auditor) mustAsk(q *request) bool {
	if !q.Sent() || q.Kind != "page" && q.Kind != "sitemap" {
		return false
	}
	var ok bool
	q.robots, ok = a.pages.decision(q.Group, granted(q))
	return !ok || a.pages.refused.has(q.FP)
}

// auditor judges rows that come sorted by group and start.
type auditor struct {
	only     int64
	settings map[int64][]rules // by crawl, oldest first
	crawls   map[int64]bool
	pages    *pages
	report   Report
	g        *group
}

// rules are what one crawl promised from a time on.
type rules struct {
	since   time.Time
	base    time.Duration
	perHost int
}

// group is the state of the group that is being read.
type group struct {
	host    *Host
	prev    *request
	running inFlight
	blocks  []block
	known   time.Time // when the first robots.txt was known; zero while none was
}

type block struct {
	by     request
	until  time.Time
	why    string
	broken bool
}

func newAuditor(settings []ledger.Settings, only int64) (*auditor, error) {
	a := &auditor{only: only, settings: map[int64][]rules{}, crawls: map[int64]bool{}, pages: newPages()}
	for _, s := range settings {
		r := rules{since: s.Since, perHost: 1}
		if len(s.Spec) > 0 {
			var spec crawl.Spec
			if err := json.Unmarshal(s.Spec, &spec); err != nil {
				return nil, fmt.Errorf("read settings of crawl %d: %w", s.Crawl, err)
			}
			r.base, r.perHost = spec.DelayMin, max(spec.PerHost, 1)
		}
		a.settings[s.Crawl] = append(a.settings[s.Crawl], r)
	}
	return a, nil
}

// rulesAt finds what a crawl had promised at a time.
func (a *auditor) rulesAt(crawl int64, at time.Time) (rules, bool) {
	list := a.settings[crawl]
	if len(list) == 0 {
		return rules{}, false
	}
	i := len(list) - 1
	for i > 0 && list[i].since.After(at) {
		i--
	}
	return list[i], true
}

func (a *auditor) add(row *request) {
	if a.g == nil || a.g.host.Host != row.Group {
		a.endGroup()
		a.g = &group{host: &Host{Host: row.Group}}
	}
	g := a.g
	if a.concerns(row) {
		a.crawls[row.Crawl] = true
		g.host.count(row)
	}
	if !row.Sent() {
		return
	}
	a.checkGap(g, row)
	a.checkInFlight(g, row)
	a.checkBlocks(g, row)
	a.checkRefused(g, row)
	a.checkTurnedAway(row)
	a.noteBlock(g, row)
	kept := *row
	g.prev = &kept
}

// concerns reports whether the crawl that is asked about made the request.
func (a *auditor) concerns(rows ...*request) bool {
	if a.only == 0 {
		return true
	}
	return slices.ContainsFunc(rows, func(r *request) bool { return r.Crawl == a.only })
}

func (a *auditor) checkGap(g *group, row *request) {
	prev := g.prev
	if prev == nil || !a.concerns(row, prev) {
		return
	}
	gap := row.Started.Sub(prev.Started)
	owed, why := a.owed(prev, row)
	h := g.host
	if !h.HasGap || gap < h.SmallestGap {
		h.SmallestGap, h.OwedThere, h.OwedWhy = gap, owed, why
	}
	if spare := gap - owed; !h.HasGap || spare < h.LeastSpare {
		h.LeastSpare = spare
	}
	h.HasGap = true
	h.LongestOwed = max(h.LongestOwed, owed)
	if gap < owed-tolerance {
		a.violate(&Violation{Kind: GapTooShort, Owed: owed, Got: gap,
			Text: fmt.Sprintf("%s between the starts of two requests, where %s were owed (%s)", span(gap), span(owed), why)}, prev, row)
	}
}

// owed is the least distance between two starts: what the later row says it
// was given, or what the earlier one was bound to leave, whichever is more.
func (a *auditor) owed(prev, row *request) (time.Duration, string) {
	owed, why := row.GapOwed, row.GapWhy
	if r, ok := a.rulesAt(prev.Crawl, prev.Started); ok && r.base > owed {
		owed, why = r.base, politeness.WhyBase.String()
	}
	var asked ledger.RobotsDecision
	switch {
	case prev.Kind != "robots" && prev.robots.FetchedAt.Before(granted(prev)):
		asked = prev.robots
	case prev.Kind == "robots" && row.robots.FetchedAt.Equal(prev.Ended.Truncate(time.Millisecond)):
		asked = row.robots // the file that was just read already binds the request after it
	}
	if d := min(asked.CrawlDelay, politeness.MaxCrawlDelay); !asked.Ignored && d > owed {
		owed, why = d, politeness.WhyCrawlDelay.String()
	}
	if why == "" {
		why = politeness.WhyBase.String()
	}
	return owed, why
}

// granted is when the request was decided; logs from before that was written
// down know only the start.
func granted(r *request) time.Time {
	if r.Granted.IsZero() {
		return r.Started
	}
	return r.Granted
}

// checkInFlight counts the requests whose intervals hold this one's start. The
// caps of all of them count: one that was granted under a wider cap may reach
// the wire after the cap was narrowed.
func (a *auditor) checkInFlight(g *group, row *request) {
	for len(g.running) > 0 && !g.running[0].ended.After(row.Started) {
		heap.Pop(&g.running)
	}
	heap.Push(&g.running, running{ended: row.Ended, cap: row.Cap, row: row.Request})
	n, limit := len(g.running), row.Cap
	if n > limit {
		for i := range g.running {
			limit = max(limit, g.running[i].cap)
		}
	}
	if !a.concerns(row) {
		return
	}
	if h := g.host; n > h.MostInFlight {
		h.MostInFlight, h.CapThere = n, limit
	}
	if n > limit {
		longest := slices.MaxFunc(g.running[:], func(x, y running) int { return x.ended.Compare(y.ended) })
		other := request{Replayed: ledger.Replayed{Request: longest.row}}
		if longest.row.Permit == row.Permit && len(g.running) > 1 {
			other = request{Replayed: ledger.Replayed{Request: g.running[0].row}}
		}
		a.violate(&Violation{Kind: TooManyInFlight, InFlight: n, Cap: limit,
			Text: fmt.Sprintf("%d requests in flight, where at most %d were allowed", n, limit)}, &other, row)
	}
	if r, ok := a.rulesAt(row.Crawl, row.Started); ok && row.Cap > r.perHost {
		a.violate(&Violation{Kind: CapAboveSettings, InFlight: n, Cap: row.Cap,
			Text: fmt.Sprintf("granted under a cap of %d, where the settings of crawl %d allow %d", row.Cap, row.Crawl, r.perHost)}, row)
	}
}

func (a *auditor) checkBlocks(g *group, row *request) {
	g.blocks = slices.DeleteFunc(g.blocks, func(b block) bool {
		over := !row.Started.Before(b.until.Add(-tolerance))
		if over && !b.broken {
			g.host.BlocksKept++
		}
		return over
	})
	for i := range g.blocks {
		b := &g.blocks[i]
		early := row.Permit <= b.by.AskedAfter
		if b.by.AskedAfter == 0 {
			early = !granted(row).After(b.by.Ended)
		}
		if early || !a.concerns(row, &b.by) {
			continue
		}
		b.broken = true
		a.violate(&Violation{Kind: BlockBroken, Owed: b.until.Sub(b.by.Ended), Got: row.Started.Sub(b.by.Ended), Until: &b.until,
			Text: fmt.Sprintf("a request %s after an answer that asked for %s of quiet (%s)",
				span(row.Started.Sub(b.by.Ended)), span(b.until.Sub(b.by.Ended)), b.why)}, &b.by, row)
	}
}

// noteBlock remembers what the answer asked for: as it was understood then,
// and as its evidence has it.
func (a *auditor) noteBlock(g *group, row *request) {
	until, why := row.AskedUntil, "rate-limit headers"
	if row.RetryAfter != "" {
		why = "Retry-After: " + ledger.Printable(row.RetryAfter, 60)
	}
	if t := retryAfter(row.RetryAfter, row.Ended, row.AskedUntil); t.After(until) {
		until = t
	}
	if !until.After(row.Ended) {
		return
	}
	if a.concerns(row) {
		g.host.Blocks++
	}
	g.blocks = append(g.blocks, block{by: *row, until: until, why: why})
}

func (a *auditor) checkRefused(g *group, row *request) {
	if row.Kind == "robots" {
		if g.known.IsZero() || row.Ended.Before(g.known) {
			g.known = row.Ended
		}
		return
	}
	d := row.robots
	if !d.Decided || !a.concerns(row) {
		return
	}
	g.host.RobotsIgnored = g.host.RobotsIgnored || d.Ignored
	unread := !d.Ignored && d.FetchedAt.After(row.Started) && (g.known.IsZero() || g.known.After(row.Started))
	if !d.FetchedAt.IsZero() && (g.known.IsZero() || d.FetchedAt.Before(g.known)) {
		g.known = d.FetchedAt
	}
	switch {
	case !d.Allowed && (d.FetchedAt.IsZero() || !d.FetchedAt.Add(time.Millisecond).After(granted(row))):
		a.violate(&Violation{Kind: Disallowed, Text: "a URL was requested that robots.txt disallows"}, row)
	case unread:
		a.violate(&Violation{Kind: RobotsUnknown, Text: "a URL was requested before the host's robots.txt was known"}, row)
	}
}

// checkTurnedAway: the page's row says that nothing was requested. A request
// whose URL is to be tried again has not written the page's row yet: then the
// row may be an earlier refusal that was lifted, by a shorter way to the URL or
// by hand.
func (a *auditor) checkTurnedAway(row *request) {
	if !row.hasPage || !turnedAway(row.outcome) || !row.RetryAt.IsZero() || row.Outcome == outcome.Cancelled || !a.concerns(row) {
		return
	}
	a.violate(&Violation{Kind: Refused, Text: fmt.Sprintf("a URL was requested that the crawl had turned away (%s)", row.outcome)}, row)
}

func (a *auditor) endGroup() {
	g := a.g
	if g == nil || g.host.Requests+g.host.NotSent == 0 {
		return
	}
	for _, b := range g.blocks { // nobody came before they ended, or the log ends first
		if !b.broken && a.concerns(&b.by) {
			g.host.BlocksKept++
		}
	}
	g.host.BlocksKept = min(g.host.BlocksKept, g.host.Blocks)
	a.report.Hosts = append(a.report.Hosts, *g.host)
}
