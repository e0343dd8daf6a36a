package extract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func headerLinks(values ...string) (out []string) {
	LinkHeader(values, func(l Link) bool {
		v := describe(l.Kind, l.Rel, string(l.Ref))
		if len(l.Lang) > 0 {
			v += " " + string(l.Lang)
		}
		out = append(out, v)
		return true
	})
	return out
}

func TestLinkHeaders(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		want   []string
	}{
		{"one link", []string{`</2>; rel="next"`}, []string{"header [next] /2"}},
		{"several in one value, with commas inside", []string{`</a,b>; rel=next; title="x, <y>; z" , </c>;rel="canonical"`},
			[]string{"header [next] /a,b", "header [canonical] /c"}},
		{"several values", []string{`</a>; rel=prev`, `</b>; rel=alternate; hreflang=de`}, []string{"header [prev] /a", "header [alternate] /b de"}},
		{"several relations in one", []string{`</a>; rel="next  nofollow"`}, []string{"header [nofollow next] /a"}},
		{"the first rel counts", []string{`</a>; rel=preload; rel=next, </b>; rel=next; rel=preload`}, []string{"header [next] /b"}},
		{"other relations are passed over", []string{`</s.css>; rel=preload; as=style, </b>; REL=Next`}, []string{"header [next] /b"}},
		{"a link about something else is passed over", []string{`</a>; rel=next; anchor="#x", </b>; rel=next`}, []string{"header [next] /b"}},
		{"a feed is marked", []string{`</f>; rel=alternate; type="application/atom+xml"`}, []string{"header [alternate feed] /f"}},
		{"blanks are allowed", []string{` < /a > ; rel = "next" `}, []string{"header [next] /a"}},
		{"escapes in quoted values", []string{`</a>; title="\"; rel=no"; rel="ne\xt"`}, []string{"header [next] /a"}},
		{"empty parameters and values", []string{`,,</a>;;rel=next;,`, ``}, []string{"header [next] /a"}},
		{"rubbish ends its value only", []string{`/a; rel=next`, `</b; rel=next`, `</c>; rel="next`, `</d>; rel=next x, </e>; rel=next`},
			[]string{"header [next] /c", "header [next] /d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, headerLinks(c.values...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALinkHeaderStopsWhenTold(t *testing.T) {
	n := 0
	LinkHeader([]string{"</a>; rel=next, </b>; rel=next", "</c>; rel=next"}, func(Link) bool { n++; return false })
	if n != 1 {
		t.Errorf("called %d times, want once", n)
	}
}

func TestRobotsTags(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		want   Robots
	}{
		{"nothing", nil, 0},
		{"one directive in any case", []string{"NoIndex"}, NoIndex},
		{"several, in several headers", []string{"noindex, noarchive", "nofollow"}, NoIndex | NoFollow | NoArchive},
		{"none means both", []string{"none"}, NoIndex | NoFollow},
		{"all, index and follow forbid nothing", []string{"all, index, follow"}, 0},
		{"ours by name", []string{"Tiptoe: nofollow"}, NoFollow},
		{"not ours by name", []string{"otherbot: noindex, nofollow"}, 0},
		{"an address holds until the next", []string{"otherbot: noindex, tiptoe: nofollow, nosnippet"}, NoFollow | NoSnippet},
		{"an address ends with its header", []string{"otherbot: noindex", "nofollow"}, NoFollow},
		{"a date with commas and colons is no address",
			[]string{"unavailable_after: Saturday, 25-Jun-11 15:00:00 PST, nofollow"}, UnavailableAfter | NoFollow},
		{"an ISO date too", []string{"tiptoe: unavailable_after: 2026-01-01T10:00:00, noindex"}, UnavailableAfter | NoIndex},
		{"directives with values are no addresses", []string{"max-snippet: 5, max-image-preview:large, noindex"}, NoIndex},
		{"rubbish is ignored", []string{": , :: ,,, noindexx, no index"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := RobotsTag(c.values, "tiptoe"); got != c.want {
				t.Errorf("%q read as %q, want %q", c.values, got, c.want)
			}
		})
	}
}
