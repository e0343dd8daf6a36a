package audit

import (
	"slices"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// pages is what the replay needs to know about pages: a few words for each
// host, and a filter over those that were turned away. Whatever these cannot
// say for certain is looked up, page by page; both are there to make that rare.
type pages struct {
	hosts   map[string]*hostRobots
	refused *filter
}

// hostRobots is what a host's pages say about its robots.txt.
type hostRobots struct {
	fetched   []int64 // when the copies that decided were fetched, in ms; at most maxCopies
	delay     time.Duration
	ignored   bool
	ambiguous bool // copies differ in their Crawl-delay, as those of http and https may, or are too many
}

// maxCopies of a host's robots.txt are told apart.
const maxCopies = 64

func newPages() *pages { return &pages{hosts: map[string]*hostRobots{}, refused: &filter{}} }

func (p *pages) add(j *ledger.Judged) {
	if j.Robots.Decided && !j.Robots.Allowed || turnedAway(j.Outcome) {
		p.refused.add(j.FP)
	}
	if !j.Robots.Decided || j.Robots.FetchedAt.IsZero() && !j.Robots.Ignored {
		return
	}
	h := p.hosts[j.Host]
	if h == nil {
		h = &hostRobots{delay: j.Robots.CrawlDelay}
		p.hosts[j.Host] = h
	}
	h.ambiguous = h.ambiguous || h.delay != j.Robots.CrawlDelay
	h.ignored = h.ignored || j.Robots.Ignored
	if at := j.Robots.FetchedAt.UnixMilli(); !j.Robots.Ignored && !slices.Contains(h.fetched, at) {
		if len(h.fetched) == maxCopies {
			h.ambiguous = true
			return
		}
		h.fetched = append(h.fetched, at)
	}
}

// turnedAway are the outcomes of pages that no request was to be made for,
// robots.txt aside, which may change its mind.
func turnedAway(o outcome.Outcome) bool {
	return o == outcome.Scope || o == outcome.Trap || o == outcome.Budget
}

// decision is what is certain about the robots decision on any page of the host
// at a time: the copy in force then. ok is false if the page itself must be
// asked.
func (p *pages) decision(host string, at time.Time) (d ledger.RobotsDecision, ok bool) {
	h := p.hosts[host]
	if h == nil || h.ambiguous || h.ignored && len(h.fetched) > 0 {
		return d, false
	}
	d = ledger.RobotsDecision{Decided: true, Allowed: true, CrawlDelay: h.delay, Ignored: h.ignored}
	for _, ms := range h.fetched {
		// The latest that had been fetched; if there was none, the first.
		t := time.UnixMilli(ms)
		switch had, have := !d.FetchedAt.IsZero() && !d.FetchedAt.After(at), !t.After(at); {
		case d.FetchedAt.IsZero(), have && (!had || t.After(d.FetchedAt)), !have && !had && t.Before(d.FetchedAt):
			d.FetchedAt = t
		}
	}
	return d, true
}

// filter answers "certainly not" for nearly every page that was not added. Its
// size is fixed: 32 MiB keep false alarms, each the price of one look-up, below
// one in a thousand up to some 18 million pages.
type filter struct{ bits []uint64 }

const (
	filterBits   = 1 << 28
	filterPlaces = 7
)

func (f *filter) add(fp weburl.Fingerprint) {
	if f.bits == nil {
		f.bits = make([]uint64, filterBits/64)
	}
	for i := range uint64(filterPlaces) {
		n := place(fp, i)
		f.bits[n/64] |= 1 << (n % 64)
	}
}

func (f *filter) has(fp weburl.Fingerprint) bool {
	if f.bits == nil {
		return false
	}
	for i := range uint64(filterPlaces) {
		if n := place(fp, i); f.bits[n/64]&(1<<(n%64)) == 0 {
			return false
		}
	}
	return true
}

// place spreads the two halves of a fingerprint, which are random already.
func place(fp weburl.Fingerprint, i uint64) uint64 { return (fp.Lo + i*(fp.Hi|1)) % filterBits }
