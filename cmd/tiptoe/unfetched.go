package main

import (
	"context"
	"fmt"
	"strings"

	"tiptoe/internal/app"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/tui"
)

// namedSeeds is how many seeds an explanation names.
const namedSeeds = 5

// advice is what a person can do about a seed that ended so.
var advice = map[outcome.Outcome]string{
	outcome.DNS:         "is the name spelt right, and is this machine online?",
	outcome.Connect:     "is the server running, and is the port right?",
	outcome.Timeout:     "is the host up? --timeout gives it more time",
	outcome.TLS:         "--insecure goes on without a valid certificate, on sites that are yours",
	outcome.Protocol:    "is this a web server, and http or https right?",
	outcome.NotFound:    "is the URL right?",
	outcome.Gone:        "is the URL right?",
	outcome.Blocked:     "does it want a password (https://user:password@host/), or no crawlers?",
	outcome.Throttled:   "come back later, or with a longer --delay",
	outcome.ServerError: "come back later",
	outcome.Robots:      "--ignore-robots if the site is yours",
	outcome.TooLarge:    "--max-body allows more",
	outcome.Scope:       "begin with that URL, or widen --scope",
	outcome.Guard:       "--allow-private if that network is yours",
}

// unfetched explains a crawl that ended without one page; empty if there are
// pages. To end with "completed" and no word would leave a misspelt host
// looking like an empty site.
func unfetched(ctx context.Context, l app.Ledger, id int64) (string, error) {
	counts, err := l.PageCounts(ctx, id)
	if err != nil || counts[outcome.OK]+counts[outcome.NotModified]+counts[outcome.TooLarge] > 0 {
		return "", err
	}
	cr, err := l.Crawl(ctx, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("not one page could be fetched")
	for i, seed := range cr.Seeds {
		if i == namedSeeds {
			fmt.Fprintf(&b, "\n  and %d more; see tiptoe pages", len(cr.Seeds)-i)
			break
		}
		why, err := fate(ctx, l, id, seed)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n  %s: %s", tui.Clean(seed, 200), why)
	}
	return b.String(), nil
}

// fate says how a URL ended, or the one that it redirects to.
func fate(ctx context.Context, l app.Ledger, id int64, url string) (string, error) {
	text := ""
	for range 20 {
		p, ok, err := l.Page(ctx, id, url)
		if err != nil || !ok {
			return text + "it was not reached", err
		}
		if p.Outcome == outcome.Redirect {
			text += "redirects to " + tui.Clean(p.RedirectTo, 200) + ": "
			url = p.RedirectTo
			continue
		}
		text += ending(&p)
		if a := advice[p.Outcome]; a != "" {
			text += "; " + a
		}
		return text, nil
	}
	return text + "and so on", nil
}

func ending(p *ledger.Page) string {
	s := p.Outcome.Fact().Meaning
	if p.Outcome == outcome.Robots && p.Robots.Line > 0 {
		return fmt.Sprintf("%s (line %d: %s)", s, p.Robots.Line, tui.Clean(p.Robots.Rule, 100))
	}
	if p.Error != "" {
		s += " (" + tui.Clean(strings.TrimPrefix(p.Error, "robots.txt unreachable: "), 200) + ")"
	}
	return s
}
