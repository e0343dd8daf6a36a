package pebblestore

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tiptoe/internal/frontier"
)

func genEntry(t *rapid.T) frontier.Entry {
	url := rapid.SampledFrom([]string{"https://a.example/", "https://a.example/b?c=d", "http://b.example/\xff", ""})
	e := frontier.Entry{
		Kind: frontier.Kind(rapid.Byte().Draw(t, "kind")), Via: frontier.Via(rapid.Byte().Draw(t, "via")),
		URL: url.Draw(t, "url"), Depth: rapid.Uint16().Draw(t, "depth"),
		Hops: rapid.Byte().Draw(t, "hops"), Tries: rapid.Byte().Draw(t, "tries"),
		TrustPrivate: rapid.Bool().Draw(t, "trust"), FoundOn: url.Draw(t, "found on"),
		Chain: rapid.SliceOfN(rapid.OneOf(url, rapid.String()), 0, 3).Draw(t, "chain"),
	}
	if rapid.Bool().Draw(t, "delayed") {
		e.NotBefore = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	}
	return e
}

func TestAnEntryIsDecodedAsItWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genEntry(t)
		got := frontier.Entry{FoundOn: "left over", Chain: []string{"left over"}, NotBefore: time.Unix(1, 1)}
		if err := decodeEntry(appendEntry(nil, &want), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(frontier.Entry{})); d != "" {
			t.Fatalf("entry differs (-want +got):\n%s", d)
		}
	})
}

func TestADamagedEntryIsRefused(t *testing.T) {
	e := frontier.Entry{URL: "https://a.example/x", FoundOn: "https://a.example/", Chain: []string{"http://b.example/"}, NotBefore: time.Unix(9, 9)}
	good := appendEntry(nil, &e)
	var out frontier.Entry
	for n := range good {
		if decodeEntry(good[:n], &out) == nil {
			t.Errorf("the first %d of %d bytes were taken for an entry", n, len(good))
		}
	}
	if decodeEntry(append(bytes.Clone(good), 0), &out) == nil {
		t.Error("a byte too many was not noticed")
	}
	future := bytes.Clone(good)
	future[0]++
	if decodeEntry(future, &out) == nil {
		t.Error("an entry of an unknown version was taken")
	}
	flagged := bytes.Clone(good)
	flagged[1] |= 0x80
	if decodeEntry(flagged, &out) == nil {
		t.Error("an entry with an unknown flag was taken")
	}
}

// What decodes must survive another round, whatever the bytes were.
func FuzzDecodeEntry(f *testing.F) {
	e := frontier.Entry{URL: "https://a.example/x", FoundOn: "https://a.example/", Chain: []string{"http://b.example/"}, NotBefore: time.Unix(9, 9)}
	f.Add(appendEntry(nil, &e))
	f.Add([]byte{entryVersion, flagChain, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second frontier.Entry
		if decodeEntry(b, &first) != nil {
			return
		}
		if err := decodeEntry(appendEntry(nil, &first), &second); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, second, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(frontier.Entry{})); d != "" {
			t.Fatal(d)
		}
	})
}

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
