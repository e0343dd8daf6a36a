package redisstore

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

func Test_of_two_workers_that_begin_at_once_and_group_hosts_differently_one_is_refused(t *testing.T) {
	s := openTest(t, Options{URL: testenv.StartRedis(t).URL()})
	worker := func(id string) frontier.Worker { return frontier.Worker{ID: id} }
	listed := func() (names string) {
		live, err := s.Live(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range live {
			names += w.ID
		}
		return names
	}
	if err := s.Agree(ctx, worker("a"), time.Minute, Terms{Grouping: "before", Ledger: "books"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(ctx, worker("a"), 0); err != nil { // it leaves
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} { // both have begun, neither has asked
		if _, err := s.Heartbeat(ctx, worker(id), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Agree(ctx, worker("b"), time.Minute, Terms{Grouping: "one way", Ledger: "books"})
	if err == nil || !strings.Contains(err.Error(), "by before, this process by one way") {
		t.Fatalf("while another one begins: %v", err)
	}
	if names := listed(); names != "c" {
		t.Errorf("after a refusal %q are listed", names)
	}
	if err := s.Agree(ctx, worker("c"), time.Minute, Terms{Grouping: "another way", Ledger: "books"}); err != nil {
		t.Error(err)
	}
	if err := s.Agree(ctx, worker("d"), time.Minute, Terms{Grouping: "another way", Ledger: "books"}); err != nil {
		t.Error(err)
	}
	if err := s.Agree(ctx, worker("c"), time.Minute, Terms{Grouping: "before", Ledger: "books"}); err == nil {
		t.Error("it was changed under a worker that is there")
	}
}

func Test_a_process_with_another_database_is_refused_also_when_nobody_else_is_there(t *testing.T) {
	redis := testenv.StartRedis(t)
	s := openTest(t, Options{URL: redis.URL()})
	if err := s.Matches(ctx, Terms{Grouping: "by host", Ledger: "one"}); err != nil {
		t.Errorf("before anybody was there: %v", err)
	}
	if err := s.Agree(ctx, frontier.Worker{ID: "a"}, time.Minute, Terms{Grouping: "by host", Ledger: "one"}); err != nil {
		t.Fatal(err)
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "belongs to another database (ledger one; this one is ledger two)") {
			t.Errorf("another database: %v", err)
		}
	}
	other := Terms{Grouping: "by host", Ledger: "two"}
	refused(s.Agree(ctx, frontier.Worker{ID: "b"}, time.Minute, other))
	refused(s.Matches(ctx, Terms{Ledger: "two"}))
	if err := s.Matches(ctx, Terms{Grouping: "by address", Ledger: "one"}); err == nil || !strings.Contains(err.Error(), "by by host, this process by by address") {
		t.Errorf("another grouping: %v", err)
	}
	if live, err := s.Live(ctx); err != nil || len(live) != 1 || live[0].ID != "a" {
		t.Errorf("listed: %+v, %v", live, err)
	}
	if _, err := s.Heartbeat(ctx, frontier.Worker{ID: "a"}, 0); err != nil { // it leaves
		t.Fatal(err)
	}
	refused(s.Agree(ctx, frontier.Worker{ID: "b"}, time.Minute, other))
	if err := s.Matches(ctx, Terms{Grouping: "by address"}); err != nil { // nobody paces anything
		t.Error(err)
	}
	if err := s.Agree(ctx, frontier.Worker{ID: "c"}, time.Minute, Terms{Grouping: "by address", Ledger: "one"}); err != nil {
		t.Error(err)
	}
}
