package explain

import (
	"fmt"
	"strings"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// judge puts the facts together: the fate, the sentence that says it, what is
// waited for, and what comes next.
func (g *gatherer) judge() {
	x := g.x
	parked := x.Host != nil && x.Host.State == "parked"
	switch {
	case x.Queue != nil && x.Queue.Place == string(frontier.InHand):
		x.Fate, x.Headline = InHand, "being fetched now: its request is in flight, or its answer is being written down"
	case x.Queue != nil && parked:
		g.parked()
	case x.Queue != nil:
		g.waiting()
	case g.page != nil && g.page.Outcome == outcome.Parked:
		g.parked()
	case g.page != nil && turnedAway(g.page):
		g.refused()
	case g.page != nil:
		x.Fate, x.Headline = Ended, g.ending()
		if g.page.RedirectTo != "" {
			x.Next = "its target is a URL of its own: tiptoe explain " + g.page.RedirectTo
		}
	default:
		g.unknown()
	}
}

// turnedAway: it ended without a request, by a rule.
func turnedAway(p *ledger.Page) bool {
	switch p.Outcome {
	case outcome.Robots, outcome.Scope, outcome.Trap, outcome.Budget:
		return true
	}
	return p.Robots.Decided && !p.Robots.Allowed
}

func (g *gatherer) refused() {
	x, p := g.x, g.page
	x.Fate = Refused
	switch {
	case p.Robots.Decided && !p.Robots.Allowed && p.Robots.Line > 0:
		x.Headline = fmt.Sprintf("not requested: line %d of robots.txt disallows it", p.Robots.Line)
		x.Next = "tiptoe crawl --ignore-robots goes on without robots.txt, on sites that are yours"
	case p.Robots.Decided && !p.Robots.Allowed:
		x.Headline = "not requested: " + p.Robots.Rule
		x.Next = "it is asked for again in a later crawl; --robots-policy open goes on without an answer"
	case p.Outcome == outcome.Scope:
		x.Headline = "not requested: " + p.Error
		x.Next = "--scope, --depth, --include and --exclude say what belongs to a crawl"
	case p.Outcome == outcome.Trap:
		x.Headline = "not requested: set aside as a crawler trap"
		x.Next = "tiptoe pages --outcome trap lists what was set aside"
	default:
		x.Headline = "not requested: " + p.Outcome.Fact().Meaning
	}
}

func (g *gatherer) parked() {
	x := g.x
	x.Fate = Parked
	x.Headline = "waits on a parked host: it failed too often in a row, and nothing is asked of it any more"
	if x.Host != nil && x.Host.Failures > 0 {
		x.Headline = fmt.Sprintf("waits on a parked host: it failed %d times in a row, and nothing is asked of it any more", x.Host.Failures)
	}
	x.Waits = &Wait{For: "somebody to release its host"}
	x.Next = "the URL is kept; " + g.resume() + " gives the host one more try"
}

// waiting finds what binds a queued URL: the latest of its own retry time and
// its host's clocks, or somebody's answer.
func (g *gatherer) waiting() {
	x, now := g.x, g.src.Now
	x.Fate = Waiting
	q, h := x.Queue, x.Host
	w := &Wait{}
	switch {
	case q.Place == string(frontier.ForRobots):
		w.For = "its host's robots.txt, which is being fetched"
	case q.Place == string(frontier.Dormant):
		w.For = "room in memory: its whole host waits on disk"
	case h != nil && h.BlockedUntil.After(now):
		w.For, w.Until = hostWait(h), h.BlockedUntil
	case x.Crew != nil && (h == nil || h.Worker == ""):
		w.For = fmt.Sprintf("a worker to take its host (%s in the fleet)", count(x.Crew.Workers, "is", "are"))
	case h == nil:
	case x.Crew != nil && h.From == "store" && q.Ahead < h.Cap && !h.Until.After(now):
		w.For = "its turn, which is now: the worker that has its host may be fetching it at this moment"
	case q.Ahead > 0 && h.Gap > 0:
		w.For = fmt.Sprintf("its turn: %s of its host before it, one request every %s (%s)", count(q.Ahead, "URL", "URLs"), span(h.Gap), h.GapFor)
		w.Until, w.About = later(h.Until, now).Add(time.Duration(q.Ahead)*h.Gap), true
	default:
		w.For, w.Until = hostWait(h), h.Until
	}
	if q.NotBefore.After(now) && q.NotBefore.After(w.Until) {
		w.Until, w.About = q.NotBefore, false
		w.For = "its own next try"
		if n := len(x.Requests); n > 0 && x.Requests[n-1].RetryFor != "" {
			w.For = fmt.Sprintf("its own next try (%s)", x.Requests[n-1].RetryFor)
		}
	}
	if w.For == "" {
		w.For = "its turn"
	}
	if !g.src.Live || g.row.Status != ledger.Running {
		x.Headline = "waits in the queue; no tiptoe is working on it"
		if g.src.Live || g.row.Status == ledger.Paused {
			x.Headline = fmt.Sprintf("waits in the queue; its crawl is %s", g.row.Status)
		}
		x.Next = g.resume() + " goes on with the crawl"
		if w.Until.IsZero() || w.About {
			w = &Wait{For: "the crawl to go on"}
		}
		x.Waits = w
		return
	}
	x.Waits = w
	x.Headline = "waits for " + w.For
	if q.Ahead > 0 && !w.About && h != nil && h.Gap > 0 {
		x.Next = fmt.Sprintf("then its turn: %s of its host before it, one request every %s, so another %s or so",
			count(q.Ahead, "URL", "URLs"), span(h.Gap), span(time.Duration(q.Ahead)*h.Gap))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hostWait says in a few words what the host waits for.
func hostWait(h *Host) string {
	switch {
	case h.BlockedBy == "Retry-After":
		return "its host, which asked for quiet (Retry-After)"
	case h.BlockedBy != "":
		return "its host (" + h.BlockedBy + ")"
	case h.State == "running" && h.InFlight >= h.Cap:
		return fmt.Sprintf("one of its host's %s to end", count(h.InFlight, "request", "requests in flight"))
	case strings.HasPrefix(h.Reason, "pace"):
		return fmt.Sprintf("its turn: its host is asked once every %s (%s)", span(h.Gap), h.GapFor)
	case h.Reason != "":
		return "its host (" + h.Reason + ")"
	}
	return "its turn"
}

// unknown says what would happen if somebody named the URL now.
func (g *gatherer) unknown() {
	x := g.x
	x.Fate = Unknown
	x.Headline = fmt.Sprintf("not known to crawl %d: no page, sitemap or redirect has named it", g.row.ID)
	if g.src.Frontier == nil && x.Without != "" {
		x.Headline = fmt.Sprintf("not in the ledger of crawl %d; whether it waits in the queue could not be seen", g.row.ID)
	}
	would := ""
	switch h := x.Host; {
	case x.Scope != nil && !x.Scope.OK:
		would = "it would be turned away: " + x.Scope.Rule
	case x.Robots != nil && !x.Robots.Allowed && x.Robots.Line > 0:
		would = fmt.Sprintf("it would not be requested: line %d of robots.txt disallows it (%s)", x.Robots.Line, x.Robots.Rule)
	case x.Robots != nil && !x.Robots.Allowed:
		would = "it would not be requested: " + x.Robots.Rule
	case h != nil && h.State == "parked":
		would = fmt.Sprintf("it would be queued and wait: its host is parked (%s)", h.Reason)
	case x.Robots == nil:
		would = "it would be queued, and its host's robots.txt fetched first"
	case h != nil && !h.BlockedUntil.IsZero():
		would = fmt.Sprintf("it would be queued and fetched when its host may be asked again (%s, until %s)", h.BlockedBy, x.clock(h.BlockedUntil))
	case h != nil && h.Waiting > 0:
		would = fmt.Sprintf("it would be queued with %s of its host, one request every %s", count(h.Waiting, "other URL", "other URLs"), span(h.Gap))
	default:
		would = "it would be queued and fetched"
	}
	switch {
	case g.row.Status == ledger.Completed:
		x.Next = "the crawl is complete; in another one like it, if a page named it, " + would
	case g.src.Live:
		x.Next = "if a page named it now, " + would
	default:
		x.Next = "if the crawl went on and a page named it, " + would
	}
}

func (g *gatherer) resume() string {
	if g.row.Status == ledger.Paused { // as only jobs are
		return "tiptoe job resume"
	}
	return fmt.Sprintf("tiptoe resume --crawl %d", g.row.ID)
}

// ending is how it went, in one sentence.
func (g *gatherer) ending() string {
	p := g.page
	tries := ""
	if p.Tries > 1 {
		tries = fmt.Sprintf(", at the %s try", ordinal(p.Tries))
	}
	switch {
	case p.Outcome == outcome.OK:
		return fmt.Sprintf("fetched: HTTP %d, %d bytes of %s%s", p.Status, p.Size, orDash(p.ContentType), tries)
	case p.Outcome == outcome.Redirect:
		return fmt.Sprintf("redirects (HTTP %d) to %s", p.Status, p.RedirectTo)
	case p.Status > 0:
		return fmt.Sprintf("%s: HTTP %d%s", p.Outcome.Fact().Meaning, p.Status, tries)
	}
	return p.Outcome.Fact().Meaning + tries
}
