package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/ledger"
)

// The columns, in order, and what fills them.
var columns = []struct {
	name string
	cell func(p *ledger.Page) string
}{
	{"url", func(p *ledger.Page) string { return cell(publicURL(p.URL)) }},
	{"host", func(p *ledger.Page) string { return cell(p.Host) }},
	{"outcome", func(p *ledger.Page) string { return p.Outcome.String() }},
	{"status", func(p *ledger.Page) string { return number(int64(p.Status), p.Status != 0) }},
	{"error", func(p *ledger.Page) string { return cell(p.Error) }},
	{"kind", func(p *ledger.Page) string { return cell(p.Kind) }},
	{"via", func(p *ledger.Page) string { return cell(p.Via) }},
	{"found_on", func(p *ledger.Page) string { return cell(publicURL(p.FoundOn)) }},
	{"depth", func(p *ledger.Page) string { return strconv.Itoa(p.Depth) }},
	{"tries", func(p *ledger.Page) string { return strconv.Itoa(p.Tries) }},
	{"fetched_at", func(p *ledger.Page) string { return date(p.FetchedAt) }},
	{"content_type", func(p *ledger.Page) string { return cell(p.ContentType) }},
	{"charset", func(p *ledger.Page) string { return cell(p.Charset) }},
	{"bytes", func(p *ledger.Page) string { return number(p.Size, p.Status != 0) }},
	{"wire_bytes", func(p *ledger.Page) string { return number(p.WireSize, p.Status != 0) }},
	{"ttfb_ms", func(p *ledger.Page) string { return duration(p.Timing.TTFB) }},
	{"total_ms", func(p *ledger.Page) string { return duration(p.Timing.Total) }},
	{"redirect_to", func(p *ledger.Page) string { return cell(publicURL(p.RedirectTo)) }},
	{"title", func(p *ledger.Page) string { return cell(p.Title) }},
	{"description", func(p *ledger.Page) string { return cell(p.Description) }},
	{"canonical", func(p *ledger.Page) string { return cell(publicURL(p.Canonical)) }},
	{"lang", func(p *ledger.Page) string { return cell(p.Lang) }},
	{"noindex", func(p *ledger.Page) string { return yesNo(p.NoIndex, p.Status != 0) }},
	{"nofollow", func(p *ledger.Page) string { return yesNo(p.NoFollow, p.Status != 0) }},
	{"last_modified", func(p *ledger.Page) string { return date(p.LastModified) }},
	{"links", func(p *ledger.Page) string { return number(int64(p.LinkCount), p.Status != 0) }},
	{"robots_allowed", func(p *ledger.Page) string { return yesNo(p.Robots.Allowed, p.Robots.Decided) }},
	{"robots_rule", func(p *ledger.Page) string { return cell(p.Robots.Rule) }},
	{"robots_line", func(p *ledger.Page) string { return number(int64(p.Robots.Line), p.Robots.Line != 0) }},
}

// CSV writes a header and one row a page (RFC 4180), and returns how many
// pages.
func CSV(ctx context.Context, w io.Writer, src Source, crawl int64, f ledger.PageFilter) (int64, error) {
	out := bufio.NewWriterSize(w, bufferSize)
	table := csv.NewWriter(out)
	table.UseCRLF = true
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	if err := table.Write(row); err != nil {
		return 0, output(err)
	}
	n := int64(0)
	for p, err := range src.Pages(ctx, crawl, f) {
		if err != nil {
			return n, err
		}
		for i, c := range columns {
			row[i] = c.cell(&p)
		}
		if err := table.Write(row); err != nil {
			return n, output(err)
		}
		n++
	}
	table.Flush()
	if err := table.Error(); err != nil {
		return n, output(err)
	}
	return n, output(out.Flush())
}

// cell makes a stranger's text safe in a terminal and in a spreadsheet. The
// apostrophe is the spreadsheets' own mark for "this is text"; it is decided
// on the text as it arrived too, since some programs skip what was removed.
func cell(s string) string {
	clean := ledger.Printable(s, 0)
	if formula(s) || formula(strings.TrimLeft(clean, " \u00a0")) {
		return "'" + clean
	}
	return clean
}

// formula also knows the full-width signs that some input methods type and
// some spreadsheets accept.
func formula(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		return strings.ContainsRune("=+-@\t\r\n＝＋－＠", r)
	}
	return false
}

func number(n int64, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func yesNo(b, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatBool(b)
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64)
}
