package ledger

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"tiptoe/internal/weburl"
)

// MaxText bounds, in bytes, every stored text that a stranger wrote and that
// is neither a URL nor JSON: titles, error texts, header values.
const MaxText = 16 << 10

// ErrTakenOver says that another process has opened a crawl since, and ends it.
var ErrTakenOver = errors.New("another process has opened the crawl since")

// ErrNoCrawl says that a row names a crawl that the ledger does not hold.
var ErrNoCrawl = errors.New("no such crawl in the ledger")

// Text makes a stranger's bytes storable on every database: valid UTF-8
// without NUL (PostgreSQL refuses both, and SQLite's own functions stop at a
// NUL), and at most MaxText bytes, cut between characters.
func Text(s string) string { return clip(Unbounded(s), MaxText) }

// Unbounded is Text without the bound, for URLs, whose identity a cut would
// destroy, and for JSON, which a cut would break.
func Unbounded(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// EncodeLinks appends the stored form of a page's link targets to dst: eight
// little-endian bytes each, in their order. Sorting would cost more than
// all the rest of storing them, and deltas would not pay for it: 60 random
// 64-bit numbers, sorted, are still 58 bits apart.
func EncodeLinks(dst []byte, links []uint64) []byte {
	for _, l := range links {
		dst = binary.LittleEndian.AppendUint64(dst, l)
	}
	return dst
}

// DecodeLinks appends the link targets in a stored blob to dst. A blob whose
// length is not a whole number of links is damaged; the rest is ignored.
func DecodeLinks(dst []uint64, blob []byte) []uint64 {
	for ; len(blob) >= 8; blob = blob[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(blob))
	}
	return dst
}

// AppendFP appends the stored form of a fingerprint: both halves big-endian, so
// that the blob in hex reads like the 128-bit number.
func AppendFP(b []byte, f weburl.Fingerprint) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, f.Hi), f.Lo)
}

// ParseFP reads it; NULL and what is damaged read as zero.
func ParseFP(b []byte) weburl.Fingerprint {
	if len(b) != 16 {
		return weburl.Fingerprint{}
	}
	return weburl.Fingerprint{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// jsonTexts is the stored form of a list.
func jsonTexts(all []string) string {
	clean := make([]string, len(all))
	for i, v := range all {
		clean[i] = Unbounded(v)
	}
	var sb strings.Builder
	enc := json.NewEncoder(&sb)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(clean); err != nil {
		panic(err) // texts always encode
	}
	return strings.TrimSpace(sb.String())
}

func parseTexts(text string) (all []string, err error) {
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("damaged list: %w", err)
	}
	return all, nil
}
