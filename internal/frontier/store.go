package frontier

import (
	"context"
	"fmt"

	"tiptoe/internal/weburl"
)

// Ref names a queued entry.
type Ref struct {
	Crawl CrawlID
	Group string
	Pos   Pos

	lease uint64 // the token under which it was handed out; 0 without leases
}

// Ref names the entry for an acknowledgement.
func (e *Entry) Ref() Ref { return Ref{e.Crawl, e.Group, e.Pos(), e.lease} }

// Mark is a URL to remember as seen without queueing it. Host is the URL's
// host key: a store of several shards keeps the mark where the URL belongs, and
// everywhere, at that price, if Host is empty.
type Mark struct {
	Crawl CrawlID
	FP    weburl.Fingerprint
	Host  string
}

// Note is a small durable fact about a group: its clocks, a robots.txt copy.
// A nil Value deletes it.
type Note struct {
	Group string
	Name  string
	Value []byte
}

// Batch is what one Commit applies.
type Batch struct {
	Add    []Entry // queued if (Crawl, URL) was not seen before, or Again is set; ID is ignored
	Mark   []Mark  // seen, not queued
	Ack    []Ref   // done: leaves the queue; an unknown Ref is no error
	Update []Entry // still queued, with new Tries/NotBefore; one that is not queued stays gone
	Notes  []Note
}

// of is the part of a batch that belongs to one crawl, and without the rest.
func (b *Batch) of(crawl CrawlID) (of, without Batch) {
	split(b.Add, func(e *Entry) CrawlID { return e.Crawl }, crawl, &of.Add, &without.Add)
	split(b.Mark, func(m *Mark) CrawlID { return m.Crawl }, crawl, &of.Mark, &without.Mark)
	split(b.Ack, func(r *Ref) CrawlID { return r.Crawl }, crawl, &of.Ack, &without.Ack)
	split(b.Update, func(e *Entry) CrawlID { return e.Crawl }, crawl, &of.Update, &without.Update)
	without.Notes = b.Notes
	return of, without
}

func split[T any](all []T, crawlOf func(*T) CrawlID, crawl CrawlID, of, without *[]T) {
	for i := range all {
		if crawlOf(&all[i]) == crawl {
			*of = append(*of, all[i])
		} else {
			*without = append(*without, all[i])
		}
	}
}

// NotOpenError is a store's answer about a crawl that it does not have: it was
// dropped, or the store has lost its data.
type NotOpenError struct{ Crawl CrawlID }

func (e *NotOpenError) Error() string { return fmt.Sprintf("crawl %d is not open", e.Crawl) }

// Queue is one group's waiting work in one crawl.
type Queue struct {
	Group string
	Crawl CrawlID
	Count int
}

// Store is the durable half of the frontier. It is safe for concurrent use.
//
// What every implementation promises (frontiertest proves it):
//   - Commit is durable when it returns nil. After an error any part of the
//     batch may be there, but what it adds comes before what it acknowledges,
//     and committing it again is safe: nothing is queued twice, nothing
//     acknowledged comes back.
//   - A URL is queued at most once per crawl, for the life of the crawl,
//     whatever the number of concurrent Commits that offer it.
//   - Seen never answers true for a URL that was not seen. It may answer
//     false for one that was: Commit decides.
//   - Window returns entries in order, each as last committed, none twice.
type Store interface {
	// Commit applies b and returns the entries of b.Add that were new, in
	// order, with their IDs.
	Commit(ctx context.Context, b *Batch) (added []Entry, err error)

	// Seen is a cheap advisory look, made for each link of each page. It
	// also counts the look as an in-link of a URL it knows.
	Seen(crawl CrawlID, fp weburl.Fingerprint) bool

	// InLinks estimates how often a URL was offered; 0 if unknown.
	InLinks(crawl CrawlID, fp weburl.Fingerprint) int

	// Window appends to dst up to n entries of one queue that come after a
	// place; the zero Pos is before everything.
	Window(ctx context.Context, group string, crawl CrawlID, after Pos, n int, dst []Entry) ([]Entry, error)

	// Queues calls fn for every non-empty queue of the crawl.
	Queues(ctx context.Context, crawl CrawlID, fn func(Queue) error) error

	// Note reads a note; nil if there is none.
	Note(ctx context.Context, group, name string) ([]byte, error)

	// OpenCrawl prepares the crawl's seen set; CloseCrawl frees its memory;
	// DropCrawl deletes all that the store holds of it.
	OpenCrawl(ctx context.Context, crawl CrawlID) error
	CloseCrawl(crawl CrawlID)
	DropCrawl(ctx context.Context, crawl CrawlID) error

	Close() error
}
