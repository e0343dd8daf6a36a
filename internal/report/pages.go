package report

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"tiptoe/internal/ledger"
)

// pageLine is what `tiptoe pages --json` prints for a page.
type pageLine struct {
	URL         string   `json:"url"`
	Outcome     string   `json:"outcome"`
	Status      *int     `json:"status"`
	ContentType *string  `json:"content_type"`
	Bytes       *int64   `json:"bytes"`
	TotalMS     *float64 `json:"total_ms"`
	Depth       int      `json:"depth"`
	Links       *int     `json:"links"`
	Title       *string  `json:"title"`
	RedirectTo  *string  `json:"redirect_to"`
	FoundOn     *string  `json:"found_on"`
	Error       *string  `json:"error"`
	FetchedAt   *string  `json:"fetched_at"`
}

// Widths of the columns before the URL, which is last.
const (
	statusCells  = 6
	outcomeCells = 16
	timeCells    = 8
	sizeCells    = 10
	depthCells   = 5
	typeCells    = 16
	beforeURL    = statusCells + outcomeCells + timeCells + sizeCells + depthCells + typeCells + 6*2
)

// Pages writes the pages that a filter chooses and returns how many.
func Pages(ctx context.Context, w io.Writer, src PageSource, crawl int64, f ledger.PageFilter, o Options) (int64, error) {
	out := bufio.NewWriter(w)
	p := &printer{w: out}
	n := int64(0)
	for page, err := range src.Pages(ctx, crawl, f) {
		if err != nil {
			return n, err
		}
		if o.JSON {
			p.object(newPageLine(&page))
		} else {
			if n == 0 {
				p.printf("%s\n", pageRow("STATUS", "OUTCOME", "TIME", "SIZE", "DEPTH", "TYPE", "URL"))
			}
			p.printf("%s\n", tableRow(&page, o.Width))
		}
		if p.err != nil {
			return n, fmt.Errorf("write pages: %w", p.err)
		}
		n++
	}
	if !o.JSON {
		if n == 0 {
			p.printf("No pages match.\n")
		} else {
			p.printf("\n%s\n", count(n, "page", "pages"))
		}
	}
	if p.err == nil {
		p.err = out.Flush()
	}
	if p.err != nil {
		return n, fmt.Errorf("write pages: %w", p.err)
	}
	return n, nil
}

func tableRow(p *ledger.Page, width int) string {
	kind := "-"
	if p.ContentType != "" {
		kind = Clean(p.ContentType, typeCells)
	}
	url := p.URL
	if p.RedirectTo != "" {
		url += " -> " + p.RedirectTo
	}
	return pageRow(status(p.Status), p.Outcome.String(), short(p.Timing.Total), size(p.Size, p.Status != 0),
		fmt.Sprint(p.Depth), kind, Clean(url, room(width, beforeURL)))
}

func pageRow(status, outcome, time, size, depth, kind, url string) string {
	return padLeft(status, statusCells) + "  " + pad(outcome, outcomeCells) + "  " + padLeft(time, timeCells) + "  " +
		padLeft(size, sizeCells) + "  " + padLeft(depth, depthCells) + "  " + pad(kind, typeCells) + "  " + url
}

func newPageLine(p *ledger.Page) pageLine {
	answered := p.Status != 0
	l := pageLine{URL: Clean(p.URL, 0), Outcome: p.Outcome.String(), Status: numberOrNull(p.Status, answered),
		ContentType: orNull(p.ContentType), Bytes: numberOrNull(p.Size, answered), Depth: p.Depth,
		Links: numberOrNull(p.LinkCount, answered), Title: orNull(p.Title), RedirectTo: orNull(p.RedirectTo),
		FoundOn: orNull(p.FoundOn), Error: orNull(p.Error)}
	if p.Timing.Total > 0 {
		ms := float64(p.Timing.Total.Microseconds()) / 1000
		l.TotalMS = &ms
	}
	if !p.FetchedAt.IsZero() {
		at := p.FetchedAt.UTC().Format(time.RFC3339Nano)
		l.FetchedAt = &at
	}
	return l
}
