package acceptance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
)

// The trees of Debian's packages, and the fewest URLs that they must have for
// the test to mean something.
var trees = []struct {
	name, root string
	least      int
}{
	{"python3-doc", "/usr/share/doc/python3-doc/html", 500},
	{"rust-doc", "/usr/share/doc/rust-doc/html", 20_000},
}

func Test_a_real_documentation_tree_is_fetched_whole_and_no_page_twice(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			if raceDetector && tree.least > 1000 {
				t.Skip("the plain walk of a large tree takes minutes under the race detector; run this test without -race")
			}
			testenv.NeedPath(t, filepath.Join(tree.root, "index.html"))
			server := startNginx(t, tree.root, "")
			dir := filepath.Join(t.TempDir(), "data")

			began := time.Now()
			p := start(t, dir, "crawl", server.origin+"/", "--delay", "0", "--per-host", "16", "--seeding", "none",
				"--scope", "host", "--max-body", "100MB", "--user-agent", "tiptoe-test")
			if code := p.wait(5 * time.Minute); code != 0 {
				t.Fatalf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
			}
			crawled := time.Since(began)

			began = time.Now()
			walked, err := newWalker(server.origin).walk(server.origin + "/")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d URLs: crawled in %s (peak memory %d MB), walked in %s", len(walked),
				crawled.Round(10*time.Millisecond), p.peak()>>20, time.Since(began).Round(10*time.Millisecond))
			if len(walked) < tree.least {
				t.Errorf("the walk found %d URLs; this tree has at least %d", len(walked), tree.least)
			}

			pages := pagesOf(t, dir)
			statuses := map[string]int{}
			for u, page := range pages {
				switch page.Outcome {
				case outcome.Scope:
				case outcome.OK, outcome.Redirect, outcome.NotFound, outcome.Blocked:
					statuses[u] = page.Status
				default:
					t.Errorf("%s ended with %s: %s", u, page.Outcome, page.Error)
				}
			}
			sameSet(t, "tiptoe", "the walk", statuses, walked)
			t.Log("rows:", tally(pages))

			var asked []string
			for _, s := range server.served() {
				switch {
				case s.agent != "tiptoe-test":
				case s.uri == "/robots.txt" && statuses[server.origin+s.uri] == 0:
					asked = append(asked, "robots.txt")
				case statuses[server.origin+s.uri] != s.status:
					t.Errorf("nginx answered %d to %s, the ledger says %d", s.status, s.uri, statuses[server.origin+s.uri])
				default:
					asked = append(asked, s.uri)
				}
			}
			if rows := requestsOf(t, dir); len(rows) != len(asked) || sent(rows) != len(asked) {
				t.Errorf("nginx saw %d requests, the ledger has %d (%d sent)", len(asked), len(rows), sent(rows))
			}
			slices.Sort(asked)
			if once := slices.Compact(slices.Clone(asked)); len(once) != len(statuses)+1 || len(asked) != len(once) {
				t.Errorf("nginx saw %d requests for %d URLs; want one each for %d pages and robots.txt; twice: %s",
					len(asked), len(once), len(statuses), repeated(asked))
			}
		})
	}
}

// repeated names what is more than once in a sorted list.
func repeated(sorted []string) string {
	var twice []string
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			twice = append(twice, sorted[i])
		}
	}
	return fmt.Sprintf("%d (%s)", len(twice), strings.Join(twice[:min(len(twice), 10)], ", "))
}
