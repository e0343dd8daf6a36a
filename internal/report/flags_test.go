package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

func TestFlagsBecomeAFilter(t *testing.T) {
	for _, c := range []struct {
		q    Query
		want ledger.PageFilter
	}{
		{Query{}, ledger.PageFilter{}},
		{Query{Status: "404"}, ledger.PageFilter{Status: &ledger.Range{Min: 404, Max: 404}}},
		{Query{Status: "4XX"}, ledger.PageFilter{Status: &ledger.Range{Min: 400, Max: 499}}},
		{Query{Status: "200-299"}, ledger.PageFilter{Status: &ledger.Range{Min: 200, Max: 299}}},
		{Query{Status: "none"}, ledger.PageFilter{Status: &ledger.Range{}}},
		{Query{Outcome: "gone, not_found,gone"}, ledger.PageFilter{Outcomes: []outcome.Outcome{outcome.NotFound, outcome.Gone}}},
		{Query{Outcome: "broken"}, ledger.PageFilter{Outcomes: brokenOutcomes()}},
		{Query{Host: "A.example", Match: "/Blog/", Limit: 10}, ledger.PageFilter{Host: "a.example", Match: "/Blog/", Limit: 10}},
		{Query{Slow: "1500ms"}, ledger.PageFilter{MinTotal: 1500 * time.Millisecond}},
		{Query{Type: "HTML"}, ledger.PageFilter{ContentType: "text/html"}},
		{Query{Type: "image/*"}, ledger.PageFilter{ContentType: "image/"}},
		{Query{Type: "application/x-foo"}, ledger.PageFilter{ContentType: "application/x-foo"}},
		{Query{Depth: "0"}, ledger.PageFilter{Depth: &ledger.Range{}}},
		{Query{Depth: "1-3"}, ledger.PageFilter{Depth: &ledger.Range{Min: 1, Max: 3}}},
		{Query{Depth: "3-"}, ledger.PageFilter{Depth: &ledger.Range{Min: 3, Max: deepest}}},
		{Query{Sort: "-time"}, ledger.PageFilter{Sort: ledger.ByTime, Desc: true}},
		{Query{Sort: "url"}, ledger.PageFilter{Sort: ledger.ByURL}},
		{Query{Sort: "-found"}, ledger.PageFilter{Desc: true}},
	} {
		got, err := c.q.Filter()
		if err != nil {
			t.Errorf("%+v: %v", c.q, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.q, d)
		}
	}
}

func TestAFlagThatMakesNoSenseIsNamedWithWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct {
		q          Query
		flag, hint string
	}{
		{Query{Status: "44"}, `--status "44"`, "4xx"},
		{Query{Status: "6xx"}, "--status", "4xx"},
		{Query{Status: "299-200"}, "--status", "200-299"},
		{Query{Status: "-200"}, "--status", "200-299"},
		{Query{Status: "4040"}, "--status", "404"},
		{Query{Outcome: "not-found"}, `--outcome "not-found"`, "not_found"},
		{Query{Outcome: "pending"}, "--outcome", "throttled"},
		{Query{Slow: "3"}, `--slow "3"`, "3s"},
		{Query{Slow: "-3s"}, "--slow", "3s"},
		{Query{Type: "htm"}, `--type "htm"`, "text/html"},
		{Query{Depth: "deep"}, `--depth "deep"`, "1-3"},
		{Query{Depth: "3-1"}, "--depth", "1-3"},
		{Query{Depth: "-1"}, "--depth", "1-3"},
		{Query{Sort: "name"}, `--sort "name"`, "url"},
		{Query{Sort: "-"}, "--sort", "found"},
		{Query{Limit: -1}, "--limit -1", "0 for all"},
	} {
		_, err := c.q.Filter()
		if err == nil || !strings.Contains(err.Error(), c.flag) || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

func FuzzFlags(f *testing.F) {
	f.Add("4xx", "broken", "3s", "html", "1-3", "-time")
	f.Fuzz(func(t *testing.T, status, out, slow, kind, depth, sort string) {
		q := Query{Status: status, Outcome: out, Slow: slow, Type: kind, Depth: depth, Sort: sort}
		filter, err := q.Filter()
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--") {
				t.Fatalf("the error does not name its flag: %v", err)
			}
			return
		}
		if filter.Status != nil && filter.Status.Min > filter.Status.Max || filter.Depth != nil && filter.Depth.Min > filter.Depth.Max || filter.MinTotal < 0 {
			t.Fatalf("%+v became %+v", q, filter)
		}
	})
}
