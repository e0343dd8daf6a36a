// Package explain answers: what became of this URL, why, and what is it
// waiting for?
//
// It gathers everything that is known about one URL in one crawl: how it was
// normalised, where it was found, which rule of scope and which line of
// robots.txt decided, when its turn comes, every request made for it and what
// that request had waited for, how it ended, and the stored evidence. A URL
// that waits is told for what and until when; one that nobody has named yet is
// told what would happen to it now.
//
// # Where the facts come from
//
// The ledger, for what has happened. The frontier, for what has not: if a
// tiptoe is running it answers for itself (Live), otherwise its store is opened
// (Stored); if neither is possible the explanation says so and goes without. Of
// a fleet's hosts one worker has the exact state and all others the store: what
// it wrote with its last commit, and the explanation says when that was.
// Rules are asked of package crawl, so that an explanation cannot judge by
// other rules than the crawl did.
//
// An explanation is a value: the command prints it as text or JSON, a running
// tiptoe sends it through its control socket. Strangers' text in it is cleaned
// where it is printed. Nothing is changed by asking, except that the trap
// defence counts the look.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Ledger is the part of the durable record that explanations read.
type Ledger interface {
	Crawl(ctx context.Context, id int64) (ledger.Crawl, error)
	LatestCrawl(ctx context.Context) (ledger.Crawl, error)
	Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error)
	Evidence(ctx context.Context, crawl int64, url string) ([]ledger.Evidence, error)
	RequestsOf(ctx context.Context, crawl int64, fp weburl.Fingerprint) ([]ledger.Request, error)
	Domain(ctx context.Context, host string) (ledger.Domain, bool, error)
}

// Frontier is what is queued, and the hosts' clocks.
type Frontier interface {
	// Find looks for a queued URL; nil if it is not there.
	Find(ctx context.Context, crawl int64, group, url string) (*Spot, error)
	// Host describes a pace group; nil if nothing is known of it.
	Host(ctx context.Context, group string, spec *crawl.Spec, now time.Time) (*Host, error)
	// Robots returns an origin's robots.txt, the caller's own; nil if unknown.
	Robots(ctx context.Context, group, origin string) (*frontier.RobotsCopy, error)
}

// Sources are all that an explanation is made from.
type Sources struct {
	Ledger   Ledger
	Frontier Frontier // nil if it cannot be asked
	Without  string   // why it cannot
	Live     bool     // a tiptoe is running on the data directory; in a fleet its crew says so
	Now      time.Time
	Group    func(hostKey string) string                                 // nil: the host itself
	Trapped  func(crawl int64, u weburl.URL) (rule string, trapped bool) // nil: not known
	Crew     func(ctx context.Context, crawl int64) (Crew, error)        // nil: there is no fleet
}

// ErrBadURL says that what was typed is no URL.
var ErrBadURL = errors.New("not a URL that can be crawled")

// Explain gathers what is known about a URL in a crawl; 0 is the newest.
func Explain(ctx context.Context, src Sources, input string, id int64) (*Explanation, error) {
	row, spec, err := src.crawl(ctx, id)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Input: withoutPassword(input), At: src.Now, Live: src.Live, Without: src.Without,
		Crawl: Crawl{ID: row.ID, Status: row.Status, Reason: row.Reason, Seeds: row.Seeds, Started: row.Started, Ended: row.Ended}}
	if src.Crew != nil {
		crew, err := src.Crew(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		src.Live = crew.Supervised || crew.By != "" && crew.Workers > 0
		x.Crew, x.Live = &crew, src.Live
	}
	candidates, err := readings(input)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadURL, err)
	}
	g := &gatherer{ctx: ctx, src: &src, row: &row, spec: spec, x: x, input: input}
	for _, u := range candidates {
		if err := g.look(u); err != nil {
			return nil, err
		}
		if g.page != nil || x.Queue != nil {
			break
		}
	}
	if g.page == nil && x.Queue == nil && len(candidates) > 1 {
		if err := g.look(candidates[0]); err != nil {
			return nil, err
		}
	}
	return x, g.fill()
}

func (s *Sources) crawl(ctx context.Context, id int64) (row ledger.Crawl, spec *crawl.Spec, err error) {
	if id != 0 {
		row, err = s.Ledger.Crawl(ctx, id)
	} else {
		row, err = s.Ledger.LatestCrawl(ctx)
	}
	if err != nil {
		return row, nil, err
	}
	spec = new(crawl.Spec)
	if len(row.Spec) > 0 {
		if err := json.Unmarshal(row.Spec, spec); err != nil {
			return row, nil, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
		}
	}
	return row, spec, nil
}

// gatherer fills one explanation.
type gatherer struct {
	ctx   context.Context
	src   *Sources
	row   *ledger.Crawl
	spec  *crawl.Spec
	x     *Explanation
	input string // as typed, perhaps with a password
	u     weburl.URL
	page  *ledger.Page
	group string
}

// look finds a URL's page, requests and place in the queue.
func (g *gatherer) look(u weburl.URL) error {
	g.u, g.page = u, nil
	x := g.x
	x.URL, x.Host, x.Queue, x.Requests = u.String(), nil, nil, nil
	x.Changes = changes(g.input, u)
	p, ok, err := g.src.Ledger.Page(g.ctx, g.row.ID, u.String())
	if err != nil {
		return err
	}
	if ok {
		g.page = &p
	}
	reqs, err := g.src.Ledger.RequestsOf(g.ctx, g.row.ID, u.Fingerprint())
	if err != nil {
		return err
	}
	g.group = u.HostKey()
	switch {
	case len(reqs) > 0:
		g.group = reqs[len(reqs)-1].Group
	case g.src.Group != nil:
		g.group = g.src.Group(u.HostKey())
	}
	if g.src.Frontier != nil {
		x.Queue, err = g.src.Frontier.Find(g.ctx, g.row.ID, g.group, u.String())
		if errors.Is(err, errTooFar) {
			x.Without, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
	}
	return g.attempts(reqs)
}

// attempts turns requests into what a reader wants to know of them.
func (g *gatherer) attempts(reqs []ledger.Request) error {
	foundAt, err := g.foundAt()
	if err != nil {
		return err
	}
	for i := range reqs {
		r := &reqs[i]
		a := Attempt{Started: r.Started, Ended: r.Ended, Status: r.Status, Outcome: r.Outcome.String(), Cause: r.Cause, Sent: r.Sent(),
			Error: r.Error, Gap: r.GapOwed, GapFor: r.GapWhy, InFlight: r.InFlight, Cap: r.Cap, AskedUntil: r.AskedUntil,
			RetryAt: r.RetryAt, RetryFor: r.RetryWhy}
		switch {
		case i > 0:
			a.Waited, a.WaitedFor = r.Started.Sub(reqs[i-1].Ended), reqs[i-1].RetryWhy
			if a.WaitedFor == "" {
				a.WaitedFor = "another try"
			}
		case !foundAt.IsZero() && r.Started.After(foundAt):
			a.Waited, a.WaitedFor = r.Started.Sub(foundAt), "in its host's queue"
		}
		g.x.Requests = append(g.x.Requests, a)
	}
	return nil
}

// foundAt is when the URL was first named: when the page that named it was
// read, or the crawl's start.
func (g *gatherer) foundAt() (time.Time, error) {
	from := ""
	switch {
	case g.page != nil:
		from = g.page.FoundOn
	case g.x.Queue != nil:
		from = g.x.Queue.FoundOn
	}
	if from == "" {
		return g.row.Started, nil
	}
	p, _, err := g.src.Ledger.Page(g.ctx, g.row.ID, from)
	return p.FetchedAt, err
}

// fill explains what look has found.
func (g *gatherer) fill() error {
	x := g.x
	if err := g.fillOrigin(); err != nil {
		return err
	}
	if err := g.fillHost(); err != nil {
		return err
	}
	if err := g.fillRobots(); err != nil {
		return err
	}
	ev, err := g.src.Ledger.Evidence(g.ctx, g.row.ID, x.URL)
	if err != nil {
		return err
	}
	for _, e := range ev {
		x.Evidence = append(x.Evidence, Evidence{Type: e.Type, At: e.At, Confidence: e.Confidence, Content: jsonOrNil(e.Content)})
	}
	if g.page != nil && (x.Queue == nil || g.page.Outcome == outcome.Parked) {
		g.fillResult()
	}
	g.judge()
	return nil
}

// fillOrigin says where the URL comes from, whether it belongs, and when its
// turn comes.
func (g *gatherer) fillOrigin() error {
	x := g.x
	depth, kind := 1, "page"
	switch {
	case x.Queue != nil:
		q := x.Queue
		depth, kind = q.Depth, q.Kind
		x.Found = &Found{On: q.FoundOn, Via: q.Via, Depth: q.Depth, Chain: q.Chain}
		x.Priority = &Priority{Rank: q.Rank}
		_, x.Priority.Words = crawl.Priority(q.Kind, q.Via, q.Depth)
	case g.page != nil:
		p := g.page
		depth, kind = p.Depth, p.Kind
		x.Found = &Found{On: p.FoundOn, Via: p.Via, Depth: p.Depth}
		if p.Tries > 0 {
			x.Priority = new(Priority)
			x.Priority.Rank, x.Priority.Words = crawl.Priority(p.Kind, p.Via, p.Depth)
		}
	default:
		for _, s := range g.spec.Seeds {
			if s == x.URL {
				depth = 0
			}
		}
	}
	x.Kind = kind
	if p := g.page; p != nil && x.Queue == nil && (p.Outcome == outcome.Scope || p.Outcome == outcome.Trap) {
		x.Scope = &Judgement{OK: false, Rule: p.Error, Depth: depth}
		return nil
	}
	if kind != "page" {
		return nil // sitemaps and indexes are read wherever they were named
	}
	v, err := g.spec.JudgeScope(g.u, depth, g.src.Now)
	if err != nil {
		return err
	}
	x.Scope = &Judgement{OK: v.OK, Rule: v.Rule, Depth: depth}
	if v.OK && g.page == nil && x.Queue == nil && g.src.Trapped != nil {
		if rule, trapped := g.src.Trapped(g.row.ID, g.u); trapped {
			x.Scope = &Judgement{OK: false, Rule: rule, Depth: depth}
		}
	}
	return nil
}

func (g *gatherer) fillHost() (err error) {
	x := g.x
	if g.src.Frontier != nil {
		x.Host, err = g.src.Frontier.Host(g.ctx, g.group, g.spec, g.src.Now)
	}
	if err != nil || x.Host != nil {
		return err
	}
	d, ok, err := g.src.Ledger.Domain(g.ctx, g.group)
	if err != nil || !ok {
		return err
	}
	x.Host = fromDomain(&d, g.spec, g.src.Now)
	return nil
}

// fillRobots takes the decision that was made or, while there is none, the one
// that would be made by the copy at hand.
func (g *gatherer) fillRobots() error {
	x := g.x
	x.RobotsURL = g.u.Origin() + "/robots.txt"
	if p := g.page; p != nil && p.Robots.Decided {
		d := p.Robots
		x.Robots = &Robots{Allowed: d.Allowed, Rule: d.Rule, Line: d.Line, CrawlDelay: d.CrawlDelay, FetchedAt: d.FetchedAt,
			Confidence: d.Confidence, Ignored: d.Ignored}
		return nil
	}
	if g.page != nil && x.Queue == nil {
		return nil // turned away before anybody asked
	}
	var c *frontier.RobotsCopy
	if g.src.Frontier != nil {
		var err error
		if c, err = g.src.Frontier.Robots(g.ctx, g.group, g.u.Origin()); err != nil {
			return err
		}
	}
	d, known, err := g.spec.JudgeRobots(c, x.URL)
	if err != nil || !known {
		return err
	}
	x.Robots = &Robots{Allowed: d.Allowed, Rule: d.Rule, Line: d.Line, CrawlDelay: d.CrawlDelay, FetchedAt: d.FetchedAt,
		Confidence: d.Confidence, Ignored: d.Ignored, Foreseen: true}
	if c != nil {
		x.Robots.Expired = g.src.Now.After(c.Expires)
	}
	return nil
}

func (g *gatherer) fillResult() {
	p := g.page
	g.x.Result = &Result{Outcome: p.Outcome.String(), Meaning: p.Outcome.Fact().Meaning, Status: p.Status, Error: p.Error,
		ContentType: p.ContentType, Bytes: p.Size, Took: p.Timing.Total, At: p.FetchedAt, Title: p.Title, RedirectTo: p.RedirectTo,
		Links: p.LinkCount, Tries: p.Tries, NoFollow: p.NoFollow, NoIndex: p.NoIndex}
}

func jsonOrNil(s string) json.RawMessage {
	if s = strings.TrimSpace(s); json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return nil
}
