package acceptance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
)

// openLedger opens the ledger of a data directory as a report would.
func openLedger(t *testing.T, dir string) app.Ledger {
	t.Helper()
	l, err := app.OpenLedger(context.Background(), config.In(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// pagesOf lists all rows of the first crawl, sitemaps included, by URL.
func pagesOf(t *testing.T, dir string) map[string]ledger.Page {
	t.Helper()
	pages := map[string]ledger.Page{}
	for p, err := range openLedger(t, dir).Pages(context.Background(), 1, ledger.PageFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := pages[p.URL]; twice {
			t.Fatalf("two rows for %s", p.URL)
		}
		pages[p.URL] = p
	}
	return pages
}

// requestsOf lists the rows of the first crawl's requests.
func requestsOf(t *testing.T, dir string) []ledger.Request {
	t.Helper()
	var all []ledger.Request
	for r, err := range openLedger(t, dir).Requests(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// sent counts the requests that were put on the wire.
func sent(all []ledger.Request) (n int) {
	for _, r := range all {
		if !strings.HasSuffix(r.Cause, "not sent") {
			n++
		}
	}
	return n
}

// ends says of each URL how it ended: "ok 200", "robots 0".
func ends(pages map[string]ledger.Page) map[string]string {
	m := map[string]string{}
	for u, p := range pages {
		m[u] = fmt.Sprintf("%s %d", p.Outcome, p.Status)
	}
	return m
}

// sameSet compares two sets of named results and shows the first differences.
func sameSet[V comparable](t *testing.T, gotName, wantName string, got, want map[string]V) {
	t.Helper()
	var diff []string
	for k, v := range want {
		if w, ok := got[k]; !ok {
			diff = append(diff, fmt.Sprintf("%s: %s has it (%v), %s does not", k, wantName, v, gotName))
		} else if w != v {
			diff = append(diff, fmt.Sprintf("%s: %v by %s, %v by %s", k, v, wantName, w, gotName))
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			diff = append(diff, fmt.Sprintf("%s: %s has it (%v), %s does not", k, gotName, v, wantName))
		}
	}
	if len(diff) == 0 {
		return
	}
	slices.Sort(diff)
	t.Errorf("%d of %d results differ between %s and %s:\n%s", len(diff), len(want), gotName, wantName,
		strings.Join(diff[:min(len(diff), 20)], "\n"))
}

func set(keys []string) map[string]bool {
	m := make(map[string]bool, len(keys))
	for _, k := range keys {
		m[k] = true
	}
	return m
}

// tally counts pages by how they ended, for the log.
func tally(pages map[string]ledger.Page) string {
	n := map[string]int{}
	for _, p := range pages {
		n[p.Outcome.String()]++
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, n[k]))
	}
	return strings.Join(parts, ", ")
}
