package ledger

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintableTextCannotDriveATerminal(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"plain", 0, "plain"},
		{"plain", 5, "plain"},
		{"plain", 4, "pla…"},
		{"plain", 1, "…"},
		{"", 3, ""},
		{"a\x1b[31mred\x1b[0m", 0, "ared"},
		{"\x1b]0;owned\x07title", 0, "title"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", 0, "link"},
		{"\u009b31mred", 0, "red"},
		{"an unclosed \x1b]0;one keeps its text", 0, "an unclosed 0;one keeps its text"},
		{"ends in \x1b", 0, "ends in "},
		{"\x1b[", 0, ""},
		{"two\r\nlines\tand a tab", 0, "two  lines and a tab"},
		{"bell\x07 back\b del\x7f c1\u0085", 0, "bell back del c1 "},
		{"evil\u202egnp.exe", 0, "evilgnp.exe"},
		{"zero\u200bwidth\ufeff", 0, "zerowidth"},
		{"bad \xff byte", 0, "bad \uFFFD byte"},
		{"grün", 4, "grün"},
		{"grüne", 4, "grü…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
	} {
		if got := Printable(c.in, c.max); got != c.want {
			t.Errorf("Printable(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[31m\u202e\u009d0;x\x07日本e\u0301\xff", 7)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = min(max, 1<<16)
		got := Printable(s, max)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || hidden(r) || r == 0x2028 || r == 0x2029 {
				t.Fatalf("%q still has %U", got, r)
			}
		}
		if max > 0 && Cells(got) > max {
			t.Fatalf("%q is %d cells wide, not %d", got, Cells(got), max)
		}
		if Printable(got, max) != got {
			t.Fatal("a second time changes it")
		}
		if max <= 0 && plain(s) && got != s {
			t.Fatal("a plain text was changed")
		}
		if max <= 0 && strings.Contains(got, "…") && !strings.Contains(s, "…") {
			t.Fatal("cut without a bound")
		}
	})
}
