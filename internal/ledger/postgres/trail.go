package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// Evidence returns every stored reason about one URL, the robots decision
// included, oldest first.
func (l *Ledger) Evidence(ctx context.Context, crawl int64, url string) ([]ledger.Evidence, error) {
	all, err := list(ctx, l, ledger.ScanEvidence,
		"SELECT "+ledger.EvidenceColumns+" FROM evidence WHERE crawl_id = $1 AND fp = $2 ORDER BY at_ms NULLS FIRST, type",
		crawl, ledger.AppendFP(nil, weburl.FromCanonical(url).Fingerprint()))
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return all, nil
}

var selectRequest = "SELECT " + requestColumns + " FROM requests AS r"

var requestColumns = "r." + strings.Join(ledger.RequestTable.Names, ", r.")

// Requests lists a crawl's requests in the order in which they started. The
// URL of a page's request is empty: PageByFP has it. It costs eight bytes of
// memory a request.
func (l *Ledger) Requests(ctx context.Context, crawl int64) iter.Seq2[ledger.Request, error] {
	return func(yield func(ledger.Request, error) bool) {
		if err := l.requests(ctx, crawl, yield); err != nil {
			yield(ledger.Request{}, fmt.Errorf("list requests of crawl %d: %w", crawl, err))
		}
	}
}

func (l *Ledger) requests(ctx context.Context, crawl int64, yield func(ledger.Request, error) bool) error {
	permits, err := list(ctx, l, ledger.Reader.Int,
		"SELECT permit FROM requests WHERE crawl_id = $1 ORDER BY started_us NULLS FIRST, permit", crawl)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(permits, chunkRows) {
		chunk, err := list(ctx, l, ledger.ScanRequest, selectRequest+
			` JOIN unnest($2::bigint[]) WITH ORDINALITY AS wanted (permit, place) ON r.permit = wanted.permit
			WHERE r.crawl_id = $1 ORDER BY place`, crawl, part)
		if err != nil {
			return err
		}
		for i := range chunk {
			if !yield(chunk[i], nil) {
				return nil
			}
		}
	}
	return nil
}

// RequestsOf returns the requests for one URL in the order of their start. It
// walks over the crawl's requests: nobody else asks by URL, and an index would
// cost every request a write.
func (l *Ledger) RequestsOf(ctx context.Context, crawl int64, fp weburl.Fingerprint) ([]ledger.Request, error) {
	all, err := list(ctx, l, ledger.ScanRequest,
		selectRequest+" WHERE crawl_id = $1 AND fp = $2 ORDER BY started_us NULLS FIRST, permit", crawl, ledger.AppendFP(nil, fp))
	if err != nil {
		return nil, fmt.Errorf("read requests of a URL: %w", err)
	}
	return all, nil
}

// LinksTo finds the pages that link to any of the targets, which are low
// halves of fingerprints, and names the first perTarget of them for each (all
// if 0). It reads every link of the crawl once.
func (l *Ledger) LinksTo(ctx context.Context, crawl int64, targets []uint64, perTarget int) (map[uint64]ledger.LinkSources, error) {
	found := make(map[uint64]*ledger.Linkers, len(targets))
	for _, t := range targets {
		found[t] = &ledger.Linkers{}
	}
	type page struct {
		id    int64
		links []byte
	}
	for after := ledger.BeforePages(crawl); ; {
		chunk, err := list(ctx, l, func(r ledger.Reader) page { return page{r.Int(), r.Blob()} },
			"SELECT id, link_targets FROM pages WHERE id > $1 AND id < $2 AND link_targets IS NOT NULL ORDER BY id LIMIT $3",
			after, ledger.AfterPages(crawl), chunkRows)
		if err != nil {
			return nil, fmt.Errorf("find links: %w", err)
		}
		for _, p := range chunk {
			after = p.id
			for b := p.links; len(b) >= 8; b = b[8:] {
				if w := found[binary.LittleEndian.Uint64(b)]; w != nil {
					w.Add(p.id, perTarget)
				}
			}
		}
		if len(chunk) < chunkRows {
			break
		}
	}
	result, err := l.nameLinkers(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("find links: %w", err)
	}
	return result, nil
}

func (l *Ledger) nameLinkers(ctx context.Context, found map[uint64]*ledger.Linkers) (map[uint64]ledger.LinkSources, error) {
	var ids []int64
	for _, w := range found {
		ids = append(ids, w.IDs...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // a page with one broken link often has more
	names := make(map[int64]string, len(ids))
	type page struct {
		id  int64
		url string
	}
	for part := range slices.Chunk(ids, chunkRows) {
		chunk, err := list(ctx, l, func(r ledger.Reader) page { return page{r.Int(), r.Text()} },
			"SELECT id, url FROM pages WHERE id = ANY($1)", part)
		if err != nil {
			return nil, err
		}
		for _, p := range chunk {
			names[p.id] = p.url
		}
	}
	return ledger.Sources(found, names), nil
}
