package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// The key space. Numbers inside keys are "ordered": a length byte, then the
// big-endian bytes without leading zeros. They sort like the numbers and cost
// two to four bytes where a fixed one costs eight, which is felt in the log
// and the memtable, where nothing is compressed.
//
//	m name                              format version, ID mark
//	n group NUL name                    note
//	q ordered(crawl) group NUL prio ordered(id)   queued entry
//	s ordered(crawl) fingerprint        seen URL, no value
//
// The crawl stands before the group so that counting or dropping a crawl is
// one contiguous range.
const (
	tagMeta  = 'm'
	tagNote  = 'n'
	tagQueue = 'q'
	tagSeen  = 's'
)

const (
	keyFormat = "mformat"
	keyIDs    = "mids"
)

const fpLen = 16

var errKey = errors.New("malformed key")

// checkGroup refuses names that would break out of their key.
func checkGroup(group string) error {
	if strings.IndexByte(group, 0) >= 0 {
		return fmt.Errorf("group %q contains a NUL", group)
	}
	return nil
}

func appendOrdered(dst []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	dst = append(dst, byte(n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// cutOrdered reads an ordered number from the front of b.
func cutOrdered(b []byte) (v uint64, rest []byte, err error) {
	if len(b) == 0 || b[0] > 8 || len(b) < 1+int(b[0]) {
		return 0, nil, errKey
	}
	n := int(b[0])
	for _, c := range b[1 : 1+n] {
		v = v<<8 | uint64(c)
	}
	return v, b[1+n:], nil
}

func appendCrawl(dst []byte, tag byte, crawl frontier.CrawlID) []byte {
	return appendOrdered(append(dst, tag), uint64(crawl))
}

// appendQueue appends what all keys of one queue begin with.
func appendQueue(dst []byte, crawl frontier.CrawlID, group string) []byte {
	dst = appendCrawl(dst, tagQueue, crawl)
	dst = append(dst, group...)
	return append(dst, 0)
}

func appendPos(dst []byte, pos frontier.Pos) []byte {
	return appendOrdered(append(dst, pos.Prio), pos.ID)
}

// parsePos reads what follows a queue's prefix.
func parsePos(b []byte) (frontier.Pos, error) {
	if len(b) == 0 {
		return frontier.Pos{}, errKey
	}
	id, rest, err := cutOrdered(b[1:])
	if err != nil || len(rest) != 0 {
		return frontier.Pos{}, errKey
	}
	return frontier.Pos{Prio: b[0], ID: id}, nil
}

func appendSeen(dst []byte, crawl frontier.CrawlID, fp weburl.Fingerprint) []byte {
	dst = appendCrawl(dst, tagSeen, crawl)
	dst = binary.BigEndian.AppendUint64(dst, fp.Hi)
	return binary.BigEndian.AppendUint64(dst, fp.Lo)
}

// parseFP reads the fingerprint at the end of a seen key.
func parseFP(key []byte) (weburl.Fingerprint, error) {
	if len(key) < fpLen {
		return weburl.Fingerprint{}, errKey
	}
	b := key[len(key)-fpLen:]
	return weburl.Fingerprint{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}, nil
}

func appendNote(dst []byte, group, name string) []byte {
	dst = append(dst, tagNote)
	dst = append(dst, group...)
	dst = append(dst, 0)
	return append(dst, name...)
}

// rangeEnd returns the first key after all keys that begin with prefix. A
// prefix here begins with a tag letter, so there always is one.
func rangeEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
