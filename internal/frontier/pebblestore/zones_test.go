package pebblestore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"tiptoe/internal/frontier"
)

func TestAJumpSkipsDeadIDsOnlyAndAllThatAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var z zone
		dead := map[uint64]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "notes") {
			from := rapid.Uint64Range(0, 100).Draw(t, "from")
			to := rapid.Uint64Range(0, 100).Draw(t, "to")
			z.note(7, from, to)
			for id := from; id < to; id++ {
				dead[id] = true
			}
		}
		for id := range uint64(110) {
			want := id
			for dead[want] {
				want++
			}
			if got := z.jump(7, id); got != want {
				t.Fatalf("jump from %d to %d, want %d; %v", id, got, want, z.prio[7])
			}
			if got := z.jump(8, id); got != id {
				t.Fatalf("another priority jumps from %d to %d", id, got)
			}
		}
	})
}

func TestAZoneKeepsABoundedNumberOfStretches(t *testing.T) {
	var z zone
	for i := range uint64(1000) {
		z.note(1, 10*i, 10*i+5)
	}
	if n := len(z.prio[1]); n != maxStretches {
		t.Errorf("%d stretches", n)
	}
	z.note(1, 5, 10) // joins the first two
	if got := z.jump(1, 0); got != 15 {
		t.Errorf("jump to %d, want 15", got)
	}
}

func TestZonesRememberABoundedNumberOfQueues(t *testing.T) {
	var z zones
	for i := range 2 * maxZones {
		z.put(fmt.Append(nil, i))
	}
	if len(z.m) != maxZones {
		t.Errorf("%d queues", len(z.m))
	}
}

func TestAQueueWithManyFinishedEntriesIsWalkedOverOnce(t *testing.T) {
	s := openMem(t, Options{})
	const n = 8_000
	var entries []frontier.Entry
	for i := range n {
		e := entryOf(1, i)
		e.Group, e.Prio = "busy.example", uint8(i%3)
		entries = append(entries, e)
	}
	added := commit(t, s, &frontier.Batch{Add: entries})
	var acks []frontier.Ref
	for i, e := range added {
		if i%2000 != 0 { // four stay behind: retries that wait
			acks = append(acks, e.Ref())
		}
	}
	commit(t, s, &frontier.Batch{Ack: acks})

	walk := func() (steps int64, found int) {
		t.Helper()
		before := s.Stats().Walked
		w, err := s.Window(ctx, "busy.example", 1, frontier.Pos{}, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Stats().Walked - before, len(w)
	}
	for i := range 2 {
		if steps, found := walk(); found != 4 || steps < n/2 {
			t.Fatalf("walk %d found %d in %d steps; the test expects it to be long", i, found, steps)
		}
	}
	if steps, found := walk(); found != 4 || steps > 100 {
		t.Errorf("a third walk took %d steps and found %d of 4", steps, found)
	}

	// What comes later is found, the short way too.
	late := entryOf(1, n)
	late.Group, late.Prio = "busy.example", 1
	commit(t, s, &frontier.Batch{Add: []frontier.Entry{late}})
	if steps, found := walk(); found != 5 || steps > 100 {
		t.Errorf("after an addition: %d steps, %d of 5", steps, found)
	}
	if err := s.DropCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if len(s.deadZones.m) != 0 {
		t.Error("a dropped crawl's queues are remembered")
	}
}
