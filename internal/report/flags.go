package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// Query is the flags of `tiptoe pages`, as typed. An empty one chooses
// everything.
type Query struct {
	Status  string // 404, 4xx, 200-299, none
	Outcome string // names, comma-separated
	Host    string // a host, or a pattern with *
	Slow    string // 3s
	Type    string // text/html, image, html, pdf
	Depth   string // 2, 1-3, 3-
	Match   string // part of the URL, or a pattern with *
	Sort    string // time, -size
	Limit   int
}

// Filter reads the flags. Its errors are one sentence for the person who
// typed them.
func (q Query) Filter() (ledger.PageFilter, error) {
	f := ledger.PageFilter{Host: strings.ToLower(q.Host), Match: q.Match, Limit: q.Limit}
	var err error
	if q.Limit < 0 {
		return f, fmt.Errorf("--limit %d: want a number of pages, or 0 for all", q.Limit)
	}
	if f.Status, err = ParseStatus(q.Status); err != nil {
		return f, err
	}
	if f.Outcomes, err = ParseOutcomes(q.Outcome); err != nil {
		return f, err
	}
	if f.MinTotal, err = ParseSlow(q.Slow); err != nil {
		return f, err
	}
	if f.ContentType, err = ParseType(q.Type); err != nil {
		return f, err
	}
	if f.Depth, err = ParseDepth(q.Depth); err != nil {
		return f, err
	}
	f.Sort, f.Desc, err = ParseSort(q.Sort)
	return f, err
}

// ParseStatus reads 404, 4xx, 200-299, or none for "no answer".
func ParseStatus(s string) (*ledger.Range, error) {
	bad := func() (*ledger.Range, error) {
		return nil, fmt.Errorf("--status %q: want a code (404), a class (4xx), a range (200-299), or none for no answer", s)
	}
	v := strings.ToLower(strings.TrimSpace(s))
	switch {
	case v == "":
		return nil, nil
	case v == "none":
		return &ledger.Range{}, nil
	case len(v) == 3 && v[1:] == "xx" && v[0] >= '1' && v[0] <= '5':
		base := int(v[0]-'0') * 100
		return &ledger.Range{Min: base, Max: base + 99}, nil
	}
	from, to, isRange := strings.Cut(v, "-")
	if !isRange {
		to = from
	}
	lo, ok1 := code(from)
	hi, ok2 := code(to)
	if !ok1 || !ok2 || lo > hi {
		return bad()
	}
	return &ledger.Range{Min: lo, Max: hi}, nil
}

func code(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && len(s) == 3 && n >= 100
}

// ParseOutcomes reads names of outcomes; "broken" stands for all that
// Broken reports.
func ParseOutcomes(s string) ([]outcome.Outcome, error) {
	var all []outcome.Outcome
	for name := range strings.SplitSeq(s, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if name == "broken" {
			all = append(all, brokenOutcomes()...)
			continue
		}
		o, ok := outcome.Parse(name)
		if !ok || o == outcome.Pending {
			return nil, fmt.Errorf("--outcome %q: want broken, or some of %s", name, strings.Join(outcomeNames(), ", "))
		}
		all = append(all, o)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func outcomeNames() []string {
	var names []string
	for _, o := range outcome.All() {
		if o != outcome.Pending {
			names = append(names, o.String())
		}
	}
	return names
}

// ParseSlow reads a duration such as 3s or 1500ms.
func ParseSlow(s string) (time.Duration, error) {
	v := strings.TrimSpace(s)
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--slow %q: want a time with its unit, such as 3s or 1500ms", s)
	}
	return d, nil
}

// typeNames are short for content types that people ask for.
var typeNames = map[string]string{
	"html": "text/html", "xhtml": "application/xhtml+xml", "text": "text/", "css": "text/css", "pdf": "application/pdf",
	"json": "application/json", "image": "image/", "video": "video/", "audio": "audio/", "font": "font/",
}

// ParseType reads a content type, its beginning (image/), or a short name.
func ParseType(s string) (string, error) {
	v := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "*")
	if v == "" || strings.Contains(v, "/") && !strings.ContainsAny(v, " ;,*") {
		return v, nil
	}
	if t, ok := typeNames[v]; ok {
		return t, nil
	}
	var short []string
	for n := range typeNames {
		short = append(short, n)
	}
	slices.Sort(short)
	return "", fmt.Errorf("--type %q: want a content type (text/html), its beginning (image/), or one of %s", s, strings.Join(short, ", "))
}

// deepest is past every depth that is stored.
const deepest = 1 << 30

// ParseDepth reads 2, 1-3, or 3- for 3 and deeper.
func ParseDepth(s string) (*ledger.Range, error) {
	v := strings.TrimSpace(s)
	if v == "" {
		return nil, nil
	}
	from, to, isRange := strings.Cut(v, "-")
	lo, err1 := strconv.ParseUint(from, 10, 16)
	hi, err2 := lo, error(nil)
	if isRange && to == "" {
		hi = deepest
	} else if isRange {
		hi, err2 = strconv.ParseUint(to, 10, 16)
	}
	if err1 != nil || err2 != nil || lo > hi {
		return nil, fmt.Errorf("--depth %q: want a number of links from the start (2), a range (1-3), or 3- for 3 and deeper", s)
	}
	return &ledger.Range{Min: int(lo), Max: int(hi)}, nil
}

// ParseSort reads the name of an order, with a - in front for the largest
// first.
func ParseSort(s string) (ledger.Sort, bool, error) {
	v := strings.ToLower(strings.TrimSpace(s))
	name, desc := strings.CutPrefix(v, "-")
	if name == "" && !desc || name == "found" {
		return ledger.ByFound, desc, nil
	}
	if by := ledger.Sort(name); slices.Contains(ledger.Sorts(), by) {
		return by, desc, nil
	}
	names := []string{"found"}
	for _, by := range ledger.Sorts() {
		names = append(names, string(by))
	}
	return "", false, fmt.Errorf("--sort %q: want one of %s, with a - in front for the largest first", s, strings.Join(names, ", "))
}
