package frontiertest

import (
	"fmt"

	"tiptoe/internal/frontier"
)

var crawlChecks = []check{
	{name: "two crawls share neither queues nor what they have seen", run: func(h *harness) {
		h.openCrawl(1, 2, 256, 65536)
		e := page("a.example", "x")
		for _, c := range []frontier.CrawlID{1, 2, 256, 65536} {
			added := h.add(inCrawl(c, e))
			if len(added) != 1 {
				h.Fatalf("crawl %d did not queue it", c)
			}
			h.same("the window", h.window(c, "a.example"), added)
		}
		h.commit(&frontier.Batch{Ack: refs(h.window(2, "a.example"))})
		h.same("crawl 1", h.queues(1), map[string]int{"a.example": 1})
		h.same("crawl 2", h.queues(2), map[string]int{})
		h.same("crawl 256", h.queues(256), map[string]int{"a.example": 1})
	}},
	{name: "one batch may serve several crawls", run: func(h *harness) {
		h.openCrawl(1, 2)
		e := page("a.example", "x")
		added := h.add(e, inCrawl(2, e), e, inCrawl(2, e))
		if len(added) != 2 || added[0].Crawl != 1 || added[1].Crawl != 2 {
			h.Fatalf("added %+v", added)
		}
	}},
	{name: "closing a crawl keeps what it stored", run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 10)...)
		h.commit(&frontier.Batch{Ack: refs(all[:5]), Mark: []frontier.Mark{{Crawl: 1, FP: fingerprint("https://a.example/m")}}})
		h.s.CloseCrawl(1)
		h.s.CloseCrawl(1)
		h.same("the window of a closed crawl", h.window(1, "a.example"), all[5:])
		h.same("the queues of a closed crawl", h.queues(1), map[string]int{"a.example": 5})
		h.openCrawl(1)
		if again := h.add(append(pages("a.example", 10), page("a.example", "m"))...); len(again) != 0 {
			h.Fatalf("queued again: %v", urls(again))
		}
	}},
	{name: "opening an open crawl changes nothing", run: func(h *harness) {
		h.openCrawl(1)
		h.add(page("a.example", "x"))
		h.openCrawl(1)
		if n := len(h.add(page("a.example", "x"))); n != 0 {
			h.Fatal("it was queued again")
		}
	}},
	{name: "dropping a crawl deletes it and nothing else", run: func(h *harness) {
		h.openCrawl(1, 2, 3)
		for c := frontier.CrawlID(1); c <= 3; c++ {
			for i := range 5 {
				h.add(inCrawl(c, page(fmt.Sprintf("h%d.example", i), "x")))
			}
		}
		h.commit(&frontier.Batch{Notes: []frontier.Note{{Group: "h1.example", Name: "clock", Value: []byte("v")}}})
		if err := h.s.DropCrawl(ctx, 2); err != nil {
			h.Fatal(err)
		}
		h.same("the dropped crawl", h.queues(2), map[string]int{})
		h.same("a window of the dropped crawl", h.window(2, "h1.example"), []frontier.Entry{})
		h.same("the note", h.note("h1.example", "clock"), []byte("v"))
		for _, c := range []frontier.CrawlID{1, 3} {
			h.same("another crawl", len(h.queues(c)), 5)
			if n := len(h.add(inCrawl(c, page("h1.example", "x")))); n != 0 {
				h.Fatalf("crawl %d forgot what it had seen", c)
			}
		}
	}},
	{name: "a crawl that was dropped begins anew with larger IDs", run: func(h *harness) {
		h.openCrawl(1)
		before := h.add(pages("a.example", 10)...)
		if err := h.s.DropCrawl(ctx, 1); err != nil {
			h.Fatal(err)
		}
		h.openCrawl(1)
		after := h.add(pages("a.example", 10)...)
		h.same("what was added", urls(after), urls(before))
		if after[0].ID <= before[9].ID {
			h.Fatalf("ID %d after %d", after[0].ID, before[9].ID)
		}
		h.same("the window", h.window(1, "a.example"), after)
	}},
	{name: "dropping a crawl that never was is no error", run: func(h *harness) {
		if err := h.s.DropCrawl(ctx, 42); err != nil {
			h.Fatal(err)
		}
	}},
}

var restartChecks = []check{
	{name: "everything committed is there after a restart", needsReopen: true, run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 20)...)
		all[3].Tries = 2
		h.commit(&frontier.Batch{
			Ack:    refs(all[10:]),
			Update: all[3:4],
			Mark:   []frontier.Mark{{Crawl: 1, FP: fingerprint("https://a.example/m")}},
			Notes:  []frontier.Note{{Group: "a.example", Name: "clock", Value: []byte("v")}},
		})
		h.s = h.reopen(h, h.s)
		h.same("the window", h.window(1, "a.example"), all[:10])
		h.same("the queues", h.queues(1), map[string]int{"a.example": 10})
		h.same("the note", h.note("a.example", "clock"), []byte("v"))
		h.openCrawl(1)
		if again := h.add(append(pages("a.example", 20), page("a.example", "m"))...); len(again) != 0 {
			h.Fatalf("queued again: %v", urls(again))
		}
	}},
	{name: "IDs ascend over restarts", needsReopen: true, run: func(h *harness) {
		var last uint64
		for i := range 5 {
			h.openCrawl(1)
			for _, e := range h.add(page("a.example", fmt.Sprint(i)), page("a.example", fmt.Sprint("x", i))) {
				if e.ID <= last {
					h.Fatalf("ID %d after %d", e.ID, last)
				}
				last = e.ID
			}
			h.s = h.reopen(h, h.s)
		}
	}},
	{name: "a dropped crawl stays dropped", needsReopen: true, run: func(h *harness) {
		h.openCrawl(1)
		h.add(pages("a.example", 5)...)
		if err := h.s.DropCrawl(ctx, 1); err != nil {
			h.Fatal(err)
		}
		h.s = h.reopen(h, h.s)
		h.same("the queues", h.queues(1), map[string]int{})
		h.openCrawl(1)
		if n := len(h.add(pages("a.example", 5)...)); n != 5 {
			h.Fatalf("queued %d of 5", n)
		}
	}},
}
