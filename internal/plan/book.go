package plan

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// MostPages is how many pages are counted: beyond it nobody needs to know it
// exactly, and what is counted once is remembered in memory.
const MostPages = 2_000_000

// NotInTime is the trouble with a host of which nothing came in time.
const NotInTime = "it could not be asked in time"

// Book is the ledger of a crawl that only counts. It is safe for concurrent
// use.
type Book struct {
	known func(ctx context.Context, host string) (ledger.Domain, bool, error)
	full  func()

	mu       sync.Mutex
	hosts    map[string]*entry
	pages    int64
	requests int64
}

type entry struct {
	Host
	origins map[string]bool
}

// NewBook returns an empty book. known asks the real ledger for what was
// learned of a host (nil: nobody knows anything); full is called, once, when
// enough is counted.
func NewBook(known func(context.Context, string) (ledger.Domain, bool, error), full func()) *Book {
	return &Book{known: known, full: full, hosts: make(map[string]*entry)}
}

var _ crawl.Ledger = (*Book)(nil)

// CreateCrawl gives the one crawl its number.
func (b *Book) CreateCrawl(_ context.Context, c *ledger.Crawl) (int64, error) {
	c.ID = 1
	return 1, nil
}

// UpdateCrawl keeps nothing.
func (b *Book) UpdateCrawl(context.Context, *ledger.Crawl) error { return nil }

// PageCounts is for resumed crawls, of which there are none.
func (b *Book) PageCounts(context.Context, int64) (map[outcome.Outcome]int64, error) {
	return nil, nil
}

// Domain returns what earlier crawls learned.
func (b *Book) Domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	if b.known == nil {
		return ledger.Domain{}, false, nil
	}
	return b.known(ctx, host)
}

// Commit counts a batch. A batch is committed again only after an error, and
// this returns none, so nothing is counted twice.
func (b *Book) Commit(_ context.Context, batch *ledger.Batch) error {
	b.mu.Lock()
	before := b.pages
	for i := range batch.Pages {
		b.page(&batch.Pages[i])
	}
	b.requests += int64(len(batch.Requests))
	full := before < MostPages && b.pages >= MostPages
	b.mu.Unlock()
	if full && b.full != nil {
		b.full()
	}
	return nil
}

func (b *Book) page(p *ledger.Page) {
	e := b.hosts[p.Host]
	if e == nil {
		e = &entry{Host: Host{Name: p.Host}, origins: make(map[string]bool)}
		b.hosts[p.Host] = e
	}
	if p.Robots.Decided {
		e.origins[weburl.FromCanonical(p.URL).Origin()] = true
		e.CrawlDelay = max(e.CrawlDelay, p.Robots.CrawlDelay)
	}
	if p.Kind == frontier.KindSitemap.String() {
		b.sitemap(e, p)
		return
	}
	switch p.Outcome {
	case outcome.Pending:
		e.Pages++
		b.pages++
		e.Known = e.Known || p.Via == frontier.ViaSitemap.String()
	case outcome.Robots:
		e.Closed++
		e.trouble(p.Error)
	case outcome.Scope, outcome.Trap:
		e.Outside++
	default: // its robots.txt could not be asked for
		e.trouble(cmp.Or(p.Error, p.Outcome.Fact().Meaning))
	}
}

func (b *Book) sitemap(e *entry, p *ledger.Page) {
	switch p.Outcome {
	case outcome.OK:
		e.Sitemaps++
		e.Known = e.Known || p.Error == "" || p.LinkCount > 0
		e.trouble(p.Error)
	case outcome.NotFound, outcome.Gone, outcome.Robots, outcome.Redirect:
	default:
		e.trouble("sitemap: " + cmp.Or(p.Error, p.Outcome.Fact().Meaning))
	}
}

func (e *entry) trouble(why string) {
	if e.Trouble == "" {
		e.Trouble = why
	}
}

// Requests counts the requests that were made.
func (b *Book) Requests() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// Hosts returns what was counted, in the order of names: the hosts with pages
// to fetch, and those of the seeds whatever became of them.
func (b *Book) Hosts(seeds []string) []Host {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := map[string]int64{}
	for _, s := range seeds {
		host := weburl.FromCanonical(s).HostKey()
		asked[host]++
		if b.hosts[host] == nil {
			b.hosts[host] = &entry{Host: Host{Name: host, Trouble: NotInTime}}
		}
	}
	var list []Host
	for name, e := range b.hosts {
		if e.Pages == 0 && asked[name] == 0 {
			continue
		}
		h := e.Host
		h.Origins = max(int64(len(e.origins)), 1)
		if h.Pages == 0 && h.Closed == 0 && !h.Known {
			h.Pages = asked[name] // still to be tried
		}
		// A site that is closed as a whole has no pages for us, and that is
		// known without any sitemap.
		h.Known = h.Known || h.Pages == 0 && h.Closed > 0 && h.Trouble == ""
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
