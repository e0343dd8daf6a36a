package tui

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCleanMakesTextSafe(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		max  int
		want string
	}{
		"plain text is untouched":                 {"Oak table", 0, "Oak table"},
		"an escape sequence loses its escape":     {"\x1b[31mred\x1b[0m", 0, "\uFFFD[31mred\uFFFD[0m"},
		"an OSC title change loses its teeth":     {"\x1b]0;owned\x07", 0, "\uFFFD]0;owned\uFFFD"},
		"a C1 control is one, too":                {"a\u009b31mb", 0, "a\uFFFD31mb"},
		"line breaks and tabs become spaces":      {"a\r\nb\tc\u2028d", 0, "a  b c d"},
		"bidi overrides vanish":                   {"a\u202egpj.exe\u202c", 0, "agpj.exe"},
		"bidi isolates and marks vanish":          {"\u2066a\u2069\u200fb\u061c", 0, "ab"},
		"zero-width characters vanish":            {"a\u200bb\u200d\ufeffc\u00ad", 0, "abc"},
		"blank letters vanish":                    {"a\u3164b\u2800c\u115f", 0, "abc"},
		"variation selectors and tags vanish":     {"a\ufe0fb\U000e0041\U000e0100", 0, "ab"},
		"broken UTF-8 is marked":                  {"a\xffb", 0, "a\uFFFDb"},
		"private use has no known picture":        {"a\ue000b", 0, "a\uFFFDb"},
		"towers of marks are cut down":            {"e" + strings.Repeat("\u0301", 50) + "x", 0, "e" + strings.Repeat("\u0301", maxMarks) + "x"},
		"a mark without a base is dropped":        {"\u0301x", 0, "x"},
		"what fits is not cut":                    {"abcde", 5, "abcde"},
		"what does not fit ends in an ellipsis":   {"abcdef", 5, "abcd…"},
		"a wide character counts as two":          {"東京都", 5, "東京…"},
		"half of a wide character is never shown": {"東京都", 4, "東…"},
		"one column is the ellipsis alone":        {"abc", 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clean(c.in, c.max); got != c.want {
				t.Errorf("Clean(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
			}
		})
	}
}

func TestAURLIsCutInTheMiddle(t *testing.T) {
	got := cleanMiddle("https://shop.demo.test/a/very/long/way/down/to/the/page.html", 30)
	if cols(got) > 30 || !strings.HasPrefix(got, "https://shop") || !strings.HasSuffix(got, "page.html") || !strings.Contains(got, "…") {
		t.Errorf("got %q (%d columns)", got, cols(got))
	}
	if got := cleanMiddle("short", 30); got != "short" {
		t.Errorf("a short text was changed to %q", got)
	}
}

func TestTextIsWrappedAtSpaces(t *testing.T) {
	for _, c := range []struct {
		in          string
		width, rows int
		want        string
	}{
		{"one two three", 20, 3, "one two three"},
		{"one two three", 7, 3, "one two|three"},
		{"one two three", 8, 3, "one two|three"},
		{"aaaaaaaaaaaa", 5, 3, "aaaaa|aaaaa|aa"},
		{"one two three four", 5, 2, "one|two …"},
		{"東京都", 3, 3, "東|京|都"},
		{"東京", 1, 3, "…"},
	} {
		if got := strings.Join(wrapText(c.in, c.width, c.rows), "|"); got != c.want {
			t.Errorf("wrapText(%q, %d, %d) = %q, want %q", c.in, c.width, c.rows, got, c.want)
		}
	}
}

// checkSafe fails if a terminal could be driven or deceived by s.
func checkSafe(t *testing.T, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("%s is not UTF-8: %q", what, s)
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r) || invisible(r) {
			t.Fatalf("%s contains %U: %q", what, r, s)
		}
	}
}

func FuzzCleanedTextNeverDrivesATerminal(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[2J", "\u202eabc", "東京\ufe0f", "e\u0301\u0301", "\x9b31m", "a\xc2", "\U0001F468\u200d\U0001F469", "\U0001F1E9\U0001F1EA"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		max %= 300
		got := Clean(s, max)
		checkSafe(t, "the text", got)
		if max > 0 && cols(got) > max {
			t.Fatalf("%d columns, at most %d allowed: %q", cols(got), max, got)
		}
		if again := Clean(got, max); again != got {
			t.Fatalf("cleaning twice changes %q to %q", got, again)
		}
		middle := cleanMiddle(s, max)
		checkSafe(t, "the cut text", middle)
		if max > 0 && cols(middle) > max {
			t.Fatalf("cut in the middle: %d columns, at most %d allowed: %q", cols(middle), max, middle)
		}
		if max > 0 {
			for _, row := range wrapText(s, max, 3) {
				if cols(row) > max {
					t.Fatalf("a wrapped row of %d columns, at most %d allowed: %q", cols(row), max, row)
				}
			}
		}
		if a := toASCII(got); !plainASCII(a) || len(a) != cols(got) {
			t.Fatalf("ASCII of %q is %q, %d columns became %d", got, a, cols(got), len(a))
		}
	})
}

func BenchmarkCleanASCII(b *testing.B) {
	s := "https://shop.demo.test/c/chairs?page=12&sort=price"
	for b.Loop() {
		Clean(s, 80)
	}
}

func BenchmarkCleanMixed(b *testing.B) {
	s := "東京 – Möbel \x1b[31m und mehr, für alle, die gern sitzen"
	for b.Loop() {
		Clean(s, 30)
	}
}
