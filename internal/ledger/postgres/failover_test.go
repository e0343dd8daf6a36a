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
			u := weburl.FromCanonical(fmt.Sprintf("https://a.example/%d", stored))
			err := l.Commit(soon(t), &ledger.Batch{
				Pages:    []ledger.Page{{Crawl: crawl, URL: u.String(), FP: u.Fingerprint(), Host: "a.example", Kind: "page", Outcome: outcome.OK, Status: 200}},
				Requests: []ledger.Request{{Crawl: crawl, Permit: uint64(stored), Group: "a.example", FP: u.Fingerprint(), Kind: "page", Outcome: outcome.OK}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	store(10)
	replica.Set(t, "primary_conninfo", "") // from here on it hears nothing
	for primary.Replicates("async") {
		time.Sleep(10 * time.Millisecond)
	}
	store(30)
	primary.Kill(t)
	replica.Promote(t)
	store(1)
	counts, err := l.PageCounts(t.Context(), crawl)
	if err != nil || counts[outcome.OK] != 41 {
		t.Errorf("%d of 41 pages, %v", counts[outcome.OK], err)
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
