package ledger

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// MaxText bounds, in bytes, every stored text that a stranger wrote and that
// is neither a URL nor JSON: titles, error texts, header values.
const MaxText = 16 << 10

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
