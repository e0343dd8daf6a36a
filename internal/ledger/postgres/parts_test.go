package postgres

import (
	"testing"

	"tiptoe/internal/ledger"
	"tiptoe/internal/testenv"
)

func Test_the_parts_that_workers_count_add_up_until_the_crawl_is_over(t *testing.T) {
	l, err := Open(t.Context(), testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := ledger.Crawl{Seeds: []string{"https://a.example/"}, Status: ledger.Running}
	if _, err := l.CreateCrawl(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	part := func(worker string, n int64) {
		t.Helper()
		p := ledger.Crawl{ID: c.ID, Worker: worker, Status: ledger.Running, Counters: ledger.Counters{Processed: n, Bytes: 10 * n}}
		for range 2 { // told twice counts once
			if err := l.Commit(t.Context(), &ledger.Batch{Crawls: []ledger.Crawl{p}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func() ledger.Crawl {
		t.Helper()
		got, err := l.Crawl(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	part("a", 3)
	part("b", 4)
	part("a", 5)
	if got := read(); got.Counters.Processed != 9 || got.Counters.Bytes != 90 || got.Status != ledger.Running {
		t.Errorf("%+v", got)
	}
	// a takes it up, from 8 pages that have a row: one was fetched twice.
	again := c
	again.Worker, again.Counters = "a", ledger.Counters{Processed: 8, Bytes: 85}
	if err := l.UpdateCrawl(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.Counters != again.Counters || got.Status != ledger.Running {
		t.Errorf("taken up: %+v", got)
	}
	part("a", 2) // anew
	part("b", 5)
	if got := read(); got.Counters.Processed != 8+2+1 {
		t.Errorf("after it was taken up: %+v", got.Counters)
	}
	end := c
	end.Status, end.Counters = ledger.Completed, ledger.Counters{Processed: 8}
	if err := l.UpdateCrawl(t.Context(), &end); err != nil {
		t.Fatal(err)
	}
	part("b", 6) // late
	if got := read(); got.Counters.Processed != 8 || got.Counters.Bytes != 0 {
		t.Errorf("after the end: %+v", got.Counters)
	}
}
