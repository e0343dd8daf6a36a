// Package plan answers: what would a crawl of these sites be like?
//
// A crawl that only counts (crawl.Spec.CountOnly) reads robots.txt and the
// sitemaps, politely paced as always, and fetches no page. Book is the ledger
// of such a crawl: it keeps a few numbers a host. Predict, which is pure, turns
// them into pages, requests, a duration and what limits it.
//
// # What the numbers mean
//
// Pages are what sitemaps and seeds name, in scope and allowed by robots.txt,
// each once. A host without a sitemap has an unknown number of pages, and what
// contains it is unknown too: null, never zero; the seeds are its lower bound.
// Links, redirects and retries are not foreseen, so a site whose sitemap is
// stale has more to crawl than is said here.
//
// The duration is that of the slowest pace group, since groups are crawled side
// by side: requests times the gap that is owed (base delay at its mean,
// Crawl-delay, learned delay), or the time the answers take, whichever is more,
// after any block that still holds. It takes the machine to be faster than
// politeness allows, which is so unless the delay was set to zero.
//
// Nothing here is kept: a crash loses a plan.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/politeness"
)

// Host is what was found out about one host.
type Host struct {
	Name       string
	Group      string // what it is paced with
	Pages      int64  // named by seeds and sitemaps, allowed and in scope
	Known      bool   // a sitemap was read: Pages is not just the seeds
	Closed     int64  // named, but closed by robots.txt
	Outside    int64  // named, but out of scope
	Sitemaps   int64  // sitemap files there
	Origins    int64  // each has a robots.txt
	CrawlDelay time.Duration
	Trouble    string           // why nothing could be found out; empty if it could
	Clocks     politeness.State // of its group, as a crawl that starts now would find them
}

// Limits are the crawl's settings that bear on its length.
type Limits struct {
	Rules    politeness.Rules
	MaxURLs  int64         // 0: none
	Duration time.Duration // 0: none
	Now      time.Time
}

// HostPlan is one host of a plan. Nil is unknown.
type HostPlan struct {
	Host
	Requests *int64
	Each     time.Duration // from one request to the next
	Why      politeness.Why
	Blocked  time.Duration // how long its group must be left alone first
	Time     *time.Duration
}

// Plan is a prediction. Nil is unknown.
type Plan struct {
	Hosts    []HostPlan
	Pages    *int64 // that will be fetched, after the limits
	Named    int64  // pages that seeds and sitemaps name
	Requests *int64
	Time     *time.Duration
	LimitBy  []string // what limits it, the most important first
	Cut      bool     // not everything could be looked at: Named is a lower bound
	Asked    int64    // requests made for this plan
}

// pace is one group's work.
type pace struct {
	name    string
	pages   int64
	known   bool
	extra   time.Duration // robots, sitemaps and the block
	time    time.Duration // of the pages
	slowest *HostPlan
}

// Predict makes the plan.
func Predict(hosts []Host, l Limits) Plan {
	p := Plan{}
	groups := map[string]*pace{}
	var order []*pace
	for _, h := range hosts {
		p.Hosts = append(p.Hosts, predictHost(h, l))
	}
	slices.SortStableFunc(p.Hosts, func(a, b HostPlan) int { return cmp.Compare(b.span(), a.span()) })
	known := true
	var others int64
	for i := range p.Hosts {
		h := &p.Hosts[i]
		g := groups[h.Group]
		if g == nil {
			g = &pace{name: h.Group, known: true, extra: h.Blocked, slowest: h}
			groups[h.Group] = g
			order = append(order, g)
		}
		g.pages += h.Pages
		g.known = g.known && h.Known
		g.time += time.Duration(h.Pages) * h.Each
		g.extra += time.Duration(h.Origins+h.Sitemaps) * h.Each
		p.Named += h.Pages
		others += h.Origins + h.Sitemaps
		known = known && h.Known
	}
	p.limit(order, known, others, l)
	return p
}

// span is by what hosts are ordered: the time they take, as far as it is known.
func (h *HostPlan) span() time.Duration {
	return time.Duration(h.Pages+h.Origins+h.Sitemaps)*h.Each + h.Blocked
}

func predictHost(h Host, l Limits) HostPlan {
	st := h.Clocks
	st.SetCrawlDelay(max(h.CrawlDelay, 0))
	hp := HostPlan{Host: h, Blocked: max(st.BlockedUntil.Sub(l.Now), 0)}
	hp.Each, hp.Why = st.Gap(l.Rules, 0.5)
	if slow := st.Latency / time.Duration(st.Cap(l.Rules)); slow > hp.Each {
		hp.Each, hp.Why = slow, politeness.WhyLatency
	}
	if h.Known {
		n := h.Pages + h.Origins + h.Sitemaps
		t := hp.span()
		hp.Requests, hp.Time = &n, &t
	}
	return hp
}

// limit finds how far the crawl gets and what stops it.
func (p *Plan) limit(groups []*pace, known bool, others int64, l Limits) {
	pages := p.Named
	var whole time.Duration
	for _, g := range groups {
		whole = max(whole, g.extra+g.time)
	}
	took := whole
	if l.MaxURLs > 0 && l.MaxURLs <= pages {
		pages, took = l.MaxURLs, timeFor(groups, l.MaxURLs, whole)
		known = true // there is more than enough
		p.LimitBy = append(p.LimitBy, fmt.Sprintf("page limit (%d): %d URLs are named", l.MaxURLs, p.Named))
	}
	if l.Duration > 0 && took > l.Duration {
		pages, took = min(pages, fetched(groups, l.Duration)), l.Duration
		known = true
		p.LimitBy = append(p.LimitBy, fmt.Sprintf("time limit (%s): about %d of %d pages fit into it", l.Duration, pages, p.Named))
	}
	if known {
		requests := pages + others
		p.Pages, p.Requests, p.Time = &pages, &requests, &took
	}
	p.explain(groups)
}

// explain adds what makes the crawl as slow as it is.
func (p *Plan) explain(groups []*pace) {
	if len(groups) > 0 {
		slow := slices.MaxFunc(groups, func(a, b *pace) int { return cmp.Compare(a.extra+a.time, b.extra+b.time) })
		if h := slow.slowest; h.Each > 0 {
			with := ""
			if slow.name != h.Name {
				with = " (and all that is paced with it)"
			}
			p.LimitBy = append(p.LimitBy, fmt.Sprintf("%s%s: one request every %s, because of the %s",
				h.Name, with, h.Each.Round(time.Millisecond), h.Why))
		}
	}
	var closed int64
	unknown := 0
	for i := range p.Hosts {
		h := &p.Hosts[i]
		closed += h.Closed
		if !h.Known {
			unknown++
		}
		if h.Blocked > 0 {
			p.LimitBy = append(p.LimitBy, fmt.Sprintf("%s must be left alone for %s, because of %s",
				h.Name, h.Blocked.Round(time.Second), h.Clocks.BlockWhy))
		}
	}
	if unknown > 0 {
		p.LimitBy = append(p.LimitBy, fmt.Sprintf("how much there is: %d of %d hosts have no sitemap that could be read", unknown, len(p.Hosts)))
	}
	if closed > 0 {
		p.LimitBy = append(p.LimitBy, fmt.Sprintf("robots.txt closes %d of the %d URLs that are named", closed, closed+p.Named))
	}
}

// fetched is about how many pages all groups have after a time.
func fetched(groups []*pace, after time.Duration) (n int64) {
	for _, g := range groups {
		left := after - g.extra
		switch {
		case left <= 0:
		case left >= g.time:
			n += g.pages
		default:
			n += int64(float64(g.pages) * float64(left) / float64(g.time))
		}
	}
	return n
}

// timeFor is about when all groups together have so many pages.
func timeFor(groups []*pace, pages int64, most time.Duration) time.Duration {
	low, high := time.Duration(0), most
	for high-low > time.Millisecond {
		if mid := low + (high-low)/2; fetched(groups, mid) >= pages {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
