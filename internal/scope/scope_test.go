package scope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func url(t testing.TB, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return u
}

func rules(t testing.TB, o Options, seeds ...string) *Rules {
	t.Helper()
	for _, s := range seeds {
		o.Seeds = append(o.Seeds, url(t, s))
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check holds verdicts against a table of URL to rule; OK verdicts begin
// with "+".
func check(t *testing.T, r *Rules, o outcome.Outcome, want map[string]string) {
	t.Helper()
	for raw, rule := range want {
		v := r.Judge(url(t, raw), 1)
		good, isGood := strings.CutPrefix(rule, "+")
		if v.OK != isGood || v.Rule != good || !v.OK && v.Outcome != o || v.OK && v.Outcome != outcome.Pending {
			t.Errorf("%s: %+v; want %q", raw, v, rule)
		}
	}
}

func TestDomainScopeAdmitsAllHostsOfTheSeedsDomains(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1}, "https://www.example.co.uk/", "http://127.0.0.1:8080/", "http://localhost:9/", "https://user.github.io/")
	outside := "outside domain example.co.uk, 127.0.0.1, localhost and 1 more"
	check(t, r, outcome.Scope, map[string]string{
		"http://example.co.uk:8080/x":   "+inside domain example.co.uk",
		"https://a.b.example.co.uk/":    "+inside domain example.co.uk",
		"http://127.0.0.1/":             "+inside domain 127.0.0.1",
		"https://127.0.0.1:99/":         "+inside domain 127.0.0.1",
		"http://localhost:1234/":        "+inside domain localhost",
		"https://user.github.io/x":      "+inside domain user.github.io",
		"https://other.github.io/":      outside,
		"https://github.io/":            outside,
		"http://notexample.co.uk/":      outside,
		"http://example.co.uk.evil.io/": outside,
		"http://127.0.0.2/":             outside,
		"http://co.uk/":                 outside,
	})
}

func TestASeedOnAPublicSuffixDoesNotAdmitItsTenants(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1}, "https://github.io/")
	check(t, r, outcome.Scope, map[string]string{
		"https://github.io/x":      "+inside domain github.io",
		"https://user.github.io/x": "outside domain github.io",
	})
}

func TestManyHostsDoNotBorrowEachOthersVerdicts(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1}, "https://example.com/")
	for range 2 {
		for i := range 1000 {
			if v := r.Judge(url(t, fmt.Sprintf("http://h%d.example.com/", i)), 1); !v.OK {
				t.Fatalf("host %d inside: %+v", i, v)
			}
			if v := r.Judge(url(t, fmt.Sprintf("http://h%d.example.org/", i)), 1); v.OK {
				t.Fatalf("host %d outside: %+v", i, v)
			}
		}
	}
}

func TestHostScopeAdmitsTheSeedsHostsWithTheirPorts(t *testing.T) {
	r := rules(t, Options{Mode: Host, MaxDepth: -1}, "https://www.example.com/", "http://a.example.com:8080/")
	outside := "outside host www.example.com, a.example.com:8080"
	check(t, r, outcome.Scope, map[string]string{
		"http://www.example.com/":        "+inside host www.example.com",
		"http://a.example.com:8080/x":    "+inside host a.example.com:8080",
		"http://a.example.com/":          outside,
		"https://example.com/":           outside,
		"https://www.example.com:8443/x": outside,
	})
}

func TestScopeAnyAdmitsEverything(t *testing.T) {
	r := rules(t, Options{Mode: Any, MaxDepth: -1})
	check(t, r, outcome.Scope, map[string]string{"http://x.example/": "+scope any"})
}

func TestDepthIsCountedFromTheSeeds(t *testing.T) {
	r := rules(t, Options{MaxDepth: 3}, "http://example.com/")
	if v := r.Judge(url(t, "http://example.com/x"), 3); !v.OK {
		t.Errorf("%+v", v)
	}
	if v := r.Judge(url(t, "http://example.com/x"), 4); v.OK || v.Rule != "depth 4 > 3" || v.Outcome != outcome.Scope {
		t.Errorf("%+v", v)
	}
	if v := rules(t, Options{MaxDepth: -1}, "http://example.com/").Judge(url(t, "http://example.com/x"), 60000); !v.OK {
		t.Errorf("%+v", v)
	}
}

func TestALongURLIsOutOfScope(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1, MaxURLLength: 30}, "http://example.com/")
	check(t, r, outcome.Scope, map[string]string{
		"http://example.com/12345678901":  "+inside domain example.com",
		"http://example.com/123456789012": "URL of 31 bytes > 30",
	})
}

func TestPatternsFollowTheirDocumentedSyntax(t *testing.T) {
	const u = "https://www.example.com/docs/Guide/intro.html?lang=en&v=1.2"
	for p, want := range map[string]bool{
		"/docs/":                                 true,
		"/docs/Guide/intro.html?lang=en":         true,
		"/Docs/":                                 false,
		"/Guide/":                                false,
		"Guide":                                  true,
		"www.example.com":                        true,
		"guide":                                  false,
		"lang=en":                                true,
		"/docs/*":                                true,
		"/docs/*.html":                           false,
		"/docs/*.html*":                          true,
		"*.html?*":                               true,
		"/*/intro.html*v=1.2":                    true,
		"https://www.example.com/*":              true,
		"http://www.example.com/*":               false,
		"www.example.com/*":                      false,
		"*www.example.com/*":                     true,
		"/docs/*/*/intro*":                       false,
		"/docs/Guide/*Guide/*":                   false,
		"/docs/Guide/intro.html?lang=en&v=1*1.2": false, // the ends overlap
		`re:^https://[a-z.]+/docs/`:              true,
		`re:v=\d+\.\d+$`:                         true,
		`re:/guide/`:                             false,
		`re:(?i)/guide/`:                         true,
	} {
		r := rules(t, Options{MaxDepth: -1, Exclude: []string{p}}, "http://example.com/")
		v := r.Judge(url(t, u), 1)
		if v.OK == want || want && (v.Rule != "excluded by pattern "+p || v.Outcome != outcome.Scope) {
			t.Errorf("exclude %s: %+v; want match %v", p, v, want)
		}
		r = rules(t, Options{MaxDepth: -1, Include: []string{p}}, "http://example.com/")
		v = r.Judge(url(t, u), 1)
		if v.OK != want || want && v.Rule != "included by pattern "+p || !want && v.Rule != "matches no include pattern" {
			t.Errorf("include %s: %+v; want match %v", p, v, want)
		}
	}
}

func TestAnExcludedURLIsOutWhateverIncludesIt(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1, Include: []string{"/a/"}, Exclude: []string{"/a/b"}}, "http://example.com/")
	check(t, r, outcome.Scope, map[string]string{
		"http://example.com/a/c": "+included by pattern /a/",
		"http://example.com/a/b": "excluded by pattern /a/b",
		"http://example.com/":    "+a seed",
		"http://example.com/d":   "matches no include pattern",
	})
}

func TestAMalformedSettingIsRefusedByName(t *testing.T) {
	seeds := []weburl.URL{url(t, "http://example.com/")}
	for want, o := range map[string]Options{
		`exclude pattern "re:(" `:                    {Seeds: seeds, Exclude: []string{"/ok", "re:("}},
		`include pattern ""`:                         {Seeds: seeds, Include: []string{""}},
		`include pattern "  " is empty`:              {Seeds: seeds, Include: []string{"  "}},
		`exclude pattern "**" matches everything`:    {Seeds: seeds, Exclude: []string{"**"}},
		`exclude pattern "re:x*" matches everything`: {Seeds: seeds, Exclude: []string{"re:x*"}},
		`exclude pattern "/a#b" can match nothing`:   {Seeds: seeds, Exclude: []string{"/a#b"}},
		`scope domain needs at least one seed`:       {},
		`scope host needs at least one seed`:         {Mode: Host},
		`scope mode 9 is unknown`:                    {Mode: 9},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := ParseMode("galaxy"); err == nil || !strings.Contains(err.Error(), `"galaxy"`) {
		t.Error(err)
	}
	for _, m := range []Mode{Host, Domain, Any} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
}

func TestAPathThatRepeatsItselfIsATrap(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1}, "http://example.com/")
	const in = "+inside domain example.com"
	check(t, r, outcome.Trap, map[string]string{
		"http://example.com/a/a/a/a":                     "path repeats /a",
		"http://example.com/x/a/b/a/b/a/b":               "path repeats /a/b",
		"http://example.com/x/a/b/a/b/a":                 in,
		"http://example.com/x/a/b/a/b/":                  in,
		"http://example.com/a/b/c/a/b/c/a/b/c/page.html": "path repeats /a/b/c",
		"http://example.com/a//////b":                    "path repeats /",
		"http://example.com/foo/a/foo/b/foo/c/foo":       "path has the segment foo 4 times",
		"http://example.com/a/1/1/1/1/b":                 in,
		"http://example.com/1/1/1/1/1/1/1/1/":            "path repeats /1",
		"http://example.com/ab/cd/ab/ef/ab/01/ab/x":      in,
		"http://example.com/2020/01/01/01/title":         in,
		"http://example.com/" + strings.Repeat("d/", 3):  in,
		"http://example.com" + deep(32):                  in,
		"http://example.com" + deep(33):                  "path deeper than 32 segments",
		"http://example.com/api/org/api/impl/api/x.html": in,
	})
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "/s%d", i)
	}
	return b.String()
}

func TestACalendarPageFarFromNowIsATrap(t *testing.T) {
	r := rules(t, Options{MaxDepth: -1, Now: now}, "http://example.com/")
	const in = "+inside domain example.com"
	late := func(m string) string { return "calendar page of " + m + ", after 2028-11" }
	check(t, r, outcome.Trap, map[string]string{
		"http://example.com/calendar/2028/11":         in,
		"http://example.com/calendar/2028/12":         late("2028-12"),
		"http://example.com/calendar/2028/12/":        late("2028-12"),
		"http://example.com/events/2031/5":            late("2031-05"),
		"http://example.com/2031/05/":                 late("2031-05"),
		"http://example.com/x/2031/05/17":             late("2031-05"),
		"http://example.com/x/2031-05-17.html":        late("2031-05"),
		"http://example.com/x/20310517":               late("2031-05"),
		"http://example.com/cal?date=2031-05-17":      late("2031-05"),
		"http://example.com/cal?view=m&month=2031-05": late("2031-05"),
		"http://example.com/cal?year=2031&month=5":    late("2031-01"),
		"http://example.com/calendar/1986/11":         in,
		"http://example.com/calendar/1986/10":         "calendar page of 1986-10, before 1986-11",
		"http://example.com/2031/05/a-title":          in,
		"http://example.com/t/topic-slug/2301/12":     in,
		"http://example.com/part/20319999":            in,
		"http://example.com/list?id=20310517":         in,
		"http://example.com/paper/1850-05-12/ed-1/":   in,
		"http://example.com/wiki/2050":                in,
		"http://example.com/calendar/2026/13":         in,
	})
	free := rules(t, Options{MaxDepth: -1}, "http://example.com/")
	check(t, free, outcome.Trap, map[string]string{"http://example.com/calendar/2299/12": in})
	wide := rules(t, Options{MaxDepth: -1, Now: now, YearsAhead: 10, YearsBack: -1}, "http://example.com/")
	check(t, wide, outcome.Trap, map[string]string{
		"http://example.com/calendar/2036/11": in,
		"http://example.com/calendar/2036/12": "calendar page of 2036-12, after 2036-11",
		"http://example.com/calendar/1700/12": in,
	})
}

func TestJudgingAURLThatBelongsDoesNotAllocate(t *testing.T) {
	r := typical(t)
	u := url(t, "https://www.example.com/docs/guide/reference/getting-started.html?lang=en&v=2")
	if n := testing.AllocsPerRun(200, func() {
		if !r.Judge(u, 3).OK {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	out := url(t, "https://elsewhere.example/")
	if n := testing.AllocsPerRun(200, func() { r.Judge(out, 3) }); n > 0 {
		t.Errorf("%v allocations for a URL outside", n)
	}
}

func TestAVerdictDoesNotDependOnWhatWasJudgedBefore(t *testing.T) {
	o := Options{MaxDepth: 5, Now: now, Exclude: []string{"/x*"}}
	shared := rules(t, o, "http://example.com/", "http://127.0.0.1/")
	rapid.Check(t, func(rt *rapid.T) {
		raw := rapid.StringMatching(`https?://([a-c]\.)?(example\.com|example\.co\.uk|127\.0\.0\.1|b\.io)(:80|:81)?(/[ax12]{0,3}){0,7}(\?d=20[0-9]{2}-0[1-9])?`).Draw(rt, "url")
		depth := rapid.IntRange(0, 7).Draw(rt, "depth")
		u, err := weburl.Parse(raw)
		if err != nil {
			return
		}
		fresh := rules(t, o, "http://example.com/", "http://127.0.0.1/")
		first := fresh.Judge(u, depth)
		if again, other := fresh.Judge(u, depth), shared.Judge(u, depth); again != first || other != first {
			rt.Fatalf("%s: %+v, %+v, %+v", u, first, again, other)
		}
		if first.Rule == "" || first.OK != (first.Outcome == outcome.Pending) {
			rt.Fatalf("%s: %+v", u, first)
		}
		if !strings.Contains(u.Domain(), "example.com") && u.Domain() != "127.0.0.1" && first.OK {
			rt.Fatalf("%s admitted", u)
		}
	})
}

func typical(t testing.TB) *Rules {
	return rules(t, Options{MaxDepth: 10, Now: now, Exclude: []string{"/admin/*", "print=1"}}, "https://www.example.com/")
}

func BenchmarkJudge(b *testing.B) {
	r := typical(b)
	for _, raw := range []string{
		"https://www.example.com/docs/guide/reference/getting-started.html?lang=en&v=2",
		"https://www.example.com/a",
		"https://elsewhere.example/",
	} {
		u := url(b, raw)
		b.Run(raw, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Judge(u, 3)
			}
		})
	}
}
