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
	if err := s.Agree(ctx, worker("a"), time.Minute, "before"); err != nil {
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
	err := s.Agree(ctx, worker("b"), time.Minute, "one way")
	if err == nil || !strings.Contains(err.Error(), "by before, this process by one way") {
		t.Fatalf("while another one begins: %v", err)
	}
	if names := listed(); names != "c" {
		t.Errorf("after a refusal %q are listed", names)
	}
	if err := s.Agree(ctx, worker("c"), time.Minute, "another way"); err != nil {
		t.Error(err)
	}
	if err := s.Agree(ctx, worker("d"), time.Minute, "another way"); err != nil {
		t.Error(err)
	}
	if err := s.Agree(ctx, worker("c"), time.Minute, "before"); err == nil {
		t.Error("it was changed under a worker that is there")
	}
}
