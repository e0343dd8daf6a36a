package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// BenchBatch is what a crawl commits: pages of a few sites, 60 links each,
// and the request for each page.
func BenchBatch(r *rand.Rand, crawl int64, first, n int) *ledger.Batch {
	b := &ledger.Batch{}
	now := time.Unix(1_750_000_000, 0).Add(time.Duration(first) * time.Millisecond)
	for i := first; i < first+n; i++ {
		host := fmt.Sprintf("www.shop-%d.example", i%7)
		u := weburl.FromCanonical(fmt.Sprintf("https://%s/catalogue/section-%d/some-product-name-%d.html", host, i%40, i))
		p := ledger.Page{Crawl: crawl, URL: u.String(), FP: u.Fingerprint(), Host: host, Kind: "page", Via: "link",
			FoundOn: fmt.Sprintf("https://%s/catalogue/section-%d/", host, i%40), Depth: 3, Tries: 1,
			Outcome: outcome.OK, Status: 200, ContentType: "text/html", Charset: "utf-8", Size: 20480, WireSize: 5321,
			Timing:    ledger.Timing{TTFB: 81 * time.Millisecond, Transfer: 9 * time.Millisecond, Total: 91 * time.Millisecond, Reused: true},
			FetchedAt: now, Title: fmt.Sprintf("Some product name %d | Shop", i), Description: "A description of about one line, as most pages carry in their head.",
			Canonical: u.String(), Lang: "en", ContentHash: r.Uint64(), LinkCount: 60,
			Robots: ledger.RobotsDecision{Decided: true, Allowed: true, Rule: "no rule matches", FetchedAt: now, Confidence: 1},
		}
		p.Links = make([]uint64, 60)
		for k := range p.Links {
			p.Links[k] = r.Uint64()
		}
		b.Pages = append(b.Pages, p)
		b.Requests = append(b.Requests, ledger.Request{Crawl: crawl, Permit: uint64(i + 1), Group: host, URL: p.URL, FP: p.FP,
			Kind: "page", Cause: "first", Started: now, Ended: now.Add(91 * time.Millisecond), Status: 200, Outcome: outcome.OK,
			GapOwed: 300 * time.Millisecond, InFlight: 1, Cap: 2})
	}
	return b
}
