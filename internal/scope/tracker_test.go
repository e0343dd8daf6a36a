package scope

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// site crawls n URLs of a made-up site in order, as a crawl would: rules,
// tracker, fetch, yield. It returns how many were admitted.
func site(t testing.TB, tr *Tracker, n int, page func(i int) (raw string, y Yield)) (admitted int) {
	t.Helper()
	r := rules(t, Options{MaxDepth: -1, Now: now}, "http://example.com/")
	for i := range n {
		raw, y := page(i)
		u := url(t, raw)
		if !r.Judge(u, 3).OK || !tr.Admit(u).OK || !tr.Check(u).OK {
			continue
		}
		admitted++
		tr.Observe(u, y)
	}
	return admitted
}

var unique = Yield{NewContent: true}

func TestALegitimateSiteIsAdmittedWhole(t *testing.T) {
	for name, page := range map[string]func(i int) string{
		"a documentation tree": func(i int) string { return fmt.Sprintf("/doc/%s/%s/page-%d.html", word(i/900), word(i/30), i%30) },
		"one flat directory":   func(i int) string { return "/doc/" + word(i) },
		"articles under dates": func(i int) string { return fmt.Sprintf("/%d/%02d/%02d/%s", 2000+i%26, 1+i%12, 1+i%28, word(i)) },
		"a query id":           func(i int) string { return fmt.Sprintf("/index.php?id=%d", i) },
		"a content system with five keys": func(i int) string {
			return fmt.Sprintf("/index.php?option=com_content&view=article&id=%d:%s&catid=%d&Itemid=%d", i, word(i), i%50, i%7)
		},
		"a forum":                   func(i int) string { return fmt.Sprintf("/viewtopic.php?f=%d&t=%d&start=%d", i%9, i/50, i%50*15) },
		"revisions with hash names": func(i int) string { return fmt.Sprintf("/git/commit/%040x", i*7919+1<<40) },
	} {
		tr, n := NewTracker(), 3000
		if name == "a documentation tree" {
			n = 30_000
		}
		if got := site(t, tr, n, func(i int) (string, Yield) { return "http://example.com" + page(i), unique }); got != n {
			t.Errorf("%s: %d of %d admitted; %v", name, got, n, tr.Quarantined())
		}
	}
	tr := NewTracker()
	if got := site(t, tr, 2000, func(i int) (string, Yield) { return fmt.Sprintf("http://example.com/page/%d", i+1), unique }); got != 2000 {
		t.Errorf("numeric pages: %d of 2000 admitted; %v", got, tr.Quarantined())
	}
}

// word makes a different word of each number.
func word(i int) string {
	var b strings.Builder
	b.WriteString("w")
	for ; i > 0; i /= 20 {
		b.WriteByte("bcdfghjklmnpqrstvwxz"[i%20])
		b.WriteByte('a')
	}
	return b.String()
}

func TestTrapsAreCutOffQuickly(t *testing.T) {
	colours := []string{"red", "green", "blue", "black", "white", "pink", "teal"}
	for _, c := range []struct {
		name  string
		limit int
		yield Yield
		page  func(i int) string
	}{
		{"a calendar by month, onwards", 30, unique, func(i int) string { return fmt.Sprintf("/calendar/%d/%02d", 2026+(10+i)/12, (10+i)%12+1) }},
		{"a calendar by day", 200, unique, func(i int) string { return "/events?day=" + now.AddDate(0, 0, -i).Format("2006-01-02") }},
		{"an archive by day", 1500, unique, func(i int) string { return "/" + now.AddDate(0, 0, -i).Format("2006/01/02") + "/" }},
		{"facets in words", 257, unique, func(i int) string {
			return fmt.Sprintf("/shop?colour=%s&size=%d&sort=%s&brand=%s&page=%d", colours[i%7], i/7%9, colours[i/63%4], colours[i/252%7], i/1764)
		}},
		{"facets that come and go", 270, unique, func(i int) string {
			var q []string
			for bit := range 12 {
				if (i+5)>>bit&1 == 1 {
					q = append(q, fmt.Sprintf("f%c=on", 'a'+bit))
				}
			}
			return "/list?" + strings.Join(q, "&")
		}},
		{"a session id in the query", 1, unique, func(i int) string { return fmt.Sprintf("/a?PHPSESSID=%032x", i) }},
		{"a session id in the path", 1, unique, func(i int) string { return fmt.Sprintf("/a;jsessionid=%032X?x=1", i) }},
		{"a session segment", 1, unique, func(i int) string { return fmt.Sprintf("/(S(%024x))/a", i) }},
		{"pages that are all the same", 24, Yield{NewLinks: 1}, func(i int) string { return fmt.Sprintf("/more?page=%d", i) }},
		{"a tree of random words, all the same", 256, Yield{NewLinks: 3}, func(i int) string { return "/maze/" + word(i) + "/" + word(i*31) }},
	} {
		tr := NewTracker()
		got := site(t, tr, 2500, func(i int) (string, Yield) { return "http://example.com" + c.page(i), c.yield })
		if got > c.limit || got == 0 {
			t.Errorf("%s: %d of 2500 admitted; want at most %d", c.name, got, c.limit)
		}
	}
}

func TestTheSameURLWithAnotherSessionIsAdmittedOnce(t *testing.T) {
	tr := NewTracker()
	for _, c := range []struct {
		raw string
		ok  bool
	}{
		{"http://example.com/a?sid=0123456789abcdef0123", true},
		{"http://example.com/a?sid=fedcba98765432100123", false},
		{"http://example.com/a?x=1&sid=fedcba98765432100123", true},
		{"http://example.com/b?sid=fedcba98765432100123", true},
		{"http://example.com/a?sid=4711", true}, // a story
		{"http://example.com/a?sid=4712", true},
		{"http://example.com/a;v=1;jsessionid=A1B2/b", true},
		{"http://example.com/a;v=1;jsessionid=C3D4/b", false},
		{"http://example.com/a;v=2;jsessionid=C3D4/b", true},
		{"http://other.example/a;v=2;jsessionid=C3D4/b", true},
	} {
		v := tr.Admit(url(t, c.raw))
		if v.OK != c.ok || !v.OK && (v.Outcome != outcome.Trap || v.Rule != "known already with another session id") {
			t.Errorf("%s: %+v", c.raw, v)
		}
	}
}

func TestAQuarantinedPatternIsListedWithItsReasonAndCanBeReleased(t *testing.T) {
	tr := NewTracker()
	page := func(i int) (string, Yield) { return fmt.Sprintf("http://example.com/more?page=%d", i), Yield{} }
	site(t, tr, 100, page)
	want := []Quarantine{{"example.com/more?page", "24 of its last 24 pages were duplicates", 76}}
	if diff := cmp.Diff(want, tr.Quarantined()); diff != "" {
		t.Fatal(diff)
	}
	u := url(t, "http://example.com/more?page=5000")
	if v := tr.Check(u); v.OK || v.Outcome != outcome.Trap || v.Rule != "pattern example.com/more?page in quarantine: 24 of its last 24 pages were duplicates" {
		t.Errorf("%+v", v)
	}
	if PatternOf(u) != want[0].Pattern {
		t.Errorf("pattern of %s is %s", u, PatternOf(u))
	}
	if tr.Release("example.com/other") {
		t.Error("released what was not in quarantine")
	}
	if !tr.Release(want[0].Pattern) || tr.Release(want[0].Pattern) || len(tr.Quarantined()) != 0 {
		t.Error("not released once")
	}
	if got := site(t, tr, 1000, page); got != 1000 {
		t.Errorf("%d of 1000 admitted after the release", got)
	}
}

func TestReleasedFacetsAndCalendarsStayReleased(t *testing.T) {
	tr := NewTracker()
	page := func(i int) (string, Yield) {
		return fmt.Sprintf("http://example.com/shop?a=x%d&b=y%d&c=z%d&d=w%d", i%5, i/5%5, i/25%5, i/125), unique
	}
	site(t, tr, 625, page)
	if q := tr.Quarantined(); len(q) != 1 || q[0].Pattern != "example.com/shop?**" || q[0].Reason != "257 combinations of 4 query parameters" {
		t.Fatalf("%v", q)
	}
	tr.Release("example.com/shop?**")
	if got := site(t, tr, 625, page); got != 625 {
		t.Errorf("%d of 625 admitted after the release", got)
	}
	cal := func(i int) (string, Yield) {
		return "http://example.com/events?day=" + now.AddDate(0, 0, -i).Format("2006-01-02"), unique
	}
	site(t, tr, 300, cal)
	if !tr.Release("example.com/events?day") {
		t.Fatalf("%v", tr.Quarantined())
	}
	if got := site(t, tr, 300, cal); got != 300 {
		t.Errorf("%d of 300 admitted after the release", got)
	}
}

func TestAFewDuplicatesAmongGoodPagesDoNoHarm(t *testing.T) {
	tr := NewTracker()
	got := site(t, tr, 5000, func(i int) (string, Yield) {
		return fmt.Sprintf("http://example.com/shop/item-%d", i), Yield{NewContent: i%2 == 0, NewLinks: 1}
	})
	if got != 5000 {
		t.Errorf("%d of 5000 admitted: %v", got, tr.Quarantined())
	}
	// Without a single new link, as many duplicates are too many.
	got = site(t, NewTracker(), 5000, func(i int) (string, Yield) {
		return fmt.Sprintf("http://example.com/shop/item-%d", i), Yield{NewContent: i%2 == 0}
	})
	if got != 48 {
		t.Errorf("%d admitted; want 48", got)
	}
}

func TestALongGoodPastDoesNotExcuseAPatternForEver(t *testing.T) {
	got := site(t, NewTracker(), 5000, func(i int) (string, Yield) {
		return fmt.Sprintf("http://example.com/more?page=%d", i), Yield{NewContent: i < 2000, NewLinks: 1}
	})
	if got < 2000 || got > 2300 {
		t.Errorf("%d admitted; want the 2000 good ones and at most 300 more", got)
	}
}

func TestAReleasedPatternIsFreeInsideAQuarantinedTree(t *testing.T) {
	tr := NewTracker()
	for i := range 100 {
		tr.Observe(url(t, fmt.Sprintf("http://example.com/maze/more-%d", i)), Yield{})
	}
	for i := range 400 {
		tr.Observe(url(t, "http://example.com/maze/"+word(i)), Yield{})
	}
	if q := tr.Quarantined(); len(q) != 2 || q[0].Pattern != "example.com/maze/**" {
		t.Fatalf("%v", q)
	}
	tr.Release("example.com/maze/more-#")
	if v := tr.Check(url(t, "http://example.com/maze/more-7")); !v.OK {
		t.Errorf("%+v", v)
	}
	if v := tr.Check(url(t, "http://example.com/maze/other")); v.OK {
		t.Errorf("%+v", v)
	}
}

func TestPatternsKeepWordsAndDropNumbers(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/":                                     "example.com/",
		"https://example.com:81/a/12/b3c45":                       "example.com:81/a/#/b#c#",
		"http://example.com/x?b=2&a=1&a=3":                        "example.com/x?a&b",
		"http://example.com/x?f1=2&f2=1":                          "example.com/x?f#&f#",
		"http://example.com/c/9f86d081884c7d659a2f/":              "example.com/c/~/",
		"http://example.com/x;jsessionid=1?PHPSESSID=22":          "example.com/x",
		"http://example.com/" + strings.Repeat("x", 2*maxPattern): "example.com/" + strings.Repeat("x", maxPattern-len("example.com/")) + "*",
	} {
		if got := PatternOf(url(t, raw)); got != want {
			t.Errorf("%s: %s; want %s", raw, got, want)
		}
	}
}

// mixed draws URLs of a site with a bit of everything.
func mixed(i int) (string, Yield) {
	raw := []string{
		"/doc/" + word(i), fmt.Sprintf("/more?page=%d", i), fmt.Sprintf("/a?PHPSESSID=%032x", i%50),
		fmt.Sprintf("/shop?a=x%d&b=y%d&c=z%d&d=w%d", i%5, i/5%5, i/25%5, i/125%5), "/calendar/2026/0" + fmt.Sprint(1+i%9), "/maze/" + word(i) + "/x",
	}[i*7%6]
	return "http://example.com" + raw, Yield{NewContent: i%11 == 0 || strings.HasPrefix(raw, "/doc"), NewLinks: i % 3}
}

func TestATrackerReadBackGoesOnAsIfItHadNeverStopped(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, m := rapid.IntRange(0, 400).Draw(rt, "before"), rapid.IntRange(0, 200).Draw(rt, "after")
		whole := NewTracker()
		site(t, whole, n, mixed)
		raw, err := json.Marshal(whole)
		if err != nil {
			rt.Fatal(err)
		}
		var read Tracker
		if err := json.Unmarshal(raw, &read); err != nil {
			rt.Fatal(err)
		}
		later := func(i int) (string, Yield) { return mixed(i + n) }
		a, b := site(t, whole, m, later), site(t, &read, m, later)
		ra, _ := json.Marshal(whole)
		rb, _ := json.Marshal(&read)
		if a != b || string(ra) != string(rb) {
			rt.Fatalf("admitted %d and %d", a, b)
		}
	})
}

func TestADamagedTrackerIsRefused(t *testing.T) {
	for _, raw := range []string{
		`{"patterns":[{"pattern":""}]}`, `{"patterns":[{"pattern":"a"},{"pattern":"a"}]}`, `{"patterns":[{"pattern":"a","pages":-1}]}`,
		`{"facets":[{"path":""}]}`, `[]`,
	} {
		if err := json.Unmarshal([]byte(raw), NewTracker()); err == nil {
			t.Errorf("%s was read", raw)
		}
	}
}

func TestMemoryIsBoundedAndQuarantineIsNotForgotten(t *testing.T) {
	small := bounds{patterns: 100, pinned: 10, facetPaths: 20, sessions: 30}
	tr := newTracker(small)
	for i := range 30 {
		tr.Observe(url(t, fmt.Sprintf("http://example.com/more?page=%d", i)), Yield{})
	}
	for i := range 500 {
		if !tr.Admit(url(t, "http://example.com/doc/"+word(i))).OK {
			t.Fatal("refused")
		}
	}
	for i := range 500 {
		tr.Admit(url(t, "http://example.com/shop/"+word(i)+"?a=x&b=y"))
	}
	for i := range 50 {
		v := tr.Admit(url(t, fmt.Sprintf("http://example.com/s%d?PHPSESSID=1", i)))
		if v.OK != (i < 30) || !v.OK && v.Rule != "more than 30 URLs with session ids" {
			t.Fatalf("session %d: %+v", i, v)
		}
	}
	if n := len(tr.patterns.index); n != small.patterns {
		t.Errorf("%d patterns", n)
	}
	if n := len(tr.facets.index); n != small.facetPaths {
		t.Errorf("%d facet paths", n)
	}
	if v := tr.Check(url(t, "http://example.com/more?page=99")); v.OK {
		t.Error("the quarantine was forgotten")
	}
	if v := tr.Admit(url(t, "http://example.com/doc/"+word(3))); !v.OK {
		t.Errorf("%+v", v)
	}
	// The bounds hold for what is read back, too.
	big := NewTracker()
	for i := range 300 {
		big.Admit(url(t, "http://example.com/"+word(i)+"?a=x&b=y&PHPSESSID=1"))
	}
	raw, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, tr); err != nil {
		t.Fatal(err)
	}
	if p, f, s := len(tr.patterns.index), len(tr.facets.index), len(tr.sessions); p != small.patterns || f != small.facetPaths || s != small.sessions {
		t.Errorf("%d patterns, %d facet paths and %d sessions read back", p, f, s)
	}
}

func TestThePatternUsedLastIsForgottenLast(t *testing.T) {
	tr := newTracker(bounds{patterns: 10, pinned: 5, facetPaths: 1, sessions: 1})
	admit := func(w string) { tr.Admit(url(t, "http://example.com/"+w)) }
	admit("kept")
	for i := range 50 {
		admit(word(i))
		admit("kept")
	}
	if e := tr.patterns.get([]byte("example.com/kept")); e == nil || e.Admitted != 51 {
		t.Errorf("%+v", e)
	}
}

func TestAFullQuarantineStillRefusesTheURLAtHand(t *testing.T) {
	tr := newTracker(bounds{patterns: 100, pinned: 10, facetPaths: 20, sessions: 30})
	for i := range 15 {
		u := url(t, "http://example.com/"+word(i)+"?page=1")
		for range yieldPages {
			tr.Observe(u, Yield{})
		}
	}
	if n := len(tr.Quarantined()); n != 10 {
		t.Errorf("%d in quarantine", n)
	}
	raw, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, tr); err != nil {
		t.Fatal(err)
	}
	got := site(t, tr, 1000, func(i int) (string, Yield) {
		return fmt.Sprintf("http://example.com/shop?a=x%d&b=y%d&c=z%d&d=w%d", i%5, i/5%5, i/25%5, i/125), unique
	})
	if got != facetFloor || len(tr.Quarantined()) != 10 {
		t.Errorf("%d admitted, %d in quarantine", got, len(tr.Quarantined()))
	}
}

func FuzzAdmit(f *testing.F) {
	for i := range 12 {
		raw, _ := mixed(i)
		f.Add(raw)
	}
	f.Add("http://a/;;;=/(S())/?;&=&&sid=")
	r := typical(f)
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := weburl.Parse(raw)
		if err != nil {
			u = weburl.FromCanonical(raw) // says nothing useful, and must not panic
			r.Judge(u, 1)
			NewTracker().Admit(u)
			return
		}
		r.Judge(u, 1)
		tr := NewTracker()
		first := tr.Admit(u)
		if !first.OK {
			t.Fatalf("%q: a tracker that knows nothing refuses: %+v", u, first)
		}
		tr.Observe(u, Yield{})
		if !tr.Check(u).OK {
			t.Fatalf("%q: one duplicate is enough", u)
		}
		if p := PatternOf(u); len(p) > maxPattern+1 {
			t.Fatalf("%q: pattern of %d bytes", u, len(p))
		}
		saved, err := json.Marshal(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(saved, NewTracker()); err != nil {
			t.Fatalf("%q: %v", u, err)
		}
	})
}

func BenchmarkAdmitAndObserve(b *testing.B) {
	tr := NewTracker()
	urls := make([]weburl.URL, 1000)
	for i := range urls {
		urls[i] = url(b, fmt.Sprintf("http://example.com/docs/guide/%s/page-%d.html?v=%d", word(i%100), i, i))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		u := urls[i%len(urls)]
		i++
		tr.Admit(u)
		tr.Observe(u, unique)
	}
}

func BenchmarkAdmitFacets(b *testing.B) {
	tr := NewTracker()
	urls := make([]weburl.URL, 1000)
	for i := range urls {
		urls[i] = url(b, fmt.Sprintf("http://example.com/list?cat=%s&id=%d&lang=en", word(i), i))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tr.Admit(urls[i%len(urls)])
		i++
	}
}
