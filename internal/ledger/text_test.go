package ledger

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"a\x00b", "a\uFFFDb"},
		{"\xff\xfe", "\uFFFD"},
		{strings.Repeat("a", MaxText), strings.Repeat("a", MaxText)},
		{strings.Repeat("a", MaxText-1) + "é", strings.Repeat("a", MaxText-1)},
		{strings.Repeat("a", MaxText-2) + "é!", strings.Repeat("a", MaxText-2) + "é"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%.20q) = %.20q (%d bytes), want %.20q (%d bytes)", c.in, got, len(got), c.want, len(c.want))
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x00\xff\u202e" + strings.Repeat("é", MaxText))
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || len(got) > MaxText {
			t.Fatalf("not storable: %q", got)
		}
		if Text(got) != got {
			t.Fatal("a second time changes it")
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, got) {
			t.Fatal("a clean text was changed")
		}
	})
}

func TestLinksAreReadBackInTheirOrder(t *testing.T) {
	want := []uint64{5, 1<<64 - 1, 0, 5}
	blob := EncodeLinks([]byte("x"), want)[1:]
	if len(blob) != 32 {
		t.Errorf("%d bytes, want 32", len(blob))
	}
	if got := DecodeLinks([]uint64{9}, blob)[1:]; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := DecodeLinks(nil, blob[:31]); !slices.Equal(got, want[:3]) {
		t.Errorf("of a damaged blob %v", got)
	}
}
