package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// worst fills a file to the limit with one rule over and over.
func worst(rule func(i int) string) []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := 0; ; i++ {
		r := rule(i)
		if b.Len()+len(r)+1 > MaxBytes {
			return []byte(b.String())
		}
		b.WriteString(r)
		b.WriteByte('\n')
	}
}

var worstFiles = map[string][]byte{
	"one rule of nothing but wildcards":    worst(func(i int) string { return "Disallow: /" + strings.Repeat("*a", MaxBytes/2-20) }),
	"long rules of nothing but wildcards":  worst(func(i int) string { return "Disallow: /" + strings.Repeat("*a", 500) + "b" }),
	"short rules with a wildcard each":     worst(func(i int) string { return "Disallow: /*aab" }),
	"short rules that end in vain":         worst(func(i int) string { return "Disallow: /*aa*a$" }),
	"rules with a query":                   worst(func(i int) string { return "Disallow: /*?*[a]" }),
	"rules that are prefixes of the next":  worst(func(i int) string { return "Disallow: /" + strings.Repeat("a", i%900) + "*b" }),
	"different plain rules":                worst(func(i int) string { return fmt.Sprintf("Disallow: /a%d", i) }),
	"nothing but agents":                   worst(func(i int) string { return fmt.Sprintf("User-agent: a%d", i) }),
	"agents and delays":                    worst(func(i int) string { return []string{"User-agent: *", "Crawl-delay: 1"}[min(1, i/20000)] }),
	"nothing but sitemaps":                 worst(func(i int) string { return fmt.Sprintf("Sitemap: %d", i) }),
	"groups of star":                       worst(func(i int) string { return "User-agent: *\nDisallow: /*z" }),
	"escapes":                              worst(func(i int) string { return "Disallow: /" + strings.Repeat("%2a*", 40) + "b" }),
	"one endless line":                     []byte("User-agent: *\nDisallow: /" + strings.Repeat("a", MaxBytes*2)),
	"line ends":                            worst(func(i int) string { return "" }),
	"patterns of one octet and a wildcard": worst(func(i int) string { return "Disallow: /*" + string(rune('b'+i%20)) }),
}

// TestNoFileMakesACheckExpensive is about a site that owns both the file and
// the links. The time allowed is a hundred times what is needed on a slow
// core, and a thousandth of what backtracking would take.
func TestNoFileMakesACheckExpensive(t *testing.T) {
	paths := []string{"/" + strings.Repeat("a", 8<<10), "/" + strings.Repeat("a", 8<<10) + "?" + strings.Repeat("%5b", 2000), "/a", "/" + strings.Repeat("ab", 4<<10)}
	for name, body := range worstFiles {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			m := Parse(body).For("tiptoe", Open)
			for _, p := range paths {
				m.Check(p)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestTheWorkOfOneRuleIsOnePassOverThePath(t *testing.T) {
	path := []byte(strings.Repeat("a", 8<<10))
	for _, pattern := range []string{strings.Repeat("*a", 4000) + "*b", strings.Repeat("*aa", 4000), "*a*a*a*a*a*a*b$", "*aaaaaaaaaaaaaaaaaaab"} {
		r := compileRule(line{value: "/" + pattern})
		if _, work := r.match(path); work > len(path)+1 {
			t.Errorf("%.20s…: looked at %d octets of %d", pattern, work, len(path))
		}
	}
}

func TestRulesTooCostlyToReadDisallow(t *testing.T) {
	m := Parse(worstFiles["short rules with a wildcard each"]).For("tiptoe", RFC9309)
	long := "/" + strings.Repeat("aab", 40) + strings.Repeat("a", 8<<10)
	if d := m.Check(long); d.Allowed || d.Line != 2 {
		t.Errorf("a rule that matches at once must decide, got %+v", d)
	}
	m = Parse(worst(func(i int) string { return "Disallow: /*aa*aab" })).For("tiptoe", RFC9309)
	if d := m.Check("/" + strings.Repeat("aab ", 2<<10)); d.Line != 2 {
		t.Errorf("got %+v, want the first rule", d)
	}
	m = Parse(worst(func(i int) string { return "Disallow: /*aab*baab*aac" })).For("tiptoe", RFC9309)
	if d := m.Check("/aacaac" + strings.Repeat("aab", 3<<10)); d.Allowed || !d.TooCostly || d.Line != 0 {
		t.Errorf("got %+v, want too costly", d)
	}
	if d := m.Check("/aab"); !d.Allowed || d.TooCostly {
		t.Errorf("a short path against the same file: got %+v", d)
	}
}

func TestAHundredOctetsAgainstTheLargestFileAreNotTooCostly(t *testing.T) {
	for name, body := range worstFiles {
		if d := Parse(body).For("tiptoe", RFC9309).Check("/" + strings.Repeat("a", 99)); d.TooCostly {
			t.Errorf("%s: too costly", name)
		}
	}
}

// shopFile is what large shops publish: folders, parameters with wildcards,
// exceptions, file types.
func shopFile() []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\nCrawl-delay: 1\n")
	for i := range 200 {
		fmt.Fprintf(&b, "Disallow: /section%d/private/\n", i)
	}
	for i := range 100 {
		fmt.Fprintf(&b, "Disallow: /*?*param%d=\n", i)
	}
	for i := range 60 {
		fmt.Fprintf(&b, "Allow: /section%d/private/open%d\n", i, i)
	}
	for i := range 40 {
		fmt.Fprintf(&b, "Disallow: /*.ext%d$\n", i)
	}
	return []byte(b.String())
}

var shopPaths = []string{
	"/", "/section7/private/x.html", "/section59/private/open59/a", "/products/shoes/running-shoes-for-winter-4711.html",
	"/products/list?page=3&sort=price&order=asc&param42=x", "/a/very/long/path/with/many/segments/and/no/rule/that/matches/it/index.html",
	"/download/file.ext39", "/caf%C3%A9/men%C3%BC?q=%7Etilde",
}

func TestCheckDoesNotAllocate(t *testing.T) {
	m := Parse(shopFile()).For("tiptoe", RFC9309)
	for _, p := range append(shopPaths, "/?"+strings.Repeat("%5b", pathBuffer/3-1)) {
		if n := testing.AllocsPerRun(100, func() { m.Check(p) }); n != 0 {
			t.Errorf("%.40s: %v allocations", p, n)
		}
	}
}

func BenchmarkCheck400Rules(b *testing.B) {
	m := Parse(shopFile()).For("tiptoe", RFC9309)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.Check(shopPaths[i&7])
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checks/s")
}

func BenchmarkCheck400WildcardRules(b *testing.B) {
	var f strings.Builder
	f.WriteString("User-agent: *\n")
	for i := range 400 {
		fmt.Fprintf(&f, "Disallow: /*%c%cparam%d=\n", "?&;"[i%3], 'a'+i%26, i)
	}
	m := Parse([]byte(f.String())).For("tiptoe", RFC9309)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.Check(shopPaths[i&7])
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checks/s")
}

func BenchmarkCheckWorst(b *testing.B) {
	path := "/" + strings.Repeat("a", 8<<10)
	for name, body := range worstFiles {
		m := Parse(body).For("tiptoe", RFC9309)
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				m.Check(path)
			}
		})
	}
}

func BenchmarkCheckTooCostly(b *testing.B) {
	m := Parse(worst(func(i int) string { return "Disallow: /*aab*baab*aac" })).For("tiptoe", RFC9309)
	path := "/aacaac" + strings.Repeat("aab", 3<<10)
	for b.Loop() {
		m.Check(path)
	}
}

func BenchmarkParseAndCompile(b *testing.B) {
	for name, body := range map[string][]byte{"shop": shopFile(), "worst": worstFiles["short rules with a wildcard each"]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(body).For("tiptoe", RFC9309)
			}
		})
	}
}
