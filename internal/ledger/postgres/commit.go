package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// idBits is the room for page numbers inside a page's id.
const idBits = 40

// firstID and endID enclose the ids of a crawl's pages: [firstID, endID).
func firstID(crawl int64) int64 { return crawl << idBits }
func endID(crawl int64) int64   { return (crawl + 1) << idBits }

// The columns in the order of the methods that add them. In pageShape, nth is
// the page's place among those of its crawl in the batch, from 1.
var (
	pageShape = newShape(`nth bigint
		crawl_id bigint
		fp bytea
		url text
		host text
		kind text
		via text
		found_on text
		depth bigint
		tries bigint
		outcome text
		status bigint
		error text
		content_type text
		charset text
		size bigint
		wire_size bigint
		dns_us bigint
		connect_us bigint
		tls_us bigint
		ttfb_us bigint
		transfer_us bigint
		total_us bigint
		conn_reused boolean
		fetched_ms bigint
		redirect_to text
		title text
		description text
		canonical text
		lang text
		hreflang text
		noindex boolean
		nofollow boolean
		last_modified_ms bigint
		content_hash bigint
		link_count bigint
		robots_allowed boolean
		robots_rule text
		robots_line bigint
		crawl_delay_ms bigint
		robots_fetched_ms bigint
		robots_confidence double precision
		robots_ignored boolean
		link_targets bytea`)

	requestShape = newShape(`crawl_id bigint
		permit bigint
		pace_group text
		kind text
		cause text
		outcome text
		status bigint
		started_us bigint
		ended_us bigint
		gap_owed_us bigint
		in_flight bigint
		cap bigint
		fp bytea
		url text
		error text
		granted_us bigint
		gap_why text
		asked_until_us bigint
		asked_after bigint
		retry_at_us bigint
		retry_why text`)

	evidenceShape = newShape(`crawl_id bigint
		fp bytea
		type text
		at_ms bigint
		url text
		content text
		metadata text
		confidence double precision`)

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
		INSERT INTO pages (id, ` + strings.Join(pageShape.names[1:], ", ") + `)
		SELECT (t.crawl_id << 40) + counters.before + t.nth, t.` + strings.Join(pageShape.names[1:], ", t.") + `
		FROM ` + pageShape.unnest(3) + ` JOIN counters USING (crawl_id) ORDER BY 1
		ON CONFLICT (crawl_id, fp) DO UPDATE SET ` + pageShape.excluded(3)
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
// again is right in either case.
func (l *Ledger) Commit(ctx context.Context, b *ledger.Batch) error {
	if err := l.commit(ctx, b); err != nil {
		return fmt.Errorf("commit a batch to the ledger: %w", err)
	}
	return nil
}

func (l *Ledger) commit(ctx context.Context, b *ledger.Batch) error {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.encode(b)
	crawls := lastOfEach(b.Crawls, func(a, b *ledger.Crawl) int { return cmp.Compare(a.ID, b.ID) })
	return l.write(ctx, func(tx pgx.Tx) error {
		// The same tables in the same order, in each the rows by key: whoever
		// holds a lock waits only for those who are further on. Pages come
		// late, since their counter is what batches of one crawl wait for.
		batch := &pgx.Batch{}
		if len(e.mentioned) > 0 {
			batch.Queue(shareCrawls, e.mentioned) // before the look: DeleteCrawl waits for those who found their crawl
			batch.Queue("SELECT id FROM crawls WHERE id = ANY($1)", e.mentioned).Query(func(r pgx.Rows) error {
				found, err := pgx.CollectRows(r, pgx.RowTo[int64])
				if err != nil {
					return err
				}
				for _, id := range e.mentioned {
					if !slices.Contains(found, id) || id <= 0 {
						return fmt.Errorf("crawl %d: %w", id, ledger.ErrNoCrawl)
					}
				}
				return nil
			})
		}
		e.requests.queue(batch, putRequests)
		e.evidence.queue(batch, putEvidence)
		e.domain.queue(batch, putDomains)
		e.pages.queue(batch, putPages, e.crawls, e.counts)
		for _, c := range crawls {
			queueUpdate(batch, c)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
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
		addDomain(&e.domain, d)
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
		addPage(&e.pages, p, e.counts[at])
	}
	clear(e.order) // they are the caller's
}

func addPage(r *rows, p *ledger.Page, nth int64) {
	answered := p.Status != 0
	r.int(nth)
	r.int(p.Crawl)
	r.fp(p.FP)
	r.must(p.URL)
	r.must(p.Host)
	r.text(p.Kind)
	r.text(p.Via)
	r.url(p.FoundOn)
	r.int(int64(p.Depth))
	r.int(int64(p.Tries))
	r.must(p.Outcome.String())
	r.intOrNull(int64(p.Status))
	r.text(p.Error)
	r.text(p.ContentType)
	r.text(p.Charset)
	r.known(p.Size, answered || p.Size != 0)
	r.known(p.WireSize, answered || p.WireSize != 0)
	r.durUS(p.Timing.DNS)
	r.durUS(p.Timing.Connect)
	r.durUS(p.Timing.TLS)
	r.durUS(p.Timing.TTFB)
	r.durUS(p.Timing.Transfer)
	r.durUS(p.Timing.Total)
	r.bool(p.Timing.Reused)
	r.ms(p.FetchedAt)
	r.url(p.RedirectTo)
	r.text(p.Title)
	r.text(p.Description)
	r.url(p.Canonical)
	r.text(p.Lang)
	r.url(p.Hreflang)
	r.bool(p.NoIndex)
	r.bool(p.NoFollow)
	r.ms(p.LastModified)
	r.intOrNull(int64(p.ContentHash))
	r.known(int64(p.LinkCount), answered || p.LinkCount != 0)
	addRobots(r, &p.Robots)
	r.links(p.Links)
}

func addRobots(r *rows, d *ledger.RobotsDecision) {
	if !d.Decided {
		for range 7 {
			r.null()
		}
		return
	}
	r.bool(d.Allowed)
	r.text(d.Rule)
	r.intOrNull(int64(d.Line))
	r.intOrNull(d.CrawlDelay.Milliseconds())
	r.ms(d.FetchedAt)
	r.float(d.Confidence)
	r.bool(d.Ignored)
}

// addRequests leaves out the URL of a request whose page is in the same
// batch, which is nearly all: the page's row has it.
func (e *encoder) addRequests(all []ledger.Request) {
	e.requests.reset(requestShape)
	w := &e.requests
	for _, r := range lastOfEach(all, func(a, b *ledger.Request) int {
		return cmp.Or(cmp.Compare(a.Crawl, b.Crawl), cmp.Compare(int64(a.Permit), int64(b.Permit)))
	}) {
		e.mention(r.Crawl)
		url := r.URL
		if _, ok := e.seen[pageKey{r.Crawl, r.FP}]; ok {
			url = ""
		}
		w.int(r.Crawl)
		w.int(int64(r.Permit))
		w.must(r.Group)
		w.must(r.Kind)
		w.text(r.Cause)
		w.must(r.Outcome.String())
		w.intOrNull(int64(r.Status))
		w.us(r.Started)
		w.us(r.Ended)
		w.int(r.GapOwed.Microseconds())
		w.int(int64(r.InFlight))
		w.int(int64(r.Cap))
		w.fp(r.FP)
		w.url(url)
		w.text(r.Error)
		w.us(r.Granted)
		w.text(r.GapWhy)
		w.us(r.AskedUntil)
		w.intOrNull(int64(r.AskedAfter))
		w.us(r.RetryAt)
		w.text(r.RetryWhy)
	}
}

func (e *encoder) addEvidence(all []ledger.Evidence) {
	e.evidence.reset(evidenceShape)
	w := &e.evidence
	for _, v := range lastOfEach(all, func(a, b *ledger.Evidence) int {
		return cmp.Or(cmp.Compare(a.Crawl, b.Crawl), compareFP(a.FP, b.FP),
			strings.Compare(ledger.Unbounded(a.Type), ledger.Unbounded(b.Type)), cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()))
	}) {
		e.mention(v.Crawl)
		w.int(v.Crawl)
		w.fp(v.FP)
		w.must(v.Type)
		w.int(v.At.UnixMilli())
		w.must(v.URL)
		w.url(v.Content)
		w.url(v.Metadata)
		w.float(v.Confidence)
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
