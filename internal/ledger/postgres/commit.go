package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

var (
	requestShape  = shape{ledger.RequestTable}
	evidenceShape = shape{ledger.EvidenceTable}

	putRequests = requestShape.upsert("requests", 2)
	putEvidence = evidenceShape.upsert("evidence_log", 4)

	// putPages takes the counters of the batch's crawls ($1, how many pages
	// of each in $2) in their order and stores the pages. The sort makes it
	// take all of them before it stores a page. Everything is one statement,
	// sent as one message, so the server never waits for the rest of a batch
	// with a counter in hand.
	putPages = `WITH counters AS (
			UPDATE page_numbers AS n SET last = n.last + need.pages
			FROM (SELECT crawl_id FROM page_numbers WHERE crawl_id = ANY($1::bigint[]) ORDER BY crawl_id FOR UPDATE) AS held
			JOIN unnest($1::bigint[], $2::bigint[]) AS need (crawl_id, pages) USING (crawl_id)
			WHERE n.crawl_id = held.crawl_id
			RETURNING n.crawl_id, n.last - need.pages AS before
		)
		INSERT INTO pages (id, ` + strings.Join(pageShape.Names[1:], ", ") + `)
		SELECT (t.crawl_id << 40) + counters.before + t.nth, t.` + strings.Join(pageShape.Names[1:], ", t.") + `
		FROM ` + pageShape.unnest(3) + ` JOIN counters USING (crawl_id) ORDER BY 1
		ON CONFLICT (crawl_id, fp) DO UPDATE SET ` + pageShape.excluded(3) + " WHERE NOT " + ledger.PageKeeps("excluded.fetched_ms")
)

// encoder holds a batch in the form in which it travels. It is kept between
// batches: the memory is what it is for.
type encoder struct {
	crawls, counts                    []int64 // of the pages
	mentioned                         []int64 // crawls that must exist
	pages, requests, evidence, domain rows
	seen                              map[pageKey]int // place of a page in order
	order                             []*ledger.Page
}

type pageKey struct {
	crawl int64
	fp    weburl.Fingerprint
}

var encoders = sync.Pool{New: func() any { return &encoder{seen: map[pageKey]int{}} }}

// Commit writes a batch in one transaction and returns when it is on stable
// storage. While the database cannot be reached it waits and tries again until
// ctx ends. After an error nothing of the batch is stored, unless the error
// came from the commit itself and its answer was lost; committing the batch
// again is right in either case. The batch's rows are kept for a while: they must
// not change afterwards.
func (l *Ledger) Commit(ctx context.Context, b *ledger.Batch) error {
	if err := l.commit(ctx, b); err != nil {
		return fmt.Errorf("commit a batch to the ledger: %w", err)
	}
	return nil
}

func (l *Ledger) commit(ctx context.Context, b *ledger.Batch) error {
	for {
		b.Late = nil
		made := l.kept.made.Load()
		stored, err := l.put(ctx, b, true)
		if err == nil {
			b.Late = stored.Late
			l.kept.keep(*stored, made)
		}
		if !errors.Is(err, errUnsure) {
			return err
		}
		if err := l.assure(ctx); err != nil {
			return err
		}
	}
}

// put tries it without looking first, as nearly nobody is late. It returns what
// was stored. If it must be sure, it is errUnsure while nobody has looked for
// what was stored before.
func (l *Ledger) put(ctx context.Context, b *ledger.Batch, sure bool) (*ledger.Batch, error) {
	for {
		err := l.putOnce(ctx, b, sure)
		late := new(lateError)
		if !errors.As(err, &late) {
			return b, err
		}
		b = b.Without(late.crawls)
	}
}

// lateError says that crawls have ended, or are deleted, of which a worker commits its part.
type lateError struct{ crawls []int64 }

func (e *lateError) Error() string { return fmt.Sprintf("crawls that have ended: %d", e.crawls) }

func (l *Ledger) putOnce(ctx context.Context, b *ledger.Batch, sure bool) error {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.encode(b)
	crawls := lastOfEach(b.Crawls, func(a, b *ledger.Crawl) int { return cmp.Compare(a.ID, b.ID) })
	return l.write(ctx, func(tx pgx.Tx) error {
		if sure && l.kept.unsure() { // this connection may be the new one
			return errUnsure
		}
		// The same tables in the same order, in each the rows by key: whoever
		// holds a lock waits only for those who are further on. Pages come
		// late, since their counter is what batches of one crawl wait for.
		batch := &pgx.Batch{}
		if len(e.mentioned) > 0 {
			batch.Queue(shareCrawls, e.mentioned) // before the look: DeleteCrawl waits for those who found their crawl
			batch.Queue("SELECT id, status FROM crawls WHERE id = ANY($1)", e.mentioned).Query(func(r pgx.Rows) error {
				return e.check(b, r)
			})
		}
		e.requests.queue(batch, putRequests)
		e.evidence.queue(batch, putEvidence)
		e.domain.queue(batch, putDomains)
		e.pages.queue(batch, putPages, e.crawls, e.counts)
		for _, c := range crawls {
			queueUpdate(batch, c, c.Epoch, ledger.ErrTakenOver)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// check demands that the crawls exist, and that those of which the batch is a
// part have not ended. One that was deleted had ended.
func (e *encoder) check(b *ledger.Batch, r pgx.Rows) error {
	found := make(map[int64]ledger.Status, len(e.mentioned))
	var id int64
	var status ledger.Status
	if _, err := pgx.ForEachRow(r, []any{&id, &status}, func() error { found[id] = status; return nil }); err != nil {
		return err
	}
	late := &lateError{}
	for _, id := range e.mentioned {
		status, ok := found[id]
		switch over := !ok || status.Done(); {
		case over && b.PartOf(id):
			late.crawls = append(late.crawls, id)
		case !ok || id <= 0:
			return fmt.Errorf("crawl %d: %w", id, ledger.ErrNoCrawl)
		}
	}
	if late.crawls != nil {
		return late
	}
	return nil
}

func (e *encoder) encode(b *ledger.Batch) {
	e.mentioned = e.mentioned[:0]
	e.addPages(b.Pages)
	e.addRequests(b.Requests)
	e.addEvidence(b.Evidence)
	e.domain.reset(domainShape)
	for _, d := range lastOfEach(b.Domains, func(a, b *ledger.Domain) int {
		return strings.Compare(ledger.Unbounded(a.Host), ledger.Unbounded(b.Host))
	}) {
		ledger.PutDomain(ledger.Writer{Row: &e.domain}, d)
	}
	for i := range b.Crawls {
		if b.Crawls[i].Worker == "" {
			e.mention(b.Crawls[i].ID)
		}
	}
	slices.Sort(e.mentioned)
	e.mentioned = slices.Compact(e.mentioned)
}

// mention notes a crawl that must exist. Rows of one crawl mostly come
// together.
func (e *encoder) mention(crawl int64) {
	if n := len(e.mentioned); n == 0 || e.mentioned[n-1] != crawl {
		e.mentioned = append(e.mentioned, crawl)
	}
}

// addPages keeps the order of the batch, by which ids are given. Of two
// attempts at a URL the last is stored, in the place of the first: a statement
// may touch a row only once.
func (e *encoder) addPages(pages []ledger.Page) {
	clear(e.seen)
	e.order, e.crawls, e.counts = e.order[:0], e.crawls[:0], e.counts[:0]
	for i := range pages {
		p := &pages[i]
		k := pageKey{p.Crawl, p.FP}
		if at, again := e.seen[k]; again {
			e.order[at] = p
			continue
		}
		e.seen[k] = len(e.order)
		e.order = append(e.order, p)
		e.mention(p.Crawl)
	}
	e.pages.reset(pageShape)
	for _, p := range e.order {
		at := slices.Index(e.crawls, p.Crawl)
		if at < 0 {
			at = len(e.crawls)
			e.crawls, e.counts = append(e.crawls, p.Crawl), append(e.counts, 0)
		}
		e.counts[at]++
		w := ledger.Writer{Row: &e.pages}
		w.Int(e.counts[at])
		ledger.PutPage(w, p)
		e.pages.links(p.Links)
	}
	clear(e.order) // they are the caller's
}

// addRequests leaves out the URL of a request whose page is in the same
// batch, which is nearly all: the page's row has it.
func (e *encoder) addRequests(all []ledger.Request) {
	e.requests.reset(requestShape)
	w := ledger.Writer{Row: &e.requests}
	for _, r := range lastOfEach(all, func(a, b *ledger.Request) int {
		return cmp.Or(cmp.Compare(a.Crawl, b.Crawl), cmp.Compare(int64(a.Permit), int64(b.Permit)))
	}) {
		e.mention(r.Crawl)
		_, paged := e.seen[pageKey{r.Crawl, r.FP}]
		ledger.PutRequest(w, r, paged)
	}
}

func (e *encoder) addEvidence(all []ledger.Evidence) {
	e.evidence.reset(evidenceShape)
	w := ledger.Writer{Row: &e.evidence}
	for _, v := range lastOfEach(all, func(a, b *ledger.Evidence) int {
		return cmp.Or(cmp.Compare(a.Crawl, b.Crawl), compareFP(a.FP, b.FP),
			strings.Compare(ledger.Unbounded(a.Type), ledger.Unbounded(b.Type)), cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()))
	}) {
		e.mention(v.Crawl)
		ledger.PutEvidence(w, v)
	}
}

// lastOfEach returns the rows in the order of their keys and, of rows with one
// key, the last.
func lastOfEach[T any](all []T, compare func(a, b *T) int) []*T {
	list := make([]*T, len(all))
	for i := range all {
		list[i] = &all[i]
	}
	slices.SortStableFunc(list, compare)
	kept := list[:0]
	for i, v := range list {
		if i+1 == len(list) || compare(v, list[i+1]) != 0 {
			kept = append(kept, v)
		}
	}
	return kept
}

func compareFP(a, b weburl.Fingerprint) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}
