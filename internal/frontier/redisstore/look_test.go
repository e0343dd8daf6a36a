package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

func Test_whoever_looks_sees_who_holds_a_group_and_changes_nothing(t *testing.T) {
	r := testenv.StartRedis(t)
	ctx := t.Context()
	look := Options{URL: r.URL(), ReadOnly: true}
	if _, err := Open(ctx, look); err == nil || !strings.Contains(err.Error(), "no fleet has worked there yet") {
		t.Fatalf("an empty Redis: %v", err)
	}
	if n, err := r.Do("DBSIZE"); err != nil || n != "0" {
		t.Fatalf("looking made %s keys (%v)", n, err)
	}

	worker, err := Open(ctx, Options{URL: r.URL(), Shards: 3}) // not the default: it is read
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	const ttl = 4 * time.Second
	if _, err := worker.Heartbeat(ctx, frontier.Worker{ID: "host-1-ab", Waiting: "for nothing"}, ttl); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := worker.Claim(ctx, "host-1-ab", ttl, "a.example"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	note := frontier.Note{Group: "a.example", Name: "n", Value: []byte("v")}
	if _, err := worker.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{note}}); err != nil {
		t.Fatal(err)
	}

	s, err := Open(ctx, look)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := r.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	who, left, err := s.Holder(ctx, "a.example")
	if err != nil || who != "host-1-ab" || left <= 0 || left > ttl {
		t.Errorf("held by %q for %v (%v)", who, left, err)
	}
	if who, _, err := s.Holder(ctx, "b.example"); err != nil || who != "" {
		t.Errorf("a free group is held by %q (%v)", who, err)
	}
	if live, err := s.Live(ctx); err != nil || len(live) != 1 || live[0].Waiting != "for nothing" {
		t.Errorf("live: %+v (%v)", live, err)
	}
	if v, err := s.Note(ctx, "a.example", "n"); err != nil || string(v) != "v" {
		t.Errorf("note %q (%v)", v, err)
	}
	if _, err := s.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{note}}); !errors.Is(err, errReadOnly) {
		t.Errorf("a write: %v", err)
	}
	after, err := r.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"evalsha", "eval", "setnx", "subscribe"} {
		if stat(before, cmd) != stat(after, cmd) {
			t.Errorf("looking ran %s: %q, then %q", cmd, stat(before, cmd), stat(after, cmd))
		}
	}

	// Redis' clock ends a lease, whether or not anybody has tidied up.
	deadline := time.Now().Add(4 * ttl)
	for who != "" && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		if who, _, err = s.Holder(ctx, "a.example"); err != nil {
			t.Fatal(err)
		}
	}
	live, err := s.Live(ctx)
	if err != nil || who != "" || len(live) != 0 {
		t.Errorf("after the lease: held by %q, live %+v (%v)", who, live, err)
	}
}

// stat is a command's line in INFO commandstats.
func stat(info, cmd string) string {
	for line := range strings.Lines(info) {
		if calls, ok := strings.CutPrefix(line, "cmdstat_"+cmd+":"); ok {
			calls, _, _ = strings.Cut(calls, ",")
			return calls
		}
	}
	return ""
}
