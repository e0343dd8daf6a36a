package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

var domainCases = []testCase{
	{"LIM-6 what was learned about a host is read back whole", func(t *testing.T, s Store) {
		want := ledger.Domain{Host: "a.example:8080", AdaptiveDelay: 1250 * time.Millisecond, AdaptiveFloor: 50 * time.Millisecond,
			CrawlDelay: 10 * time.Second, ProbeStep: 500 * time.Millisecond, ErrorStreak: 1, SuccessStreak: 2, ConsecutiveFailures: 3,
			NextAvailable: t0, BlockedUntil: t0.Add(time.Hour), BlockReason: "Retry-After", LastSuccess: t0.Add(-time.Hour),
			Updated: t0, State: []byte(`{"v":1}`)}
		if err := s.SetDomain(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := s.Domain(t.Context(), want.Host)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		equal(t, "domain", got, want)

		want = ledger.Domain{Host: want.Host, Updated: t0.Add(time.Minute)} // all of it is replaced
		commit(t, s, &ledger.Batch{Domains: []ledger.Domain{want}})
		got, _, err = s.Domain(t.Context(), want.Host)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "replaced", got, want)
	}},
	{"a stored wait is never shorter than the wait", func(t *testing.T, s Store) {
		if err := s.SetDomain(t.Context(), ledger.Domain{Host: "a.example", AdaptiveDelay: time.Millisecond + 1}); err != nil {
			t.Fatal(err)
		}
		d, _, err := s.Domain(t.Context(), "a.example")
		if err != nil || d.AdaptiveDelay != 2*time.Millisecond {
			t.Errorf("%v, %v; want 2ms", d.AdaptiveDelay, err)
		}
	}},
	{"domains are listed by name, chosen by pattern, and forgotten on demand", func(t *testing.T, s Store) {
		b := &ledger.Batch{}
		const n = 1203
		for i := range n {
			d := ledger.Domain{Host: fmt.Sprintf("h%04d.example", n-1-i)}
			if i%400 == 0 {
				d.AdaptiveDelay = time.Second
			}
			b.Domains = append(b.Domains, d)
		}
		commit(t, s, b)
		all := collect(t, s.Domains(t.Context(), ledger.DomainFilter{}))
		if len(all) != n || all[0].Host != "h0000.example" || all[n-1].Host != "h1202.example" {
			t.Errorf("%d domains", len(all))
		}
		for name, c := range map[string]struct {
			f    ledger.DomainFilter
			want int
		}{
			"limit":   {ledger.DomainFilter{Limit: 600}, 600},
			"part":    {ledger.DomainFilter{Match: "h00"}, 100},
			"pattern": {ledger.DomainFilter{Match: "*7.example"}, 120},
			"learned": {ledger.DomainFilter{Learned: true}, 4},
			"none":    {ledger.DomainFilter{Match: "h00*", Learned: true}, 1},
		} {
			if got := collect(t, s.Domains(t.Context(), c.f)); len(got) != c.want {
				t.Errorf("%s: %d domains, want %d", name, len(got), c.want)
			}
		}
		for _, want := range []bool{true, false} {
			if known, err := s.DeleteDomain(t.Context(), "h0000.example"); err != nil || known != want {
				t.Errorf("forgot %v, %v; want %v", known, err, want)
			}
		}
		if _, ok, err := s.Domain(t.Context(), "h0000.example"); ok || err != nil {
			t.Error(ok, err)
		}
	}},
}
