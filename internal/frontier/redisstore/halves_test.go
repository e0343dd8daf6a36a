package redisstore

import (
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

// One call frees no more than reapMost groups. What is left of the session must
// not go on: its holder believes in all of them until it has asked.
func Test_a_session_that_is_being_reaped_does_not_go_on_with_what_is_left_of_it(t *testing.T) {
	opts := Options{URL: testenv.StartRedis(t).URL(), Prefix: newPrefix(), Shards: 1}
	a, b := openTest(t, opts), openTest(t, opts)
	for _, s := range []*Store{a, b} {
		if err := s.OpenCrawl(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	add := []frontier.Entry{}
	for i := range reapMost + 100 {
		add = append(add, entryOf(fmt.Sprintf("h%d.example", i), "1"))
	}
	if _, err := a.Commit(ctx, &frontier.Batch{Add: add}); err != nil {
		t.Fatal(err)
	}
	const short, long = time.Second, time.Minute // by the longer one nobody was silent
	if got, err := a.Acquire(ctx, "a", short, len(add), nil); err != nil || len(got) != len(add) {
		t.Fatal(len(got), err)
	}
	if _, err := a.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf("x.example", "1")}}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Acquire(ctx, "b", long, 10, nil); err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	time.Sleep(short + 50*time.Millisecond)
	if _, _, err := b.Renew(ctx, "b", long); err != nil {
		t.Fatal(err)
	}
	free, err := b.client.Do(ctx, b.client.B().Zrange().Key(b.key(0, "f")).Min("0").Max("-1").Build()).AsStrSlice()
	if err != nil || len(free) != reapMost {
		t.Fatalf("%d groups were freed by one call: %v", len(free), err)
	}
	lost, _, err := a.Renew(ctx, "a", long)
	if err != nil || len(lost) != len(add) {
		t.Errorf("a lost %d of %d groups: %v", len(lost), len(add), err)
	}
	for _, e := range add {
		if d := a.Deadline(e.Group); !d.IsZero() {
			t.Fatalf("a may act on %s until %s", e.Group, d)
		}
	}
}
