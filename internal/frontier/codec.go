package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An entry as stores keep it: version, flags, kind, via, hops, tries, then
// depth and URL, then what the flags announce. Crawl, group, priority and ID
// are in its key. FoundOn and Chain are nearly always on the same host as the
// URL, so they are stored as "shares n bytes with the URL, then this".
const entryVersion = 1

const (
	flagTrustPrivate = 1 << iota
	flagNotBefore
	flagFoundOn
	flagChain
	flagMemo
	flagsKnown = flagTrustPrivate | flagNotBefore | flagFoundOn | flagChain | flagMemo
)

const entryHeader = 6

var errEntry = errors.New("malformed entry")

// AppendEntry encodes what a store keeps of an entry beside its key.
func AppendEntry(dst []byte, e *Entry) []byte {
	var flags byte
	if e.TrustPrivate {
		flags |= flagTrustPrivate
	}
	if !e.NotBefore.IsZero() {
		flags |= flagNotBefore
	}
	if e.FoundOn != "" {
		flags |= flagFoundOn
	}
	if len(e.Chain) > 0 {
		flags |= flagChain
	}
	if e.Memo != "" {
		flags |= flagMemo
	}
	dst = append(dst, entryVersion, flags, byte(e.Kind), byte(e.Via), e.Hops, e.Tries)
	dst = binary.AppendUvarint(dst, uint64(e.Depth))
	dst = binary.AppendUvarint(dst, uint64(len(e.URL)))
	dst = append(dst, e.URL...)
	if flags&flagNotBefore != 0 {
		// Seconds and nanoseconds: UnixNano overflows in the year 2262 and
		// a far-away backoff must not turn into one of the past.
		dst = binary.AppendVarint(dst, e.NotBefore.Unix())
		dst = binary.AppendUvarint(dst, uint64(e.NotBefore.Nanosecond()))
	}
	if flags&flagFoundOn != 0 {
		dst = appendShared(dst, e.URL, e.FoundOn)
	}
	if flags&flagChain != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.Chain)))
		for _, hop := range e.Chain {
			dst = appendShared(dst, e.URL, hop)
		}
	}
	if flags&flagMemo != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.Memo)))
		dst = append(dst, e.Memo...)
	}
	return dst
}

func appendShared(dst []byte, url, s string) []byte {
	n := 0
	for n < len(url) && n < len(s) && url[n] == s[n] {
		n++
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(len(s)-n))
	return append(dst, s[n:]...)
}

// DecodeEntry fills in what the value holds; the caller knows the rest from
// the key.
func DecodeEntry(value []byte, e *Entry) error {
	if len(value) < entryHeader {
		return errEntry
	}
	if value[0] != entryVersion {
		return fmt.Errorf("entry format %d is unknown to this version", value[0])
	}
	flags := value[1]
	if flags&^flagsKnown != 0 {
		return errEntry
	}
	e.TrustPrivate = flags&flagTrustPrivate != 0
	e.Kind, e.Via = Kind(value[2]), Via(value[3])
	e.Hops, e.Tries = value[4], value[5]

	r := reader{s: string(value[entryHeader:])}
	depth := r.uvarint()
	if depth > 1<<16-1 {
		return errEntry
	}
	e.Depth = uint16(depth)
	e.URL = r.text(r.uvarint())
	e.NotBefore, e.FoundOn, e.Chain, e.Memo = time.Time{}, "", nil, ""
	if flags&flagNotBefore != 0 {
		sec, nsec := r.varint(), r.uvarint()
		if nsec >= 1e9 {
			return errEntry
		}
		e.NotBefore = time.Unix(sec, int64(nsec)).UTC()
	}
	if flags&flagFoundOn != 0 {
		e.FoundOn = r.shared(e.URL)
	}
	if flags&flagChain != 0 {
		n := r.uvarint()
		if n > uint64(len(r.s)) { // a hop takes two bytes at least
			return errEntry
		}
		e.Chain = make([]string, 0, n)
		for range n {
			e.Chain = append(e.Chain, r.shared(e.URL))
		}
	}
	if flags&flagMemo != 0 {
		e.Memo = r.text(r.uvarint())
	}
	if r.bad || r.s != "" {
		return errEntry
	}
	return nil
}

// reader takes values off the front of a string; after the first one that is
// not there it is bad and returns zeros. The entry's strings are slices of
// the one string it holds.
type reader struct {
	s   string
	bad bool
}

func (r *reader) uvarint() uint64 {
	var v uint64
	for i := 0; i < len(r.s) && i < binary.MaxVarintLen64; i++ {
		c := r.s[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 {
				break
			}
			r.s = r.s[i+1:]
			return v | uint64(c)<<(7*i)
		}
		v |= uint64(c&0x7f) << (7 * i)
	}
	r.bad, r.s = true, ""
	return 0
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) text(n uint64) string {
	if n > uint64(len(r.s)) {
		r.bad, r.s = true, ""
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *reader) shared(url string) string {
	n := r.uvarint()
	tail := r.text(r.uvarint())
	if n > uint64(len(url)) {
		r.bad, r.s = true, ""
		return ""
	}
	if tail == "" {
		return url[:n]
	}
	if n == 0 {
		return tail
	}
	var b strings.Builder
	b.Grow(int(n) + len(tail))
	b.WriteString(url[:n])
	b.WriteString(tail)
	return b.String()
}
