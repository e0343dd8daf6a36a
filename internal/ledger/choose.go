package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// pageBits is the room for page numbers inside a page's ID: a crawl's pages lie
// together, in the order of their IDs.
const pageBits = 40

// BeforePages and AfterPages enclose the IDs of a crawl's pages.
func BeforePages(crawl int64) int64 { return crawl << pageBits }
func AfterPages(crawl int64) int64  { return (crawl + 1) << pageBits }

// Conditions collect what rows must be like, in SQL that both databases read,
// with a ? for each argument. Match is for a column that contains a text or, if
// the text has a *, is like it as a whole.
type Conditions interface {
	And(condition string, args ...any)
	Match(column, pattern string)
}

// Choose says which pages of a crawl a filter is for.
func (f *PageFilter) Choose(crawl int64, q Conditions) {
	// One lower bound, not two: SQLite seeks by one and filters by the other,
	// which made every chunk of a listing read all those before it.
	q.And("id > ?", max(BeforePages(crawl), f.After))
	q.And("id < ?", AfterPages(crawl))
	if len(f.Outcomes) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(f.Outcomes)), ", ")
		names := make([]any, len(f.Outcomes))
		for i, o := range f.Outcomes {
			names[i] = o.String()
		}
		q.And("outcome IN ("+marks+")", names...)
	}
	if f.Status != nil {
		q.And("coalesce(status, 0) BETWEEN ? AND ?", int64(f.Status.Min), int64(f.Status.Max))
	}
	if f.Depth != nil {
		q.And("depth BETWEEN ? AND ?", int64(f.Depth.Min), int64(f.Depth.Max))
	}
	if strings.Contains(f.Host, "*") {
		q.Match("host", f.Host)
	} else if f.Host != "" {
		q.And("host = ?", f.Host)
	}
	if f.Kind != "" {
		q.And("kind = ?", f.Kind)
	}
	if f.ContentType != "" {
		q.And("substr(lower(content_type), 1, length(?)) = ?", f.ContentType, f.ContentType)
	}
	if f.MinTotal > 0 {
		q.And("total_us >= ?", f.MinTotal.Microseconds())
	}
	if f.Match != "" {
		q.Match("url", f.Match)
	}
}

var pageOrders = map[Sort]string{
	ByFound:  "id",
	ByURL:    "url",
	ByHost:   "host",
	ByStatus: "coalesce(status, 0)",
	BySize:   "coalesce(size, 0)",
	ByTime:   "coalesce(total_us, 0)",
	ByDepth:  "depth",
	ByLinks:  "coalesce(link_count, 0)",
}

// Order is the end of a statement that lists the IDs of pages in the filter's
// order, which has no cursor.
func (f *PageFilter) Order() (string, error) {
	order, ok := pageOrders[f.Sort]
	if !ok {
		return "", fmt.Errorf("unknown order %q", f.Sort)
	}
	if f.After != 0 {
		return "", errors.New("a cursor works only in the order in which pages were found")
	}
	if f.Desc {
		order += " DESC"
	}
	return "ORDER BY " + order + ", id", nil
}

// Choose says which domains behind a host a filter is for.
func (f *DomainFilter) Choose(after string, q Conditions) {
	q.And("host > ?", after)
	if f.Match != "" {
		q.Match("host", f.Match)
	}
	if f.Learned {
		q.And("(adaptive_delay_ms > 0 OR adaptive_delay_floor_ms > 0 OR blocked_until_ms IS NOT NULL OR consecutive_failures > 0)")
	}
}

// Linkers are the pages that link to a target, in the order of their IDs.
type Linkers struct {
	count int64
	last  int64
	IDs   []int64 // of the first of them
}

// Add counts a page once, however often it has the link, and keeps its ID if
// fewer than most are kept; 0: always.
func (w *Linkers) Add(id int64, most int) {
	if id == w.last {
		return
	}
	w.last = id
	w.count++
	if most == 0 || len(w.IDs) < most {
		w.IDs = append(w.IDs, id)
	}
}

// Sources names the pages; targets that nobody links to are left out.
func Sources(found map[uint64]*Linkers, names map[int64]string) map[uint64]LinkSources {
	result := make(map[uint64]LinkSources)
	for target, w := range found {
		if w.count == 0 {
			continue
		}
		src := LinkSources{Count: w.count}
		for _, id := range w.IDs {
			src.URLs = append(src.URLs, names[id])
		}
		result[target] = src
	}
	return result
}
