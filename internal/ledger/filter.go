package ledger

import (
	"time"

	"tiptoe/internal/outcome"
)

// Range is an inclusive range of numbers.
type Range struct{ Min, Max int }

// Sort names the order of a page listing.
type Sort string

// The orders. Equal pages stay in the order of their first commit.
const (
	ByFound  Sort = "" // order of first commit: the only one that takes a cursor
	ByURL    Sort = "url"
	ByHost   Sort = "host"
	ByStatus Sort = "status"
	BySize   Sort = "size"
	ByTime   Sort = "time"
	ByDepth  Sort = "depth"
	ByLinks  Sort = "links"
)

// Sorts lists every order that has a name.
func Sorts() []Sort {
	return []Sort{ByURL, ByHost, ByStatus, BySize, ByTime, ByDepth, ByLinks}
}

// PageFilter chooses and orders pages. The zero value is every page in the
// order of first commit. All conditions must hold.
type PageFilter struct {
	Outcomes    []outcome.Outcome // any of them; empty is every one
	Status      *Range            // HTTP status; 0 stands for "no answer"
	Depth       *Range
	Host        string        // host key; a * matches any run of characters
	Kind        string        // page or sitemap
	ContentType string        // how the content type begins, in lower case
	MinTotal    time.Duration // at least this slow
	Match       string        // part of the URL; with a *, a pattern for all of it

	Sort  Sort
	Desc  bool
	Limit int   // 0 is no limit
	After int64 // a Page.ID: go on behind this page; only with ByFound, ascending
	Links bool  // fill Page.Links
}

// DomainFilter chooses domains. The zero value is every one, by host.
type DomainFilter struct {
	Match   string // part of the host; with a *, a pattern for all of it
	Learned bool   // only hosts with a learned delay, a block or failures
	Limit   int    // 0 is no limit
}

// Totals are what a resumed crawl adds up from the rows themselves.
type Totals struct {
	Requests int64
	HTTP429  int64
	Retries  int64
	Bytes    int64 // on the wire, of pages
}

// LinkSources says who links to one URL.
type LinkSources struct {
	Count int64    // pages that link to it
	URLs  []string // of the first of them, as many as were asked for
}
