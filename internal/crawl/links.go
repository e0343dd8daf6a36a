package crawl

import (
	"time"

	"tiptoe/internal/extract"
	"tiptoe/internal/frontier"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Priorities [NXT-8]: the home page, then sitemap files, then pages by depth,
// then what only a sitemap names, then what only an outside index does.
const (
	prioHome        = 0
	prioSitemapFile = 1
	prioDepth       = 2
	prioSitemapPage = 250
	prioSource      = 251

	maxSitemapDepth      = 4
	maxSitemapsPerOrigin = 200
)

func prioOf(depth int) uint8 { return uint8(min(prioDepth+depth-1, prioSitemapPage-1)) }

// linker takes one page's links. A link that was seen before costs no memory.
type linker struct {
	e       *Engine
	r       *Run
	en      *frontier.Entry
	rec     *Record
	base    *weburl.Base
	private bool
	follow  bool
	at      time.Time
	buf     [512]byte
	targets []uint64
	new     map[uint64]struct{} // links of this page that were not seen before
	fresh   int                 // links that were new to the crawl
}

func (k *linker) link(l *extract.Link) {
	abs, err := k.base.AppendResolve(k.buf[:0], l.Ref)
	if err != nil {
		return // mailto:, javascript:, broken: nothing to fetch
	}
	fp := weburl.FingerprintBytes(abs)
	if l.Kind == extract.LinkElement && l.Rel.Has(extract.RelNotHTML) && !l.Rel.Has(extract.RelFeed) {
		return // an API description of the page, not a page
	}
	k.targets = append(k.targets, fp.Lo)
	if !k.follow || l.Rel.Has(extract.RelNoFollow) && k.r.Spec.RelNofollow == "skip" {
		return
	}
	if k.e.cfg.Store.Seen(k.en.Crawl, fp) {
		return
	}
	u := weburl.FromCanonical(string(abs))
	if _, twice := k.new[fp.Lo]; twice {
		return
	}
	if k.new == nil {
		k.new = make(map[uint64]struct{})
	}
	k.new[fp.Lo] = struct{}{}
	depth := int(k.en.Depth) + 1
	if why, o := k.r.judge(u, depth, k.at); o != outcome.Pending {
		k.r.skip(k.rec, u, k.en, frontier.ViaLink, depth, o, why, k.at)
		return
	}
	k.fresh++
	host := u.HostKey()
	k.rec.adds = append(k.rec.adds, frontier.Entry{
		Crawl: k.en.Crawl, Group: k.e.groupNow(host), Prio: prioOf(depth), Kind: frontier.KindPage, Via: frontier.ViaLink,
		URL: u.String(), Depth: uint16(min(depth, 65535)),
		TrustPrivate: k.private || k.r.isSeedHost(host), FoundOn: k.en.URL,
	})
}
