package pebblestore

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tiptoe/internal/frontier"
)

func TestKeysSortLikeThePlacesTheyName(t *testing.T) {
	ids := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 600), rapid.SampledFrom([]uint64{0, 255, 256, 65535, 65536, math.MaxUint64}))
	rapid.Check(t, func(t *rapid.T) {
		p := frontier.Pos{Prio: rapid.Byte().Draw(t, "prio"), ID: ids.Draw(t, "id")}
		q := frontier.Pos{Prio: rapid.Byte().Draw(t, "prio"), ID: ids.Draw(t, "id")}
		group := rapid.StringMatching(`[a-z.]{0,5}`)
		gp, gq := group.Draw(t, "group"), group.Draw(t, "group")
		crawl := frontier.CrawlID(rapid.Int64().Draw(t, "crawl"))
		prefix := appendQueue(nil, crawl, gp)
		kp, kq := appendPos(bytes.Clone(prefix), p), appendPos(appendQueue(nil, crawl, gq), q)
		if gp == gq && (bytes.Compare(kp, kq) < 0) != p.Less(q) {
			t.Fatalf("%v and %v sort otherwise than their keys", p, q)
		}
		if gp != gq && bytes.HasPrefix(kq, prefix) {
			t.Fatalf("a key of %q lies among those of %q", gq, gp)
		}
		if back, err := parsePos(kp[len(prefix):]); err != nil || back != p {
			t.Fatalf("%v came back as %v, %v", p, back, err)
		}
		if end := rangeEnd(prefix); bytes.Compare(kp, end) >= 0 || !bytes.HasPrefix(kq, prefix) && bytes.Compare(kq, prefix) > 0 && bytes.Compare(kq, end) < 0 {
			t.Fatalf("the range of %q is wrong", gp)
		}
	})
}

func TestCrawlsWhoseNumbersBeginAlikeDoNotShareARange(t *testing.T) {
	crawls := []frontier.CrawlID{0, 1, 2, 255, 256, 257, 511, 512, 65535, 65536, math.MaxInt64, -1, math.MinInt64}
	for _, a := range crawls {
		prefix := appendCrawl(nil, tagSeen, a)
		end := rangeEnd(prefix)
		for _, b := range crawls {
			key := appendSeen(nil, b, fpOf("https://a.example/"))
			inside := bytes.Compare(key, prefix) >= 0 && bytes.Compare(key, end) < 0
			if inside != (a == b) {
				t.Errorf("key of crawl %d inside the range of %d: %t", b, a, inside)
			}
			if fp, err := parseFP(key); err != nil || fp != fpOf("https://a.example/") {
				t.Errorf("fingerprint came back as %v, %v", fp, err)
			}
		}
	}
}

func FuzzParsePos(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		pos, err := parsePos(b)
		if err != nil {
			return
		}
		// A length byte may be larger than needed in bytes nobody wrote;
		// the number must survive all the same.
		if back, err := parsePos(appendPos(nil, pos)); err != nil || back != pos {
			t.Fatalf("%x: %v came back as %v, %v", b, pos, back, err)
		}
	})
}

func TestRangeEndOfTrailingFFCarries(t *testing.T) {
	if got := rangeEnd([]byte{'q', 0xff, 0xff}); !slices.Equal(got, []byte{'r'}) {
		t.Errorf("end is %x", got)
	}
}
