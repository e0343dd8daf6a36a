package frontier

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func genEntry(t *rapid.T) Entry {
	url := rapid.SampledFrom([]string{"https://a.example/", "https://a.example/b?c=d", "http://b.example/\xff", ""})
	e := Entry{
		Kind: Kind(rapid.Byte().Draw(t, "kind")), Via: Via(rapid.Byte().Draw(t, "via")),
		URL: url.Draw(t, "url"), Depth: rapid.Uint16().Draw(t, "depth"),
		Hops: rapid.Byte().Draw(t, "hops"), Tries: rapid.Byte().Draw(t, "tries"),
		TrustPrivate: rapid.Bool().Draw(t, "trust"), FoundOn: url.Draw(t, "found on"),
		Chain: rapid.SliceOfN(rapid.OneOf(url, rapid.String()), 0, 3).Draw(t, "chain"),
		Memo:  rapid.String().Draw(t, "memo"),
	}
	if rapid.Bool().Draw(t, "delayed") {
		e.NotBefore = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	}
	return e
}

func TestAnEntryIsDecodedAsItWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genEntry(t)
		got := Entry{FoundOn: "left over", Chain: []string{"left over"}, NotBefore: time.Unix(1, 1)}
		if err := DecodeEntry(AppendEntry(nil, &want), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Entry{})); d != "" {
			t.Fatalf("entry differs (-want +got):\n%s", d)
		}
	})
}

func TestADamagedEntryIsRefused(t *testing.T) {
	e := Entry{URL: "https://a.example/x", FoundOn: "https://a.example/", Chain: []string{"http://b.example/"}, NotBefore: time.Unix(9, 9)}
	good := AppendEntry(nil, &e)
	var out Entry
	for n := range good {
		if DecodeEntry(good[:n], &out) == nil {
			t.Errorf("the first %d of %d bytes were taken for an entry", n, len(good))
		}
	}
	if DecodeEntry(append(bytes.Clone(good), 0), &out) == nil {
		t.Error("a byte too many was not noticed")
	}
	future := bytes.Clone(good)
	future[0]++
	if DecodeEntry(future, &out) == nil {
		t.Error("an entry of an unknown version was taken")
	}
	flagged := bytes.Clone(good)
	flagged[1] |= 0x80
	if DecodeEntry(flagged, &out) == nil {
		t.Error("an entry with an unknown flag was taken")
	}
}

// What decodes must survive another round, whatever the bytes were.
func FuzzDecodeEntry(f *testing.F) {
	e := Entry{URL: "https://a.example/x", FoundOn: "https://a.example/", Chain: []string{"http://b.example/"}, NotBefore: time.Unix(9, 9)}
	f.Add(AppendEntry(nil, &e))
	f.Add([]byte{entryVersion, flagChain, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second Entry
		if DecodeEntry(b, &first) != nil {
			return
		}
		if err := DecodeEntry(AppendEntry(nil, &first), &second); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, second, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Entry{})); d != "" {
			t.Fatal(d)
		}
	})
}
