package frontier

import (
	"time"

	"tiptoe/internal/weburl"
)

// CrawlID names one crawl; the ledger hands them out.
type CrawlID int64

// Kind says what an entry's body is for.
type Kind uint8

const (
	KindPage    Kind = iota // extract links and metadata
	KindSitemap             // stream entries out of it
	KindRobots              // a robots.txt: never stored in a queue, only a permit's kind
	KindSource              // a question to an outside index: robots.txt is not asked about it
)

func (k Kind) String() string {
	switch k {
	case KindPage:
		return "page"
	case KindSitemap:
		return "sitemap"
	case KindRobots:
		return "robots"
	case KindSource:
		return "source"
	}
	return "unknown"
}

// Via says how an entry was found.
type Via uint8

const (
	ViaSeed Via = iota
	ViaLink
	ViaRedirect
	ViaSitemap
	ViaRobots // a Sitemap line in robots.txt
	ViaGuess  // a well-known path
	ViaSource // an outside index such as certificate transparency
)

var viaNames = [...]string{"seed", "link", "redirect", "sitemap", "robots", "guess", "source"}

func (v Via) String() string {
	if int(v) < len(viaNames) {
		return viaNames[v]
	}
	return "unknown"
}

// Entry is one URL that waits its turn. A store keeps it, whole, from the
// moment it is marked seen until it is acknowledged.
type Entry struct {
	ID    uint64  // given by the store when queued; unique in the store, ascending
	Crawl CrawlID // dedupe is per crawl
	Group string  // the pace group, by default the host key
	Prio  uint8   // lower goes first; equal ones go by ID
	Kind  Kind
	Via   Via
	URL   string // canonical
	Depth uint16 // links from a seed
	Hops  uint8  // redirects since the last non-redirect
	Tries uint8  // attempts made so far

	// TrustPrivate lets the fetch connect to private addresses: the user
	// typed this host, or the page that named it was itself private.
	TrustPrivate bool

	NotBefore time.Time // backoff of this URL alone; zero if none
	FoundOn   string    // the URL that named it; empty for seeds
	Chain     []string  // earlier hops of this redirect chain, oldest first
	Memo      string    // what an earlier request for it found, when it takes two

	// Again queues it although it was seen: it was set aside then, and has
	// been released since. Not stored.
	Again bool

	// Beside is the group of the page that named it, if that page is
	// acknowledged in the same batch and this is all that must wait for it: a
	// store of several shards may then queue the one with the other's
	// acknowledgement, in one step. Not stored; empty: before everything else.
	Beside string

	reserved bool   // its page was taken from the budget by this process
	lease    uint64 // the token under which it was handed out; 0 without leases
}

// Fingerprint is the entry's identity inside its crawl.
func (e *Entry) Fingerprint() weburl.Fingerprint {
	return weburl.FromCanonical(e.URL).Fingerprint()
}

// Pos is a place in one group's queue of one crawl: entries are ordered by
// Prio, then ID.
type Pos struct {
	Prio uint8
	ID   uint64
}

// Pos returns the entry's place.
func (e *Entry) Pos() Pos { return Pos{e.Prio, e.ID} }

// Less orders places.
func (p Pos) Less(q Pos) bool { return p.Prio < q.Prio || p.Prio == q.Prio && p.ID < q.ID }
