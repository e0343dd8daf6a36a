package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

func Test_a_replay_has_what_was_waited_and_asked_for(t *testing.T) {
	ctx := context.Background()
	l, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := time.Date(2026, 11, 15, 12, 0, 0, 123456000, time.UTC)
	c := ledger.Crawl{Status: ledger.Running, Spec: []byte(`{"delay_min":1}`), Started: at.Truncate(time.Millisecond)}
	if _, err := l.CreateCrawl(ctx, &c); err != nil {
		t.Fatal(err)
	}
	u := weburl.FromCanonical("https://b.example/x")
	q := ledger.Request{Crawl: c.ID, Permit: 2, Group: "b.example", URL: u.String(), FP: u.Fingerprint(), Kind: "page", Cause: "retry",
		Started: at, Ended: at.Add(time.Second), Status: 429, Outcome: outcome.Throttled, GapOwed: time.Second, InFlight: 1, Cap: 2,
		Granted: at.Add(-time.Millisecond), GapWhy: "base delay", AskedUntil: at.Add(time.Minute), AskedAfter: 7, RetryAt: at.Add(time.Hour), RetryWhy: "Retry-After"}
	first := ledger.Request{Crawl: c.ID, Permit: 3, Group: "a.example", URL: "https://a.example/robots.txt", FP: weburl.Fingerprint{Lo: 1},
		Kind: "robots", Cause: "robots", Started: at.Add(time.Hour), Ended: at.Add(time.Hour), Outcome: outcome.OK, Cap: 2}
	err = l.Commit(ctx, &ledger.Batch{Requests: []ledger.Request{q, first},
		Pages: []ledger.Page{{Crawl: c.ID, URL: "https://a.example/", FP: weburl.Fingerprint{Lo: 2}, Host: "a.example", Outcome: outcome.Robots,
			Robots: ledger.RobotsDecision{Decided: true, FetchedAt: at.Truncate(time.Millisecond), CrawlDelay: 2 * time.Second}}},
		Evidence: []ledger.Evidence{{Crawl: c.ID, URL: u.String(), FP: u.Fingerprint(), Type: "throttled", At: q.Ended, Content: `{"retryAfter":"60"}`}}})
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[int64][]ledger.Replayed{0: {{Request: first}, {Request: q, RetryAfter: "60"}}, 9: nil} {
		var got []ledger.Replayed
		for r, err := range l.Replay(ctx, only) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("only %d: (-want +got)\n%s", only, diff)
		}
	}
	if got, err := l.RequestsOf(ctx, c.ID, u.Fingerprint()); err != nil || !cmp.Equal(got, []ledger.Request{q}) {
		t.Errorf("%v, %v", got, err)
	}
	for j, err := range l.Judgements(ctx) {
		want := ledger.Judged{Crawl: c.ID, FP: weburl.Fingerprint{Lo: 2}, Host: "a.example", Outcome: outcome.Robots,
			Robots: ledger.RobotsDecision{Decided: true, FetchedAt: at.Truncate(time.Millisecond), CrawlDelay: 2 * time.Second}}
		if diff := cmp.Diff(want, j); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

func Test_settings_are_remembered_when_they_change_and_only_then(t *testing.T) {
	ctx := context.Background()
	l, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := ledger.Crawl{Status: ledger.Running, Spec: []byte(`{"delay_min":1}`), Started: at}
	if _, err := l.CreateCrawl(ctx, &c); err != nil {
		t.Fatal(err)
	}
	for i, spec := range []string{`{"delay_min":1}`, `{"delay_min":2}`, `{"delay_min":2}`, `{"delay_min":1}`} {
		c.Spec, c.Updated = []byte(spec), at.Add(time.Duration(i+1)*time.Second)
		if err := l.UpdateCrawl(ctx, &c); err != nil {
			t.Fatal(err)
		}
	}
	want := []ledger.Settings{{Crawl: c.ID, Since: at, Spec: []byte(`{"delay_min":1}`)},
		{Crawl: c.ID, Since: at.Add(2 * time.Second), Spec: []byte(`{"delay_min":2}`)},
		{Crawl: c.ID, Since: at.Add(4 * time.Second), Spec: []byte(`{"delay_min":1}`)}}
	if got, err := l.Settings(ctx); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if row, err := l.Crawl(ctx, c.ID); err != nil || string(row.Spec) != `{"delay_min":1}` {
		t.Errorf("what the crawl was started with is now %s, %v", row.Spec, err)
	}
}
