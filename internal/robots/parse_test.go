package robots

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// blockOf returns a file whose rule "Disallow: /last" ends exactly at size
// bytes, without a line end.
func blockOf(size int) string {
	const head, last = "User-agent: *\n", "\nDisallow: /last"
	return head + "#" + strings.Repeat("x", size-len(head)-len(last)-1) + last
}

func TestOnlyTheFirst500KiBAreReadAndOnlyWholeLines(t *testing.T) {
	tests := []struct {
		name      string
		body      string
		allowed   bool
		truncated bool
	}{
		{"a rule that ends at the limit counts", blockOf(MaxBytes), false, false},
		{"a rule that ends at the limit counts when more follows", blockOf(MaxBytes) + "\nDisallow: /z\n", false, true},
		{"with carriage returns as well", blockOf(MaxBytes) + "\rDisallow: /z\n", false, true},
		{"a rule that crosses the limit is dropped whole", blockOf(MaxBytes+1) + "\n", true, true},
		{"and is not read as a shorter rule", blockOf(MaxBytes+4) + "/deeper\n", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Parse([]byte(tt.body))
			if f.Truncated() != tt.truncated {
				t.Errorf("truncated %v, want %v", f.Truncated(), tt.truncated)
			}
			m := f.For("tiptoe", RFC9309)
			if got := m.Check("/last").Allowed; got != tt.allowed {
				t.Errorf("/last allowed %v, want %v", got, tt.allowed)
			}
			if !m.Check("/z").Allowed || !m.Check("/l").Allowed {
				t.Error("a line beyond the limit was read")
			}
		})
	}
	if f := Parse([]byte(strings.Repeat("x", MaxBytes*2))); !f.Truncated() {
		t.Error("one endless line was not truncated")
	}
}

func TestSitemapLinesAreFoundAnywhereAsWrittenAndOnce(t *testing.T) {
	f := Parse([]byte("Sitemap: https://a.example/one.xml\nUser-agent: x\nSITEMAP:https://a.example/Two.xml?a=b # two\n" +
		"Disallow: /\nsite-map: https://a.example/three.xml\nSitemap: https://a.example/one.xml\nSitemap:\nSitemap: /relative.xml\n"))
	want := []string{"https://a.example/one.xml", "https://a.example/Two.xml?a=b", "https://a.example/three.xml", "/relative.xml"}
	if got := f.Sitemaps(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCrawlDelayIsReadInDecimalSeconds(t *testing.T) {
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"10", 10 * time.Second, true},
		{"0", 0, true},
		{"0.5", 500 * time.Millisecond, true},
		{".25", 250 * time.Millisecond, true},
		{"2.", 2 * time.Second, true},
		{"1.5", 1500 * time.Millisecond, true},
		{"0.0000000019", time.Nanosecond, true},
		{"00012", 12 * time.Second, true},
		{"3600", time.Hour, true},
		{"99999999999999999999999999", maxDelay, true},
		{"31536000.9", maxDelay, true},
		{"", 0, false},
		{".", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"10s", 0, false},
		{"1,5", 0, false},
		{"1.2.3", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"ten", 0, false},
		{"٣", 0, false},
		{"1 0", 0, false},
	}
	for _, tt := range tests {
		if got, ok := parseDelay(tt.value); got != tt.want || ok != tt.ok {
			t.Errorf("parseDelay(%q) = %v, %v, want %v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestCrawlDelayBelongsToTheAgentsAboveIt(t *testing.T) {
	tests := []struct {
		name, robots, agent string
		want                time.Duration
		line                int
	}{
		{"of the agent's own group", "User-agent: a\nCrawl-delay: 5\nDisallow: /x\n", "a", 5 * time.Second, 2},
		{"behind the rules", "User-agent: a\nDisallow: /x\nCrawl-delay: 5\n", "a", 5 * time.Second, 3},
		{"of star for everybody else", "User-agent: *\nCrawl-delay: 5\n", "a", 5 * time.Second, 2},
		{"of star not for a named agent", "User-agent: *\nCrawl-delay: 5\nDisallow: /\nUser-agent: a\nDisallow: /x\n", "a", 0, 0},
		{"of another agent not", "User-agent: b\nCrawl-delay: 5\n", "a", 0, 0},
		{"of all agents listed above it, the first", "User-agent: a\nUser-agent: b\nCrawl-delay: 5\n", "a", 5 * time.Second, 3},
		{"of all agents listed above it, the second", "User-agent: a\nUser-agent: b\nCrawl-delay: 5\n", "b", 5 * time.Second, 3},
		{"not of agents listed below it", "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\n", "b", 0, 0},
		{"of each its own, the first", "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nCrawl-delay: 7\nDisallow: /x\n", "a", 5 * time.Second, 2},
		{"of each its own, the second", "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nCrawl-delay: 7\nDisallow: /x\n", "b", 7 * time.Second, 4},
		{"the longest of several", "User-agent: a\nCrawl-delay: 5\nCrawl-delay: 9\nCrawl-delay: 2\n", "a", 9 * time.Second, 3},
		{"the longest over merged groups", "User-agent: a\nCrawl-delay: 9\nDisallow: /x\nUser-agent: a\nCrawl-delay: 2\n", "a", 9 * time.Second, 2},
		{"garbage is ignored", "User-agent: a\nCrawl-delay: soon\nCrawl-delay: -3\n", "a", 0, 0},
		{"zero is an answer", "User-agent: a\nCrawl-delay: 0\n", "a", 0, 2},
		{"before any agent it is nobody's", "Crawl-delay: 5\nUser-agent: a\nDisallow: /x\n", "a", 0, 0},
		{"a new group does not inherit it", "User-agent: b\nDisallow: /\nCrawl-delay: 5\nUser-agent: a\nDisallow: /x\n", "a", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, line := Parse([]byte(tt.robots)).For(tt.agent, RFC9309).CrawlDelay()
			if d != tt.want || line != tt.line {
				t.Errorf("got %v from line %d, want %v from line %d", d, line, tt.want, tt.line)
			}
		})
	}
}
