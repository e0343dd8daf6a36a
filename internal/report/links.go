package report

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// linkWindow is how many URLs are looked up in one pass over the links.
const linkWindow = 20_000

// maxHops bounds how far a redirect chain is followed on paper; a crawl gives
// up much earlier.
const maxHops = 50

// LinkSource is where pages and links come from.
type LinkSource interface {
	PageSource
	Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error)
	LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error)
}

// brokenOutcomes are those that leave somebody who follows a link with
// nothing.
func brokenOutcomes() []outcome.Outcome {
	return []outcome.Outcome{outcome.NotFound, outcome.Gone, outcome.ClientError, outcome.ServerError, outcome.Timeout,
		outcome.DNS, outcome.Connect, outcome.TLS, outcome.Protocol, outcome.RedirectLimit}
}

// brokenLine is what `tiptoe links --broken --json` prints for a URL.
type brokenLine struct {
	URL             string   `json:"url"`
	Outcome         string   `json:"outcome"`
	Status          *int     `json:"status"`
	Error           *string  `json:"error"`
	Via             *string  `json:"via"`
	FoundOn         *string  `json:"found_on"`
	LinkedFromCount int64    `json:"linked_from_count"`
	LinkedFrom      []string `json:"linked_from"`
}

// Broken writes every broken URL that f chooses with the pages that link to
// it, and returns how many URLs. What f says about outcomes and order is
// ignored.
func Broken(ctx context.Context, w io.Writer, src LinkSource, crawl int64, f ledger.PageFilter, o Options) (int64, error) {
	f.Outcomes = brokenOutcomes()
	f.Sort, f.Desc = ledger.ByFound, false
	out := bufio.NewWriter(w)
	p := &printer{w: out}
	var urls, links int64
	err := windows(ctx, src, crawl, f, o.Sources, func(page ledger.Page, from ledger.LinkSources) {
		urls++
		links += from.Count
		if o.JSON {
			p.object(brokenLine{URL: Clean(page.URL, 0), Outcome: page.Outcome.String(), Status: numberOrNull(page.Status, page.Status != 0),
				Error: orNull(page.Error), Via: orNull(page.Via), FoundOn: orNull(page.FoundOn),
				LinkedFromCount: from.Count, LinkedFrom: cleanAll(from.URLs)})
			return
		}
		head := padLeft(status(page.Status), 3) + "  " + pad(page.Outcome.String(), 14) + "  "
		p.printf("%s%s\n", head, Clean(page.URL, room(o.Width, len(head))))
		if page.Error != "" && page.Status == 0 {
			p.printf("     %s\n", Clean(page.Error, room(o.Width, 5)))
		}
		p.linkedFrom(page, from, o)
	}, p)
	if err != nil {
		return urls, err
	}
	if !o.JSON {
		if urls == 0 {
			p.printf("No broken links.\n")
		} else {
			p.printf("\n%s, %s to them\n", count(urls, "broken URL", "broken URLs"), count(links, "link", "links"))
		}
	}
	return urls, flush(p, out)
}

// redirectLine is what `tiptoe links --redirects --json` prints for a URL.
type redirectLine struct {
	URL             string   `json:"url"`
	Status          *int     `json:"status"`
	Chain           []string `json:"chain"`         // every URL after the first; empty if the answer named none
	FinalOutcome    *string  `json:"final_outcome"` // null: the last URL was not crawled
	FinalStatus     *int     `json:"final_status"`
	Loop            bool     `json:"loop"`
	LinkedFromCount int64    `json:"linked_from_count"`
	LinkedFrom      []string `json:"linked_from"`
}

// Redirects writes every redirecting URL that somebody links to, or that was
// a start of its own, with the chain to its end and the pages that link to
// it, and returns how many URLs.
func Redirects(ctx context.Context, w io.Writer, src LinkSource, crawl int64, f ledger.PageFilter, o Options) (int64, error) {
	f.Outcomes = []outcome.Outcome{outcome.Redirect}
	f.Sort, f.Desc = ledger.ByFound, false
	out := bufio.NewWriter(w)
	p := &printer{w: out}
	urls := int64(0)
	var failed error
	err := windows(ctx, src, crawl, f, o.Sources, func(page ledger.Page, from ledger.LinkSources) {
		if failed != nil || from.Count == 0 && page.Via == "redirect" {
			return // a middle hop, which its chain shows
		}
		c, err := follow(ctx, src, crawl, page)
		if err != nil {
			failed = err
			return
		}
		urls++
		if o.JSON {
			line := redirectLine{URL: Clean(page.URL, 0), Status: numberOrNull(page.Status, page.Status != 0), Loop: c.loop,
				Chain: []string{}, LinkedFromCount: from.Count, LinkedFrom: cleanAll(from.URLs)}
			for _, h := range c.hops {
				line.Chain = append(line.Chain, Clean(h.url, 0))
			}
			if n := len(c.hops); n > 0 && c.hops[n-1].known {
				line.FinalOutcome = orNull(c.hops[n-1].outcome.String())
				line.FinalStatus = numberOrNull(c.hops[n-1].status, c.hops[n-1].status != 0)
			}
			p.object(line)
			return
		}
		p.printf("%s  %s\n", padLeft(status(page.Status), 3), Clean(page.URL, room(o.Width, 5)))
		if len(c.hops) == 0 {
			p.printf("     -> nowhere: the answer names no target\n")
		}
		for _, h := range c.hops {
			p.printf("     -> %s\n", Clean(h.url+"  ("+h.verdict(c.loop)+")", room(o.Width, 8)))
		}
		p.linkedFrom(page, from, o)
	}, p)
	if err == nil {
		err = failed
	}
	if err != nil {
		return urls, err
	}
	if !o.JSON {
		if urls == 0 {
			p.printf("No redirects.\n")
		} else {
			p.printf("\n%s\n", count(urls, "redirecting URL", "redirecting URLs"))
		}
	}
	return urls, flush(p, out)
}

// chain is where a redirect leads.
type chain struct {
	hops []hop
	loop bool
}

type hop struct {
	url     string
	known   bool
	outcome outcome.Outcome
	status  int
}

func (h hop) verdict(loop bool) string {
	switch {
	case !h.known:
		return "not crawled"
	case h.outcome == outcome.Redirect && loop:
		return "redirect, in a loop"
	case h.status == 0:
		return h.outcome.String()
	}
	return fmt.Sprintf("%d %s", h.status, h.outcome)
}

func follow(ctx context.Context, src LinkSource, crawl int64, page ledger.Page) (chain, error) {
	var c chain
	seen := map[string]bool{page.URL: true}
	for next := page.RedirectTo; next != "" && len(c.hops) < maxHops; {
		if seen[next] {
			c.loop = true
		}
		p, ok, err := src.Page(ctx, crawl, next)
		if err != nil {
			return c, err
		}
		c.hops = append(c.hops, hop{url: next, known: ok, outcome: p.Outcome, status: p.Status})
		if c.loop || !ok || p.Outcome != outcome.Redirect {
			return c, nil
		}
		seen[next] = true
		next = p.RedirectTo
	}
	return c, nil
}

// windows calls fn for every chosen page with its linking pages. It stops
// early when the output has failed.
func windows(ctx context.Context, src LinkSource, crawl int64, f ledger.PageFilter, perTarget int, fn func(ledger.Page, ledger.LinkSources), out *printer) error {
	next, stop := iter.Pull2(src.Pages(ctx, crawl, f))
	defer stop()
	for {
		var window []ledger.Page
		var targets []uint64
		for len(window) < linkWindow {
			page, err, ok := next()
			if !ok {
				break
			}
			if err != nil {
				return err
			}
			window = append(window, page)
			targets = append(targets, page.FP.Lo)
		}
		if len(window) == 0 {
			return nil
		}
		from, err := src.LinksTo(ctx, crawl, targets, perTarget)
		if err != nil {
			return err
		}
		for _, page := range window {
			fn(page, from[page.FP.Lo])
			if out.err != nil {
				return fmt.Errorf("write links: %w", out.err)
			}
		}
	}
}

func (p *printer) linkedFrom(page ledger.Page, from ledger.LinkSources, o Options) {
	if from.Count == 0 {
		how := "no page links to it"
		if page.Via != "" {
			how += "; found by " + page.Via
		}
		if page.FoundOn != "" {
			how += " on " + page.FoundOn
		}
		p.printf("     %s\n", Clean(how, room(o.Width, 5)))
		return
	}
	p.printf("     linked from %s:\n", count(from.Count, "page", "pages"))
	for _, u := range from.URLs {
		p.printf("       %s\n", Clean(u, room(o.Width, 7)))
	}
	if more := from.Count - int64(len(from.URLs)); more > 0 {
		p.printf("       and %d more\n", more)
	}
}

func flush(p *printer, out *bufio.Writer) error {
	if p.err == nil {
		p.err = out.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("write links: %w", p.err)
	}
	return nil
}

func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Clean(s, 0)
	}
	return out
}
