package postgres

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
	"tiptoe/internal/weburl"
)

// nth is a batch with one page, of a worker or of a process alone.
func nth(crawl int64, n int, worker string) *ledger.Batch {
	u := weburl.FromCanonical(fmt.Sprintf("https://a.example/%d", n))
	return &ledger.Batch{
		Pages:    []ledger.Page{{Crawl: crawl, URL: u.String(), FP: u.Fingerprint(), Host: "a.example", Kind: "page", Outcome: outcome.OK, Status: 200}},
		Requests: []ledger.Request{{Crawl: crawl, Permit: uint64(n), Group: "a.example", FP: u.Fingerprint(), Kind: "page", Outcome: outcome.OK}},
		Crawls: []ledger.Crawl{{ID: crawl, Worker: worker, Status: ledger.Running, Updated: time.Unix(int64(n), 0),
			Counters: ledger.Counters{Processed: int64(n)}}},
	}
}

func commit(t *testing.T, l *Ledger, b *ledger.Batch) {
	t.Helper()
	if err := l.Commit(soon(t), b); err != nil {
		t.Fatal(err)
	}
}

// keeping is a ledger with a crawl whose first pages it keeps, what it says, and
// a way to lose the pages from one on as a fail-over does.
func keeping(t *testing.T, pages int, worker string) (l *Ledger, crawl int64, told *strings.Builder, lose func(from int)) {
	t.Helper()
	l, told = openLedger(t, testenv.Postgres(t)), new(strings.Builder)
	l.Log(slog.New(slog.NewTextHandler(told, nil)))
	crawl = create(t, l)
	for i := range pages {
		commit(t, l, nth(crawl, i+1, worker))
	}
	c := client(t, l.pool.Config().ConnString())
	return l, crawl, told, func(from int) {
		t.Helper()
		exec(t, c, fmt.Sprintf("DELETE FROM pages USING requests r WHERE r.crawl_id = pages.crawl_id AND r.fp = pages.fp AND permit >= %d", from),
			fmt.Sprintf("DELETE FROM requests WHERE permit >= %d", from))
		l.pool.Reset()
	}
}

func pagesOf(t *testing.T, l *Ledger, crawl int64) int64 {
	t.Helper()
	counts, err := l.PageCounts(t.Context(), crawl)
	if err != nil {
		t.Fatal(err)
	}
	return counts[outcome.OK]
}

func Test_what_a_fail_over_to_a_replica_that_was_behind_has_lost_is_written_again(t *testing.T) {
	primary := testenv.PostgresServer(t)
	url := primary.Database(t)
	replica := primary.Replica(t, false)
	l := openLedger(t, primary.Either(replica, url))
	var told strings.Builder
	l.Log(slog.New(slog.NewTextHandler(&told, nil)))
	crawl, stored := create(t, l), 0
	store := func(n int) {
		t.Helper()
		for range n {
			stored++
			commit(t, l, nth(crawl, stored, ""))
		}
	}
	store(10)
	c := client(t, url)
	for end := time.Now().Add(20 * time.Second); !query1[bool](t, c, "SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_flush_lsn()), false) FROM pg_stat_replication"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	c.Close(t.Context())
	replica.Set(t, "primary_conninfo", "") // from here on it hears nothing
	for primary.Replicates("async") {
		time.Sleep(10 * time.Millisecond)
	}
	store(30)
	primary.Kill(t)
	replica.Promote(t)
	store(1)
	if n := pagesOf(t, l, crawl); n != 41 {
		t.Errorf("%d of 41 pages", n)
	}
	if !strings.Contains(told.String(), "it was stored again") || !strings.Contains(told.String(), "pages=30") {
		t.Errorf("it said: %s", told.String())
	}

	// Nothing is wrong with a connection that is new.
	told.Reset()
	l.pool.Reset()
	store(1)
	if told.Len() > 0 {
		t.Errorf("it said: %s", told.String())
	}
}

func Test_what_is_lost_beyond_what_is_kept_is_said(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	var told strings.Builder
	l.Log(slog.New(slog.NewTextHandler(&told, nil)))
	crawl := create(t, l)
	commit := func(permit int) {
		t.Helper()
		if err := l.Commit(soon(t), &ledger.Batch{Requests: []ledger.Request{{Crawl: crawl, Permit: uint64(permit), Group: "a.example", Kind: "page"}}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keepBatches + 5 {
		commit(i + 1)
	}
	c := client(t, l.pool.Config().ConnString())
	exec(t, c, "DELETE FROM requests WHERE permit > 2")
	l.pool.Reset() // as a fail-over would
	commit(1000)
	if n := query1[int64](t, c, "SELECT count(*) FROM requests"); n != 2+keepBatches+1 {
		t.Errorf("%d requests are stored", n)
	}
	if !strings.Contains(told.String(), "far behind") || !strings.Contains(told.String(), fmt.Sprint("crawl=", crawl)) {
		t.Errorf("it said: %s", told.String())
	}
}

func Test_what_a_fail_over_has_lost_is_written_again_before_the_crawls_end(t *testing.T) {
	for _, worker := range []string{"", "w"} {
		l, crawl, told, lose := keeping(t, 5, worker)
		lose(1)
		commit(t, l, &ledger.Batch{Crawls: []ledger.Crawl{{ID: crawl, Status: ledger.Completed, Counters: ledger.Counters{Processed: 6}}}})
		if n := pagesOf(t, l, crawl); n != 5 || !strings.Contains(told.String(), "pages=5") {
			t.Errorf("worker %q: %d of 5 pages; it said: %s", worker, n, told)
		}
		if got, err := l.Crawl(t.Context(), crawl); err != nil || got.Status != ledger.Completed || got.Counters.Processed != 6 {
			t.Errorf("worker %q: the crawl is %s with %d pages, %v", worker, got.Status, got.Counters.Processed, err)
		}
	}
}

func Test_what_a_fail_over_has_lost_changes_no_crawl_that_another_process_has_ended_since(t *testing.T) {
	for _, worker := range []string{"", "w"} {
		l, crawl, told, lose := keeping(t, 5, worker)
		other := openLedger(t, l.pool.Config().ConnString())
		commit(t, other, &ledger.Batch{Crawls: []ledger.Crawl{{ID: crawl, Status: ledger.Completed, Counters: ledger.Counters{Processed: 6}}}})
		lose(4)
		commit(t, l, &ledger.Batch{})
		if got, err := l.Crawl(t.Context(), crawl); err != nil || got.Status != ledger.Completed || got.Counters.Processed != 6 {
			t.Errorf("worker %q: the crawl is %s with %d pages, %v", worker, got.Status, got.Counters.Processed, err)
		}
		if again := strings.Contains(told.String(), "it was stored again"); worker != "" && (again || !strings.Contains(told.String(), "not stored again\" pages=2")) {
			t.Errorf("it said: %s", told)
		}
		told.Reset()
		l.pool.Reset()
		commit(t, l, &ledger.Batch{})
		if told.Len() > 0 {
			t.Errorf("it said once more: %s", told)
		}
	}
}

func Test_a_part_that_is_written_again_is_not_older_than_before(t *testing.T) {
	l, crawl, _, lose := keeping(t, 5, "w")
	last := nth(crawl, 60, "w")
	commit(t, l, &ledger.Batch{Crawls: last.Crawls}) // without a request: it is not kept
	lose(4)
	commit(t, l, &ledger.Batch{})
	if got, err := l.Crawl(t.Context(), crawl); err != nil || got.Counters.Processed != 60 {
		t.Errorf("%d processed, want 60; %v", got.Counters.Processed, err)
	}
}

func Test_what_was_left_out_as_late_is_not_missed(t *testing.T) {
	l, crawl, told, lose := keeping(t, 0, "w")
	over := create(t, l)
	commit(t, l, &ledger.Batch{Crawls: []ledger.Crawl{{ID: over, Status: ledger.Completed}}})
	commit(t, l, nth(over, 1, "w"))
	lose(100) // nothing
	commit(t, l, nth(crawl, 2, "w"))
	if told.Len() > 0 {
		t.Errorf("it said: %s", told)
	}
}

func Test_who_commits_nothing_repairs_too(t *testing.T) {
	l, crawl, _, lose := keeping(t, 5, "w")
	lose(1)
	for end := time.Now().Add(20 * time.Second); pagesOf(t, l, crawl) != 5; time.Sleep(10 * time.Millisecond) { // a reader makes the connection
		if time.Now().After(end) {
			t.Fatalf("%d of 5 pages", pagesOf(t, l, crawl))
		}
	}
}
