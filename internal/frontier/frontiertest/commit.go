package frontiertest

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"tiptoe/internal/frontier"
)

var commitChecks = []check{
	{name: "a new URL is queued and returned with an ID", run: func(h *harness) {
		h.openCrawl(1)
		e := page("a.example", "x")
		e.ID = 999 // ignored
		added := h.add(e)
		if len(added) != 1 || added[0].ID == 0 {
			h.Fatalf("added %+v, want one entry with an ID", added)
		}
		e.ID = added[0].ID
		h.same("what was added", added, []frontier.Entry{e})
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{e})
	}},
	{name: "new entries are returned in the order of the batch and IDs ascend", run: func(h *harness) {
		h.openCrawl(1)
		batch := append(pages("b.example", 5), pages("a.example", 5)...)
		last := map[string]uint64{}
		for _, part := range [][]frontier.Entry{batch[:3], batch[2:7], batch} {
			for _, e := range h.add(part...) {
				clock := h.clockOf(&e)
				if e.ID <= last[clock] {
					h.Fatalf("ID %d came after %d", e.ID, last[clock])
				}
				last[clock] = e.ID
			}
		}
		if h.failures {
			return
		}
		var got []string
		h2 := append(h.window(1, "b.example"), h.window(1, "a.example")...)
		slices.SortFunc(h2, func(a, b frontier.Entry) int { return int(a.ID) - int(b.ID) })
		got = urls(h2)
		h.same("order of IDs", got, urls(batch))
	}},
	{name: "every field of an entry survives", run: func(h *harness) {
		h.openCrawl(1, math.MaxInt64)
		full := frontier.Entry{
			Crawl: math.MaxInt64, Group: "[2001:db8::1]:8443", Prio: 255, Kind: frontier.KindSitemap, Via: frontier.ViaSource,
			URL: "https://[2001:db8::1]:8443/" + strings.Repeat("long/", 2000) + "?q=%00\xff",
			// Depth, hops and tries at their ends.
			Depth: math.MaxUint16, Hops: 255, Tries: 255, TrustPrivate: true,
			NotBefore: time.Date(2399, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
			FoundOn:   "https://[2001:db8::1]:8443/long/and/then",
			Memo:      "MISS 812",
			Chain:     []string{"http://first.example/", "", "https://[2001:db8::1]:8443/"},
		}
		bare := frontier.Entry{Crawl: 1, Group: "", URL: "x"}
		past := frontier.Entry{Crawl: 1, Group: "past", URL: "http://past/", NotBefore: time.Unix(-5, 1).UTC(), FoundOn: "http://past/"}
		for _, e := range []frontier.Entry{full, bare, past} {
			added := h.add(e)
			if len(added) != 1 {
				h.Fatalf("added %d entries", len(added))
			}
			e.ID = added[0].ID
			h.same("what was added", added[0], e)
			h.same("the window", h.window(e.Crawl, e.Group), []frontier.Entry{e})
		}
	}},
	{name: "a URL that was set aside is queued when it is released, and stays seen", run: func(h *harness) {
		h.openCrawl(1)
		e := page("a.example", "trap")
		h.commit(&frontier.Batch{Mark: []frontier.Mark{{Crawl: 1, FP: e.Fingerprint()}}})
		if added := h.add(e); len(added) != 0 {
			h.Fatalf("a marked URL was queued: %+v", added)
		}
		e.Again = true
		added := h.add(e, e)
		if len(added) != 1 {
			h.Fatalf("released into %d entries, want 1", len(added))
		}
		e.ID, e.Again = added[0].ID, false
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{e})
		h.commit(&frontier.Batch{Ack: []frontier.Ref{e.Ref()}})
		if added := h.add(e); len(added) != 0 {
			h.Fatalf("it was queued again after it was done: %+v", added)
		}
	}},
	{name: "an empty batch is no error", run: func(h *harness) {
		if added := h.commit(&frontier.Batch{}); len(added) != 0 {
			h.Fatalf("added %v", added)
		}
	}},
	{name: "a batch larger than a store's buffers is applied whole", run: func(h *harness) {
		h.openCrawl(1)
		list := pages("a.example", 10_000)
		for i := range list {
			list[i].FoundOn = "https://b.example/" + strings.Repeat("x", 900)
		}
		added := h.add(list...)
		if len(added) != len(list) {
			h.Fatalf("added %d of %d", len(added), len(list))
		}
		h.commit(&frontier.Batch{Ack: refs(added[1:])})
		h.same("the window", h.window(1, "a.example"), added[:1])
		if again := h.add(list...); len(again) != 0 {
			h.Fatalf("%d were queued again", len(again))
		}
	}},
	{name: "a batch is the caller's again when Commit returns", run: func(h *harness) {
		h.openCrawl(1)
		b := &frontier.Batch{
			Add:   pages("a.example", 2),
			Notes: []frontier.Note{{Group: "a.example", Name: "clock", Value: []byte("before")}},
		}
		b.Add[0].Chain = []string{"http://first.example/"}
		want := h.commit(b)
		want = append([]frontier.Entry(nil), want...)
		want[0].Chain = []string{"http://first.example/"}
		b.Add[0].Chain[0] = "changed"
		b.Add[0].URL, b.Add[1].Group = "changed", "changed"
		copy(b.Notes[0].Value, "AFTER!")
		h.same("the window", h.window(1, "a.example"), want)
		h.same("the note", h.note("a.example", "clock"), []byte("before"))
	}},
	{name: "Commit leaves the batch as it was", run: func(h *harness) {
		h.openCrawl(1)
		e := page("a.example", "x")
		e.ID = 7
		b := &frontier.Batch{Add: []frontier.Entry{e, e}, Notes: []frontier.Note{{Group: "g", Name: "n", Value: []byte("v")}}}
		h.commit(b)
		h.same("the batch", b, &frontier.Batch{
			Add: []frontier.Entry{e, e}, Notes: []frontier.Note{{Group: "g", Name: "n", Value: []byte("v")}},
		})
	}},
	{name: "an update replaces the stored entry in its place", run: func(h *harness) {
		h.openCrawl(1)
		want := h.add(pages("a.example", 3)...)
		want[1].Tries, want[1].NotBefore = 2, time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
		h.commit(&frontier.Batch{Update: want[1:2]})
		h.same("the window", h.window(1, "a.example"), want)
		want[1].Tries, want[1].NotBefore = 3, time.Time{}
		h.commit(&frontier.Batch{Update: want[1:2]})
		h.same("the window", h.window(1, "a.example"), want)
		h.same("the queues", h.queues(1), map[string]int{"a.example": 3})
	}},
	{name: "an update of an entry that is gone leaves it gone", run: func(h *harness) {
		h.openCrawl(1)
		e := h.add(page("a.example", "x"))[0]
		h.commit(&frontier.Batch{Ack: []frontier.Ref{e.Ref()}})
		e.Tries = 1
		never := page("a.example", "never")
		never.ID = e.ID + 1000
		h.commit(&frontier.Batch{Update: []frontier.Entry{e, never}})
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{})
		h.same("the queues", h.queues(1), map[string]int{})
	}},
	{name: "an entry updated and acknowledged in one batch is gone", run: func(h *harness) {
		h.openCrawl(1)
		e := h.add(page("a.example", "x"))[0]
		e.Tries = 1
		h.commit(&frontier.Batch{Update: []frontier.Entry{e}, Ack: []frontier.Ref{e.Ref()}})
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{})
	}},
	{name: "an acknowledged entry leaves the queue and never comes back", run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 4)...)
		h.commit(&frontier.Batch{Ack: refs(all[1:3])})
		if again := h.add(pages("a.example", 4)...); len(again) != 0 {
			h.Fatalf("queued again: %v", urls(again))
		}
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{all[0], all[3]})
		h.same("the queues", h.queues(1), map[string]int{"a.example": 2})
	}},
	{name: "acknowledging what is not queued is no error and removes nothing", run: func(h *harness) {
		h.openCrawl(1, 2)
		e := h.add(page("a.example", "x"))[0]
		near := []frontier.Ref{
			{Crawl: 2, Group: e.Group, Pos: e.Pos()},
			{Crawl: 1, Group: "b.example", Pos: e.Pos()},
			{Crawl: 1, Group: e.Group, Pos: frontier.Pos{Prio: e.Prio + 1, ID: e.ID}},
			{Crawl: 1, Group: e.Group, Pos: frontier.Pos{Prio: e.Prio, ID: e.ID + 1}},
			{Crawl: 77, Group: "nobody", Pos: frontier.Pos{}},
		}
		h.commit(&frontier.Batch{Ack: near})
		h.commit(&frontier.Batch{Ack: []frontier.Ref{e.Ref()}})
		h.commit(&frontier.Batch{Ack: []frontier.Ref{e.Ref()}})
		h.same("the window", h.window(1, "a.example"), []frontier.Entry{})
	}},
	{name: "acknowledging what is not queued keeps its neighbours", run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 3)...)
		h.commit(&frontier.Batch{Ack: []frontier.Ref{{Crawl: 1, Group: "a.example", Pos: frontier.Pos{Prio: 9, ID: all[1].ID}}}})
		h.same("the window", h.window(1, "a.example"), all)
	}},
	{name: "one batch adds, marks, updates, acknowledges and notes together", run: func(h *harness) {
		h.openCrawl(1)
		old := h.add(pages("a.example", 3)...)
		up := old[1]
		up.Tries = 4
		marked := page("b.example", "marked")
		added := h.commit(&frontier.Batch{
			Add:    []frontier.Entry{page("b.example", "new"), old[0], page("a.example", "new")},
			Mark:   []frontier.Mark{{Crawl: 1, FP: marked.Fingerprint()}},
			Update: []frontier.Entry{up},
			Ack:    []frontier.Ref{old[2].Ref()},
			Notes:  []frontier.Note{{Group: "b.example", Name: "robots", Value: []byte("User-agent: *")}},
		})
		h.same("what was added", urls(added), []string{"https://b.example/new", "https://a.example/new"})
		h.same("the window of a", h.window(1, "a.example"), []frontier.Entry{old[0], up, added[1]})
		h.same("the window of b", h.window(1, "b.example"), added[:1])
		h.same("the note", h.note("b.example", "robots"), []byte("User-agent: *"))
		if got := h.add(marked); len(got) != 0 {
			h.Fatalf("a marked URL was queued")
		}
	}},
	{name: "a commit under a cancelled context acknowledges nothing whose links it did not add", run: func(h *harness) {
		h.openCrawl(1)
		old := h.add(page("a.example", "old"))
		dead, cancel := context.WithCancel(ctx)
		cancel()
		b := &frontier.Batch{
			Add:   pages("b.example", 10),
			Ack:   refs(old),
			Notes: []frontier.Note{{Group: "a.example", Name: "n", Value: []byte("v")}},
		}
		_, err := h.s.Commit(dead, b)
		there := len(h.window(1, "b.example"))
		gone := len(h.window(1, "a.example")) == 0
		noted := h.note("a.example", "n") != nil
		if err == nil && (there != 10 || !gone || !noted) {
			h.Fatalf("Commit returned nil, but added %d, acknowledged %t, noted %t", there, gone, noted)
		}
		if there != 10 && (gone || noted) {
			h.Fatalf("added %d, acknowledged %t, noted %t", there, gone, noted)
		}
		h.commit(b)
		h.same("the queues", h.queues(1), map[string]int{"b.example": 10})
	}},
}
