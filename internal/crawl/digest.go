package crawl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/extract"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// digest turns a hop into what is to be written. It is pure but for reading
// the seen set, and recovers from a panic in one page: that page is set aside,
// the crawl goes on.
func (e *Engine) digest(r *Run, w *frontier.Work, h *Hop, v politeness.Verdict) (rec *Record) {
	rec = &Record{run: r}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a page could not be digested and was set aside", "url", w.Entry.URL, "panic", fmt.Sprint(p))
			rec = &Record{run: r}
			rec.request(r, w, h)
			pg := r.page(&w.Entry, h.Ended, w.Decision)
			pg.Outcome, pg.Status, pg.Error = outcome.Poison, h.Status, "the page crashed the parser"
			rec.end(&w.Entry, pg)
		}
	}()
	rec.request(r, w, h)
	en := &w.Entry
	r.warnDelay(en.URL, &w.Decision)
	o := h.Outcome(h.Ended)
	if o == outcome.Throttled {
		rec.evidence = append(rec.evidence, r.throttled(en, h))
	}
	if o == outcome.Cancelled {
		rec.update = en
		return rec
	}
	if v.Retry {
		again := *en
		again.Tries++
		again.NotBefore = v.NotBefore
		rec.update = &again
		rec.count.Retries++
		e.log.Warn("will retry", "url", en.URL, "retry", again.Tries, "wait", v.NotBefore.Sub(h.Ended).Round(time.Millisecond),
			"because", o.String(), "waits_for", v.Why.String())
		return rec
	}
	if r.warm(en, h, o, rec) {
		return rec
	}
	pg := r.page(en, h.Ended, w.Decision)
	pg.Outcome, pg.Status = o, h.Status
	pg.Size, pg.WireSize = h.Size, h.WireSize
	pg.Timing = ledger.Timing{DNS: h.Timing.DNS, Connect: h.Timing.Connect, TLS: h.Timing.TLS,
		TTFB: h.Timing.TTFB, Transfer: h.Timing.Transfer, Total: h.Timing.Total, Reused: h.Timing.Reused}
	pg.Tries = int(en.Tries) + 1
	if en.Memo != "" {
		pg.Tries++
	}
	if h.Err != nil {
		pg.Error = h.Err.Error()
		if o == outcome.Guard {
			rec.evidence = append(rec.evidence, r.evidence(en, "guard", 1, h.Ended, map[string]any{"refused": pg.Error}))
		}
	} else {
		e.digestAnswer(r, w, h, pg, rec)
	}
	if en.Kind == frontier.KindSource {
		e.warnSource(pg)
	}
	e.firstOfOrigin(r, en, w.Decision, h.Ended, rec)
	e.groupAll(rec.adds)
	rec.end(en, pg)
	return rec
}

// digestAnswer reads a complete answer by its kind.
func (e *Engine) digestAnswer(r *Run, w *frontier.Work, h *Hop, pg *ledger.Page, rec *Record) {
	en := &w.Entry
	pg.ContentType = h.Header.Get("Content-Type")
	if t, err := http.ParseTime(h.Header.Get("Last-Modified")); err == nil {
		pg.LastModified = t
	}
	switch {
	case pg.Outcome == outcome.Redirect:
		e.digestRedirect(r, en, h, pg, rec)
	case en.Kind == frontier.KindSitemap:
		e.digestSitemap(r, en, h, pg, rec)
	case en.Kind == frontier.KindSource:
		e.digestSource(r, en, h, pg, rec)
	case len(h.Body) > 0:
		e.digestBody(r, en, h, pg, rec)
	}
}

func (e *Engine) digestBody(r *Run, en *frontier.Entry, h *Hop, pg *ledger.Page, rec *Record) {
	pg.ContentHash = xxh3.Hash(h.Body)
	sc := e.scans.Get().(*extract.Scanner)
	defer e.scans.Put(sc)
	sc.Agent = r.product
	doc := sc.Scan(h.Body, pg.ContentType)
	tag := extract.RobotsTag(h.Header.Values("X-Robots-Tag"), r.product)
	pg.NoIndex = tag.Has(extract.NoIndex) || doc.Robots.Has(extract.NoIndex)
	pg.NoFollow = tag.Has(extract.NoFollow) || doc.Robots.Has(extract.NoFollow)
	pg.Charset, pg.Title, pg.Description, pg.Lang = doc.Charset, doc.Title, doc.Description, doc.Lang

	self := weburl.FromCanonical(en.URL)
	base := weburl.NewBase(self)
	if doc.Base != "" {
		if b, err := base.Resolve(doc.Base); err == nil {
			base = weburl.NewBase(b)
		}
	}
	if doc.Canonical != "" {
		if c, err := base.Resolve(doc.Canonical); err == nil {
			pg.Canonical = c.String()
		}
	}
	lk := &linker{e: e, r: r, en: en, rec: rec, base: base, private: h.Private, at: h.Ended, follow: !pg.NoFollow && !r.Spec.Once && pg.Outcome == outcome.OK}
	var langs map[string]string
	for i := range doc.Links {
		l := &doc.Links[i]
		if l.Rel.Has(extract.RelAlternate) && len(l.Lang) > 0 {
			if u, err := base.Resolve(string(l.Ref)); err == nil {
				if langs == nil {
					langs = make(map[string]string)
				}
				langs[string(l.Lang)] = u.String()
			}
		}
		lk.link(l)
	}
	extract.LinkHeader(h.Header.Values("Link"), func(l extract.Link) bool { lk.link(&l); return true })
	if langs != nil {
		if b, err := json.Marshal(langs); err == nil {
			pg.Hreflang = string(b)
		}
	}
	slices.Sort(lk.targets)
	pg.Links = slices.Compact(lk.targets)
	pg.LinkCount = len(pg.Links)
	r.tracker.fetched(self, pg.ContentHash, pg.Outcome, lk.fresh)
}

func (e *Engine) digestRedirect(r *Run, en *frontier.Entry, h *Hop, pg *ledger.Page, rec *Record) {
	loc := h.Header.Get("Location")
	target, err := weburl.NewBase(weburl.FromCanonical(en.URL)).Resolve(loc)
	switch {
	case loc == "":
		pg.Outcome, pg.Error = outcome.Protocol, "redirect without a Location"
		return
	case err != nil:
		pg.Outcome, pg.Error = outcome.Protocol, "redirect to "+cut(loc, 200)+": "+err.Error()
		return
	}
	pg.RedirectTo = target.String()
	pg.Links, pg.LinkCount = []uint64{target.Fingerprint().Lo}, 1
	if pg.RedirectTo == en.URL || slices.Contains(en.Chain, pg.RedirectTo) {
		pg.Outcome, pg.Error = outcome.RedirectLimit, "redirect loop: comes back to "+pg.RedirectTo
		return
	}
	if int(en.Hops) >= r.Spec.MaxRedirects {
		pg.Outcome, pg.Error = outcome.RedirectLimit, fmt.Sprintf("more than %d redirects in a row", r.Spec.MaxRedirects)
		return
	}
	if r.Spec.Once {
		return
	}
	next := frontier.Entry{
		Crawl: en.Crawl, Group: e.groupNow(target.HostKey()), Prio: en.Prio, Kind: en.Kind, Via: frontier.ViaRedirect,
		URL: target.String(), Depth: en.Depth, Hops: en.Hops + 1,
		TrustPrivate: h.Private || r.isSeedHost(target.HostKey()),
		FoundOn:      en.URL, Chain: append(slices.Clone(en.Chain), en.URL),
	}
	if e.cfg.Store.Seen(en.Crawl, target.Fingerprint()) {
		return // it is on its way, or has its end, which a refusal must not replace
	}
	if en.Kind == frontier.KindPage {
		if why, o := r.judge(target, int(en.Depth), h.Ended); o != outcome.Pending {
			r.skip(rec, target, en, frontier.ViaRedirect, int(en.Depth), o, why, h.Ended)
			if en.Depth == 0 {
				e.log.Warn("a seed redirects out of scope; start from its target, or widen --scope",
					"seed", en.URL, "target", target.String(), "rule", why)
			}
			return
		}
	}
	rec.adds = append(rec.adds, next)
}

func (e *Engine) digestSitemap(r *Run, en *frontier.Entry, h *Hop, pg *ledger.Page, rec *Record) {
	if pg.Outcome != outcome.OK {
		return
	}
	if h.SitemapErr != nil {
		pg.Error = h.SitemapErr.Error()
	}
	base := weburl.NewBase(weburl.FromCanonical(en.URL))
	for i := range h.Entries {
		se := &h.Entries[i]
		u, err := base.Resolve(strings.TrimSpace(se.Loc))
		if err != nil {
			continue
		}
		add := frontier.Entry{
			Crawl: en.Crawl, Group: e.groupNow(u.HostKey()), Via: frontier.ViaSitemap, URL: u.String(),
			TrustPrivate: h.Private || r.isSeedHost(u.HostKey()), FoundOn: en.URL,
		}
		if se.Index {
			if en.Depth >= maxSitemapDepth {
				continue
			}
			add.Kind, add.Prio, add.Depth = frontier.KindSitemap, prioSitemapFile, en.Depth+1
		} else {
			add.Kind, add.Prio, add.Depth = frontier.KindPage, prioSitemapPage, 1
		}
		if e.cfg.Store.Seen(en.Crawl, u.Fingerprint()) {
			continue
		}
		if why, o := r.judge(u, 1, h.Ended); o != outcome.Pending {
			r.skip(rec, u, en, frontier.ViaSitemap, 1, o, why, h.Ended)
			continue
		}
		rec.adds = append(rec.adds, add)
	}
	pg.LinkCount = len(h.Entries)
}

// firstOfOrigin offers an origin's sitemaps when its first URL is decided.
func (e *Engine) firstOfOrigin(r *Run, en *frontier.Entry, d frontier.Decision, at time.Time, rec *Record) {
	if en.Kind != frontier.KindPage {
		return // a sitemap or an index on another host makes that host no site of ours
	}
	u := weburl.FromCanonical(en.URL)
	origin := u.Origin()
	if !r.wantsSitemaps(origin, u) {
		return
	}
	via, list := frontier.ViaGuess, []string{origin + "/sitemap.xml"}
	if d.Copy != nil && d.Copy.File != nil {
		if s := d.Copy.File.Sitemaps(); len(s) > 0 {
			via, list = frontier.ViaRobots, s
		}
	}
	for _, raw := range list[:min(len(list), maxSitemapsPerOrigin)] {
		s, err := weburl.Parse(raw)
		if err != nil {
			continue
		}
		rec.adds = append(rec.adds, frontier.Entry{
			Crawl: en.Crawl, Group: e.groupNow(s.HostKey()), Prio: prioSitemapFile, Kind: frontier.KindSitemap, Via: via,
			URL: s.String(), TrustPrivate: en.TrustPrivate && s.HostKey() == u.HostKey() || r.isSeedHost(s.HostKey()),
			FoundOn: origin + "/robots.txt",
		})
	}
}

// refuse writes down a URL that robots.txt does not let us fetch, or that is
// only to be counted: that one stays without an outcome.
func (e *Engine) refuse(r *Run, w *frontier.Work, at time.Time) *Record {
	rec := &Record{run: r}
	r.warnDelay(w.Entry.URL, &w.Decision)
	pg := r.page(&w.Entry, at, w.Decision)
	pg.Outcome, pg.Error = w.Decision.Outcome, w.Decision.Error
	e.firstOfOrigin(r, &w.Entry, w.Decision, at, rec)
	e.groupAll(rec.adds)
	if w.Decision.Allowed {
		pg.Outcome = outcome.Pending
		ref := w.Entry.Ref()
		rec.ack, rec.pages = &ref, append(rec.pages, *pg)
		return rec
	}
	rec.end(&w.Entry, pg)
	return rec
}

// request notes one request on the wire.
func (rec *Record) request(r *Run, w *frontier.Work, h *Hop) {
	p := w.Permit
	q := ledger.Request{
		Crawl: int64(r.ID), Permit: p.ID, Group: p.Group, Started: h.Started, Ended: h.Ended,
		Status: h.Status, Outcome: h.Outcome(h.Ended), GapOwed: p.Owed, InFlight: p.InFlight, Cap: p.Cap, Cause: "first",
		Granted: p.Granted, GapWhy: p.OwedWhy.String(),
	}
	if !h.asked.IsZero() {
		q.AskedUntil, q.AskedAfter = h.asked, p.GrantedBefore
	}
	if w.Kind == frontier.Robots {
		q.URL, q.Kind, q.Cause = w.Task.URL, "robots", "robots"
		q.FP = weburl.FromCanonical(q.URL).Fingerprint()
	} else {
		q.URL, q.Kind, q.FP = w.Entry.URL, w.Entry.Kind.String(), w.Entry.Fingerprint()
		if v := h.verdict; v.Retry && v.Why != politeness.WhyNone {
			q.RetryAt, q.RetryWhy = v.NotBefore, v.Why.String()
		}
		switch {
		case w.Entry.Tries > 0:
			q.Cause = "retry"
		case w.Entry.Memo != "":
			q.Cause = "warm"
		case w.Entry.Via == frontier.ViaRedirect:
			q.Cause = "redirect"
		}
	}
	if h.Err != nil {
		q.Error = h.Err.Error()
		if h.Timing.Wire.IsZero() {
			q.Cause += ledger.NotSent
		}
	}
	rec.requests = append(rec.requests, q)
	rec.count.Requests++
	rec.count.Bytes += h.WireSize
	if h.Status == http.StatusTooManyRequests {
		rec.count.HTTP429++
	}
}

// end closes a URL: its page, its place in the counters, its acknowledgement.
func (rec *Record) end(en *frontier.Entry, pg *ledger.Page) {
	ref := en.Ref()
	rec.ack, rec.endURL = &ref, en.URL
	rec.pages = append(rec.pages, *pg)
	if en.Kind != frontier.KindPage {
		return
	}
	rec.done = pg
	tally(&rec.count, pg.Outcome, 1)
	if old, ok := rec.run.takeRepeat(pg.FP); ok {
		tally(&rec.count, old, -1)
	}
}

// tally adds n ends of one kind to the summary's counters.
func tally(c *ledger.Counters, o outcome.Outcome, n int64) {
	switch {
	case o == outcome.Robots:
		c.Blocked += n
		return
	case o == outcome.Scope, o == outcome.Trap, o == outcome.Budget:
		c.Skipped += n
		return
	case o == outcome.Parked:
		return
	}
	c.Processed += n
	switch {
	case o.Fact().Success:
		c.Successful += n
	case o == outcome.Throttled:
		c.Throttled += n
	case o == outcome.Blocked:
		c.Blocked += n
	case o == outcome.Timeout:
		c.Timeouts += n
		c.Failed += n
	default:
		c.Failed += n
	}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
