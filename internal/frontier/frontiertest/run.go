package frontiertest

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// Option extends Run.
type Option func(*suite)

// WithReopen adds the checks that need a restart. reopen closes the store it
// is given and returns one opened on the same data.
func WithReopen(reopen func(t testing.TB, s frontier.Store) frontier.Store) Option {
	return func(su *suite) { su.reopen = reopen }
}

// WithFailures is for a store whose calls fail inside and are repeated: then
// an entry may have the ID of a first attempt and another, earlier in the
// batch, that of a second. IDs ascend in each queue all the same.
func WithFailures() Option { return func(su *suite) { su.failures = true } }

// Run checks a store. open returns an empty one; Run closes it.
func Run(t *testing.T, open func(t testing.TB) frontier.Store, opts ...Option) {
	su := &suite{open: open}
	for _, o := range opts {
		o(su)
	}
	groups := []struct {
		name  string
		tests []check
	}{
		{"commit", commitChecks},
		{"queue", queueChecks},
		{"seen", seenChecks},
		{"notes", noteChecks},
		{"crawls", crawlChecks},
		{"many at once", concurrencyChecks},
		{"failures", failureChecks},
		{"restart", restartChecks},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					if c.needsReopen && su.reopen == nil {
						t.Skip("this store has no restart to test")
					}
					h := &harness{T: t, suite: su, s: open(t)}
					defer func() {
						if err := h.s.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					}()
					c.run(h)
				})
			}
		})
	}
	t.Run("any sequence of calls agrees with a model", func(t *testing.T) { runModel(t, su) })
}

type suite struct {
	open   func(testing.TB) frontier.Store
	reopen func(testing.TB, frontier.Store) frontier.Store

	failures bool
}

// clockOf names the series in which an entry's ID ascends.
func (su *suite) clockOf(e *frontier.Entry) string {
	if su.failures {
		return fmt.Sprintf("%d %s", e.Crawl, e.Group)
	}
	return ""
}

type check struct {
	name        string
	needsReopen bool
	run         func(*harness)
}

// harness is a store under test with helpers that fail the test.
type harness struct {
	*testing.T
	*suite
	s frontier.Store
}

var ctx = context.Background()

func (h *harness) openCrawl(ids ...frontier.CrawlID) {
	h.Helper()
	for _, id := range ids {
		if err := h.s.OpenCrawl(ctx, id); err != nil {
			h.Fatalf("open crawl %d: %v", id, err)
		}
	}
}

func (h *harness) commit(b *frontier.Batch) []frontier.Entry {
	h.Helper()
	added, err := h.s.Commit(ctx, b)
	if err != nil {
		h.Fatalf("commit: %v", err)
	}
	return added
}

func (h *harness) add(entries ...frontier.Entry) []frontier.Entry {
	h.Helper()
	return h.commit(&frontier.Batch{Add: entries})
}

func (h *harness) window(crawl frontier.CrawlID, group string) []frontier.Entry {
	h.Helper()
	return h.windowAfter(crawl, group, frontier.Pos{}, 1<<20)
}

func (h *harness) windowAfter(crawl frontier.CrawlID, group string, after frontier.Pos, n int) []frontier.Entry {
	h.Helper()
	got, err := h.s.Window(ctx, group, crawl, after, n, nil)
	if err != nil {
		h.Fatalf("window of %q: %v", group, err)
	}
	return got
}

func (h *harness) queues(crawl frontier.CrawlID) map[string]int {
	h.Helper()
	got, err := queues(h.s, crawl)
	if err != nil {
		h.Fatalf("queues of crawl %d: %v", crawl, err)
	}
	return got
}

func queues(s frontier.Store, crawl frontier.CrawlID) (map[string]int, error) {
	got := map[string]int{}
	err := s.Queues(ctx, crawl, func(q frontier.Queue) error {
		if _, twice := got[q.Group]; twice {
			return fmt.Errorf("group %q was listed twice", q.Group)
		}
		if q.Crawl != crawl || q.Count <= 0 {
			return fmt.Errorf("crawl %d lists %+v", crawl, q)
		}
		got[q.Group] = q.Count
		return nil
	})
	return got, err
}

func (h *harness) note(group, name string) []byte {
	h.Helper()
	v, err := h.s.Note(ctx, group, name)
	if err != nil {
		h.Fatalf("note %s of %s: %v", name, group, err)
	}
	return v
}

// same compares and shows the difference.
func (h *harness) same(what string, got, want any) {
	h.Helper()
	if d := diff(got, want); d != "" {
		h.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

// diff treats a nil and an empty list alike, as callers of a Store do, and
// leaves out what the scheduler keeps in an entry for itself.
func diff(got, want any) string {
	if reflect.DeepEqual(got, want) {
		return "" // a hundred times faster than an empty diff
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(frontier.Entry{}))
}

// page is a plain entry of crawl 1.
func page(group, path string) frontier.Entry {
	return frontier.Entry{Crawl: 1, Group: group, Prio: 1, Via: frontier.ViaLink, URL: "https://" + group + "/" + path}
}

func pages(group string, n int) []frontier.Entry {
	list := make([]frontier.Entry, n)
	for i := range list {
		list[i] = page(group, fmt.Sprintf("p%d", i))
	}
	return list
}

func inCrawl(crawl frontier.CrawlID, e frontier.Entry) frontier.Entry {
	e.Crawl = crawl
	return e
}

func withPrio(prio uint8, e frontier.Entry) frontier.Entry {
	e.Prio = prio
	return e
}

func refs(entries []frontier.Entry) []frontier.Ref {
	list := make([]frontier.Ref, len(entries))
	for i := range entries {
		list[i] = entries[i].Ref()
	}
	return list
}

func urls(entries []frontier.Entry) []string {
	list := make([]string, len(entries))
	for i := range entries {
		list[i] = entries[i].URL
	}
	return list
}

func fingerprint(url string) weburl.Fingerprint {
	return weburl.FromCanonical(url).Fingerprint()
}
