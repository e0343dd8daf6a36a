package api

import (
	"encoding/json"
	"math"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/ledger"
)

// Stamp is a time in answers: RFC 3339, UTC, milliseconds.
type Stamp time.Time

const stampLayout = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON writes the time.
func (s Stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"` + stampLayout + `"`)), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Stamp) UnmarshalJSON(b []byte) error { return (*time.Time)(s).UnmarshalJSON(b) }

// Schema describes it.
func (Stamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-11-05T14:02:10.123Z"}}
}

// What is not known is null.

func at(t time.Time) *Stamp {
	if t.IsZero() {
		return nil
	}
	s := Stamp(t)
	return &s
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func known[T int | int64 | float64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

func millis(d time.Duration) *float64 {
	return known(float64(d.Microseconds()) / 1000)
}

// round keeps what a person can use of a measured number.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }

// raw passes stored JSON on, and null for what is none.
func raw(s string) json.RawMessage {
	if s == "" || !json.Valid([]byte(s)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(s)
}

// orNull lets a schema's object be null, which huma's tags cannot say.
func orNull(s *huma.Schema, fields ...string) *huma.Schema {
	for _, f := range fields {
		if p := s.Properties[f]; p != nil && p.Ref != "" {
			s.Properties[f] = &huma.Schema{Description: p.Description, OneOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
	}
	return s
}

// Page is one URL's outcome.
type Page struct {
	ID          int64    `json:"id"`
	URL         string   `json:"url" example:"https://example.com/about"`
	Outcome     string   `json:"outcome" example:"ok"`
	Status      *int     `json:"status" doc:"HTTP status; null if there was no answer." example:"200"`
	Host        string   `json:"host"`
	Kind        *string  `json:"kind" doc:"page or sitemap."`
	Via         *string  `json:"via" doc:"How it was found: seed, link, redirect, sitemap."`
	FoundOn     *string  `json:"found_on"`
	Depth       int      `json:"depth"`
	Tries       int      `json:"tries" doc:"Requests made for it."`
	ContentType *string  `json:"content_type"`
	Bytes       *int64   `json:"bytes" doc:"Of the body, decoded."`
	WireBytes   *int64   `json:"wire_bytes" doc:"Of the body, as it was sent."`
	MS          *float64 `json:"ms" doc:"The whole request, in milliseconds."`
	TTFB        *float64 `json:"ttfb_ms"`
	Title       *string  `json:"title"`
	Description *string  `json:"description"`
	Canonical   *string  `json:"canonical"`
	Lang        *string  `json:"lang"`
	NoIndex     *bool    `json:"noindex"`
	NoFollow    *bool    `json:"nofollow"`
	RedirectTo  *string  `json:"redirect_to"`
	Links       *int     `json:"links" doc:"How many links it has."`
	Error       *string  `json:"error"`
	FetchedAt   *Stamp   `json:"fetched_at" nullable:"true"`
	Robots      *Robots  `json:"robots" doc:"The decision by robots.txt; null if none was needed."`
}

// TransformSchema lets robots be null.
func (Page) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return orNull(s, "robots") }

// Robots is the decision by robots.txt about one URL.
type Robots struct {
	Allowed    bool    `json:"allowed"`
	Rule       *string `json:"rule" example:"Disallow: /private"`
	Line       *int    `json:"line" doc:"Of robots.txt; null if no line decided."`
	CrawlDelay *int64  `json:"crawl_delay_ms"`
	FetchedAt  *Stamp  `json:"fetched_at" nullable:"true"`
	Confidence float64 `json:"confidence"`
	Ignored    bool    `json:"ignored" doc:"The crawl was told to ignore robots.txt."`
}

func pageView(p *ledger.Page) Page {
	v := Page{
		ID: p.ID, URL: p.URL, Outcome: p.Outcome.String(), Status: known(p.Status), Host: p.Host,
		Kind: text(p.Kind), Via: text(p.Via), FoundOn: text(p.FoundOn), Depth: p.Depth, Tries: p.Tries,
		ContentType: text(p.ContentType), MS: millis(p.Timing.Total), TTFB: millis(p.Timing.TTFB),
		Title: text(p.Title), Description: text(p.Description), Canonical: text(p.Canonical), Lang: text(p.Lang),
		RedirectTo: text(p.RedirectTo), Error: text(p.Error), FetchedAt: at(p.FetchedAt),
	}
	if p.Status != 0 {
		v.Bytes, v.WireBytes, v.Links = &p.Size, &p.WireSize, &p.LinkCount
		v.NoIndex, v.NoFollow = &p.NoIndex, &p.NoFollow
	}
	if d := p.Robots; d.Decided {
		v.Robots = &Robots{Allowed: d.Allowed, Rule: text(d.Rule), Line: known(d.Line), CrawlDelay: known(d.CrawlDelay.Milliseconds()),
			FetchedAt: at(d.FetchedAt), Confidence: d.Confidence, Ignored: d.Ignored}
	}
	return v
}

// PageEvent is a page as an event stream tells of it.
type PageEvent struct {
	URL     string   `json:"url"`
	Outcome string   `json:"outcome"`
	Status  *int     `json:"status"`
	MS      *float64 `json:"ms"`
	Title   *string  `json:"title"`
	Bytes   *int64   `json:"bytes"`
	At      *Stamp   `json:"at" nullable:"true"`
	Depth   int      `json:"depth"`
}

func pageEvent(p *ledger.Page) PageEvent {
	v := pageView(p)
	return PageEvent{URL: v.URL, Outcome: v.Outcome, Status: v.Status, MS: v.MS, Title: v.Title, Bytes: v.Bytes, At: v.FetchedAt, Depth: v.Depth}
}
