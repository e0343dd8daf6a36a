package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// perPage is the most that the API gives at once.
const perPage = 500

// Whole is the limit of a list that the API gives in one part.
const Whole = -1

// List asks for a list, part after part, and yields its items as they came;
// at most limit of them, all if it is 0.
func (c *Client) List(ctx context.Context, path string, q url.Values, limit int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		q := maps.Clone(q)
		if q == nil {
			q = url.Values{}
		}
		for left := limit; ; {
			switch {
			case limit > 0:
				q.Set("limit", strconv.Itoa(min(left, perPage)))
			case limit != Whole:
				q.Set("limit", strconv.Itoa(perPage))
			}
			var part struct {
				Items []json.RawMessage `json:"items"`
				Next  *string           `json:"next"`
			}
			if err := c.Get(ctx, path, q, &part); err != nil {
				yield(nil, err)
				return
			}
			for _, item := range part.Items {
				if !yield(item, nil) {
					return
				}
				if left--; limit > 0 && left == 0 {
					return
				}
			}
			if part.Next == nil || *part.Next == "" {
				return
			}
			if *part.Next == q.Get("cursor") {
				yield(nil, fmt.Errorf("%s: the list does not go on; this is a fault of the server", path))
				return
			}
			q.Set("cursor", *part.Next)
		}
	}
}

// As decodes the items of a list.
func As[T any](items iter.Seq2[json.RawMessage, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for raw, err := range items {
			var v T
			if err == nil {
				err = json.Unmarshal(raw, &v)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Plain writes JSON on one line and what a terminal might act on or hide (C1
// controls, bidi and zero-width characters) as \u escapes. No value changes.
func Plain(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		b.Reset()
		fmt.Fprintf(&b, "%q", raw)
	}
	out := make([]byte, 0, b.Len())
	for in := b.Bytes(); len(in) > 0; {
		r, n := utf8.DecodeRune(in)
		switch {
		case unicode.IsPrint(r):
			out = append(out, in[:n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		in = in[n:]
	}
	return out
}
