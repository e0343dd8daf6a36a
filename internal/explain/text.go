package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/ledger"
)

// Text writes the explanation for people: the answer first, then the trail in
// the order in which things happened.
func (x *Explanation) Text(w io.Writer) error {
	p := &printer{w: w}
	p.printf("%s\n", clean(x.URL))
	p.printf("  %s\n", clean(x.Headline))
	if x.Waits != nil && !x.Waits.Until.IsZero() {
		about := ""
		if x.Waits.About {
			about = "about "
		}
		p.printf("  until %s%s%s\n", about, x.clock(x.Waits.Until), x.inTime(x.Waits.Until))
	}
	p.printf("\n")
	p.line("crawl", "%d, %s%s%s", x.Crawl.ID, x.Crawl.Status, reason(x.Crawl.Reason), x.crew())
	if len(x.Changes) > 0 {
		p.line("typed", "%s", clean(strings.TrimSpace(x.Input)))
		p.line("normalised", "%s", clean(strings.Join(x.Changes, "; ")))
	}
	x.found(p)
	x.rules(p)
	x.turn(p)
	for i := range x.Requests {
		x.attempt(p, i)
	}
	x.result(p)
	for _, e := range x.Evidence {
		x.evidence(p, &e)
	}
	if x.Without != "" {
		p.line("not seen", "%s", clean(x.Without))
	}
	if x.Next != "" {
		p.line("next", "%s", clean(x.Next))
	}
	return p.err
}

// crew says who works for the crawl, in a fleet.
func (x *Explanation) crew() string {
	c := x.Crew
	if c == nil || c.By == "" || x.Crawl.Status != ledger.Running {
		return ""
	}
	s := fmt.Sprintf("; %s watches over it, %s in the fleet", clean(c.By), count(c.Workers, "worker is", "workers are"))
	if !c.Supervised {
		s = fmt.Sprintf("; %s watched over it and is gone, %s in the fleet", clean(c.By), count(c.Workers, "worker is", "workers are"))
	}
	if c.Held {
		s += "; it is being stopped"
	}
	if c.Trouble != "" {
		s += "; " + clean(c.Trouble)
	}
	return s
}

// worker says who has the host, and how fresh what is known of it is.
func (x *Explanation) worker(h *Host) string {
	s := "nobody has the host now"
	if h.Worker != "" {
		s = clean(h.Worker) + " has the host"
	}
	if h.LeaseLeft > 0 {
		s += fmt.Sprintf(", for %s unless it renews its lease", span(h.LeaseLeft.Truncate(time.Second)))
	}
	switch {
	case h.From == "scheduler":
		s += " and says this itself"
	case !h.AsOf.IsZero():
		s += fmt.Sprintf("; its clocks are as of %s (%s ago)", x.clock(h.AsOf), span(max(x.At.Sub(h.AsOf), 0)))
	}
	return s
}

func (x *Explanation) inTime(t time.Time) string {
	if d := t.Sub(x.At); d > 0 {
		return " (in " + span(d) + ")"
	}
	return ""
}

func (x *Explanation) found(p *printer) {
	f := x.Found
	if f == nil {
		return
	}
	from := fmt.Sprintf("%s from a seed", count(f.Depth, "link", "links"))
	switch f.Via {
	case "seed":
		p.line("found", "a seed of the crawl")
	case "link":
		p.line("found", "as a link on %s, %s", clean(f.On), from)
	case "redirect":
		p.line("found", "as the target of a redirect from %s, %s", clean(f.On), from)
	case "sitemap":
		p.line("found", "in the sitemap %s", clean(f.On))
	case "robots":
		p.line("found", "as a Sitemap line in %s", clean(f.On))
	case "guess":
		p.line("found", "by looking at the usual place for a sitemap")
	default:
		p.line("found", "by %s %s", clean(f.Via), clean(f.On))
	}
	for _, c := range f.Chain {
		p.line("", "before that: %s", clean(c))
	}
}

func (x *Explanation) rules(p *printer) {
	switch s := x.Scope; {
	case s == nil:
	case s.OK:
		p.line("scope", "%s", clean(s.Rule))
	case x.Fate == Unknown:
		p.line("scope", "would be turned away: %s", clean(s.Rule))
	default:
		p.line("scope", "turned away: %s", clean(s.Rule))
	}
	switch r := x.Robots; {
	case r != nil:
		p.line("robots.txt", "%s", x.robots(r))
	case x.Fate == Waiting || x.Fate == Unknown || x.Fate == Parked:
		p.line("robots.txt", "not read yet: %s", clean(x.RobotsURL))
	}
	if x.Fate != Unknown {
		p.line("dedupe", "known to the crawl: however often it is found again, it is queued once")
	}
}

func (x *Explanation) robots(r *Robots) string {
	url := x.RobotsURL
	word, rule := "allowed", clean(r.Rule)
	if !r.Allowed {
		word = "disallowed"
	}
	if r.Foreseen {
		word = "would be " + word
	}
	read := ""
	if !r.FetchedAt.IsZero() {
		read = ", read " + x.clock(r.FetchedAt)
	}
	var s string
	switch {
	case r.Ignored:
		s = "IGNORED, as --ignore-robots asked"
	case r.Line > 0:
		s = fmt.Sprintf("%s by line %d (%s) of %s%s", word, r.Line, rule, clean(url), read)
	case rule != "":
		s = fmt.Sprintf("%s: %s%s", word, rule, read)
	default:
		s = fmt.Sprintf("%s: no rule in %s matches%s", word, clean(url), read)
	}
	if r.CrawlDelay > 0 {
		s += fmt.Sprintf("; it asks for %s between requests", span(r.CrawlDelay))
	}
	if r.Confidence > 0 && r.Confidence < 1 {
		s += fmt.Sprintf("; confidence %.1f", r.Confidence)
	}
	if r.Expired {
		s += "; the copy is too old and will be fetched again first"
	}
	return s
}

// turn says when it comes: priority, queue, host.
func (x *Explanation) turn(p *printer) {
	if x.Priority != nil {
		p.line("priority", "%s (rank %d)", x.Priority.Words, x.Priority.Rank)
	}
	if q := x.Queue; q != nil {
		s := fmt.Sprintf("%s of its host before it", count(q.Ahead, "URL", "URLs"))
		if q.Tries > 0 {
			s += fmt.Sprintf("; %s so far", count(q.Tries, "try", "tries"))
		}
		if !q.NotBefore.IsZero() {
			s += "; its own next try is not before " + x.clock(q.NotBefore)
		}
		p.line("queue", "%s", s)
	}
	h := x.Host
	if h == nil || x.Fate == Ended || x.Fate == Refused {
		return
	}
	s := h.State
	if h.State == "idle" && h.From != "scheduler" {
		s = "owed no wait"
	}
	why, _, _ := strings.Cut(h.Reason, ":") // the pace follows in full
	switch {
	case why != "" && !h.Until.IsZero():
		s += fmt.Sprintf(" until %s (%s)", x.clock(h.Until), why)
	case why != "":
		s += " (" + why + ")"
	}
	s += fmt.Sprintf("; one request every %s or so (%s), at most %d in flight", span(h.Gap), h.GapFor, h.Cap)
	if h.From == "scheduler" {
		s += fmt.Sprintf(", now %d; %s", h.InFlight, count(h.Waiting, "URL waits", "URLs wait"))
	}
	p.line("host", "%s is %s", clean(h.Group), clean(s))
	if x.Crew != nil {
		p.line("worker", "%s", x.worker(h))
	}
	if h.Learned > 0 {
		p.line("", "learned from its 429 answers (%d so far): %s between requests", h.HTTP429, span(h.Learned))
	}
}

func (x *Explanation) attempt(p *printer, i int) {
	a := &x.Requests[i]
	s := a.Outcome
	if a.Status > 0 {
		s = fmt.Sprintf("HTTP %d (%s)", a.Status, a.Outcome)
	}
	if a.Sent {
		s += " in " + span(a.Ended.Sub(a.Started))
	} else {
		s += ", never left this machine"
	}
	if a.Waited > 0 {
		s += fmt.Sprintf("; had waited %s (%s)", span(a.Waited), a.WaitedFor)
	}
	if a.Gap > 0 {
		s += fmt.Sprintf("; %s owed since its host's request before (%s)", span(a.Gap), a.GapFor)
	}
	if a.Error != "" {
		s += "; " + a.Error
	}
	p.line("request "+strconv.Itoa(i+1), "%s  %s", a.Started.Local().Format("15:04:05.000"), clean(s))
	if !a.AskedUntil.IsZero() {
		p.line("", "the server asked for quiet until %s", x.clock(a.AskedUntil))
	}
}

func (x *Explanation) result(p *printer) {
	r := x.Result
	if r == nil || x.Fate == Parked {
		return
	}
	s := r.Outcome + ": " + r.Meaning
	if r.Error != "" && x.Fate != Refused {
		s += " (" + r.Error + ")"
	}
	p.line("outcome", "%s, %s", clean(s), x.clock(r.At))
	if r.Title != "" {
		p.line("title", "%s", clean(r.Title))
	}
	var notes []string
	if r.Links > 0 {
		notes = append(notes, count(r.Links, "link", "links"))
	}
	if r.NoFollow {
		notes = append(notes, "nofollow: its links were not followed")
	}
	if r.NoIndex {
		notes = append(notes, "noindex")
	}
	if len(notes) > 0 {
		p.line("content", "%s", strings.Join(notes, ", "))
	}
}

// evidence leaves the robots decision out: it has a line of its own.
func (x *Explanation) evidence(p *printer, e *Evidence) {
	if e.Type == ledger.RobotsAllowed || e.Type == ledger.BlockedByRobots {
		return
	}
	var c map[string]any
	_ = json.Unmarshal(e.Content, &c) // without content the type says enough
	s := e.Type
	switch ra, _ := c["retryAfter"].(string); {
	case e.Type == "throttled" && ra != "":
		s = fmt.Sprintf("throttled: HTTP %v with Retry-After: %s", c["status"], ra)
	case e.Type == "throttled":
		s = fmt.Sprintf("throttled: HTTP %v, without a Retry-After", c["status"])
	case c["rule"] != nil:
		s = fmt.Sprintf("%s: %v", e.Type, c["rule"])
	case len(e.Content) > 2:
		s = e.Type + ": " + string(e.Content)
	}
	p.line("evidence", "%s, %s", clean(s), x.clock(e.At))
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) line(label, format string, args ...any) {
	p.printf("  %-11s %s\n", label, fmt.Sprintf(format, args...))
}

func clean(s string) string { return ledger.Printable(s, 0) }

// clock writes a local time, with the day if it is not the day of asking.
func (x *Explanation) clock(t time.Time) string {
	t, now := t.Local(), x.At.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func reason(s string) string {
	if s == "" {
		return ""
	}
	return " (" + clean(s) + ")"
}

func orDash(s string) string {
	if s == "" {
		return "unknown type"
	}
	return s
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return strconv.Itoa(n) + "st"
	case n%10 == 2 && n%100 != 12:
		return strconv.Itoa(n) + "nd"
	case n%10 == 3 && n%100 != 13:
		return strconv.Itoa(n) + "rd"
	}
	return strconv.Itoa(n) + "th"
}

func span(d time.Duration) string {
	switch {
	case d < 100*time.Microsecond:
		return "less than 0.1 ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	return d.Round(time.Second).String()
}
