package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"tiptoe/internal/ledger"
)

// record is one line. Names are stable for ever.
type record struct {
	URL          string          `json:"url"`
	Host         string          `json:"host"`
	Outcome      string          `json:"outcome"`
	Status       *int            `json:"status"`
	Error        *string         `json:"error"`
	Kind         *string         `json:"kind"`
	Via          *string         `json:"via"`
	FoundOn      *string         `json:"found_on"`
	Depth        int             `json:"depth"`
	Tries        int             `json:"tries"`
	FetchedAt    *string         `json:"fetched_at"`
	ContentType  *string         `json:"content_type"`
	Charset      *string         `json:"charset"`
	Bytes        *int64          `json:"bytes"`
	WireBytes    *int64          `json:"wire_bytes"`
	RedirectTo   *string         `json:"redirect_to"`
	Title        *string         `json:"title"`
	Description  *string         `json:"description"`
	Canonical    *string         `json:"canonical"`
	Lang         *string         `json:"lang"`
	Hreflang     json.RawMessage `json:"hreflang"`
	NoIndex      *bool           `json:"noindex"`
	NoFollow     *bool           `json:"nofollow"`
	LastModified *string         `json:"last_modified"`
	ContentHash  *string         `json:"content_hash"`
	Links        *int            `json:"links"`
	Timing       *timing         `json:"timing"`
	Robots       *robots         `json:"robots"`
}

type timing struct {
	DNS      *float64 `json:"dns_ms"`
	Connect  *float64 `json:"connect_ms"`
	TLS      *float64 `json:"tls_ms"`
	TTFB     *float64 `json:"ttfb_ms"`
	Transfer *float64 `json:"transfer_ms"`
	Total    *float64 `json:"total_ms"`
	Reused   bool     `json:"connection_reused"`
}

type robots struct {
	Allowed    bool     `json:"allowed"`
	Rule       *string  `json:"matched_rule"`
	Line       *int     `json:"line"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	FetchedAt  *string  `json:"fetched_at"`
	Confidence float64  `json:"confidence"`
	Ignored    bool     `json:"ignored"`
}

// JSONL writes one JSON object a page and a line, and returns how many.
func JSONL(ctx context.Context, w io.Writer, src Source, crawl int64, f ledger.PageFilter) (int64, error) {
	out := bufio.NewWriterSize(w, bufferSize)
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // & in URLs stays legible
	n := int64(0)
	for p, err := range src.Pages(ctx, crawl, f) {
		if err != nil {
			return n, err
		}
		line.Reset()
		if err := enc.Encode(newRecord(&p)); err != nil {
			return n, fmt.Errorf("encode %s: %w", p.URL, err)
		}
		if _, err := out.Write(escapeInvisible(line.Bytes())); err != nil {
			return n, output(err)
		}
		n++
	}
	return n, output(out.Flush())
}

func newRecord(p *ledger.Page) record {
	answered := p.Status != 0
	r := record{
		URL: publicURL(p.URL), Host: p.Host, Outcome: p.Outcome.String(), Status: known(p.Status), Error: text(p.Error),
		Kind: text(p.Kind), Via: text(p.Via), FoundOn: text(publicURL(p.FoundOn)), Depth: p.Depth, Tries: p.Tries,
		FetchedAt: stamp(p.FetchedAt), ContentType: text(p.ContentType), Charset: text(p.Charset),
		RedirectTo: text(publicURL(p.RedirectTo)), Title: text(p.Title), Description: text(p.Description),
		Canonical: text(publicURL(p.Canonical)), Lang: text(p.Lang), LastModified: stamp(p.LastModified),
	}
	if answered {
		r.Bytes, r.WireBytes, r.Links = &p.Size, &p.WireSize, &p.LinkCount
		r.NoIndex, r.NoFollow = &p.NoIndex, &p.NoFollow
	}
	if json.Valid([]byte(p.Hreflang)) {
		r.Hreflang = json.RawMessage(p.Hreflang)
	}
	if p.ContentHash != 0 {
		hash := fmt.Sprintf("%016x", p.ContentHash)
		r.ContentHash = &hash
	}
	if t := p.Timing; t != (ledger.Timing{}) {
		r.Timing = &timing{DNS: millis(t.DNS), Connect: millis(t.Connect), TLS: millis(t.TLS), TTFB: millis(t.TTFB),
			Transfer: millis(t.Transfer), Total: millis(t.Total), Reused: t.Reused}
	}
	if d := p.Robots; d.Decided {
		r.Robots = &robots{Allowed: d.Allowed, Rule: text(d.Rule), Line: known(d.Line), FetchedAt: stamp(d.FetchedAt),
			Confidence: d.Confidence, Ignored: d.Ignored}
		if d.CrawlDelay > 0 {
			seconds := d.CrawlDelay.Seconds()
			r.Robots.CrawlDelay = &seconds
		}
	}
	return r
}

func known(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timeLayout is RFC 3339 in UTC to the millisecond, as much as is stored.
const timeLayout = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(timeLayout)
	return &s
}

func millis(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

// escapeInvisible replaces in encoded JSON the characters that the encoder
// leaves alone although they can drive a terminal or turn text around. They
// can only stand inside strings, where \u means the same.
func escapeInvisible(b []byte) []byte {
	clean := true
	for _, c := range b {
		if c >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return b
	}
	out := make([]byte, 0, len(b)+32)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == 0x7f || r >= 0x80 && r <= 0x9f || r == 0x61c || r == 0x200e || r == 0x200f ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}
