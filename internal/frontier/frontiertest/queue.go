package frontiertest

import (
	"errors"
	"fmt"

	"tiptoe/internal/frontier"
)

var queueChecks = []check{
	{name: "a window is ordered by priority and then by ID", run: func(h *harness) {
		h.openCrawl(1)
		prios := []uint8{5, 0, 255, 5, 128, 0, 1, 127, 255, 5}
		var want [256][]string
		for i, p := range prios {
			e := withPrio(p, page("a.example", fmt.Sprint(i)))
			want[p] = append(want[p], e.URL)
			h.add(e)
		}
		var order []string
		for _, list := range want {
			order = append(order, list...)
		}
		h.same("the window", urls(h.window(1, "a.example")), order)
	}},
	{name: "a window keeps its order past every byte length of an ID", run: func(h *harness) {
		h.openCrawl(1)
		list := pages("a.example", 700) // IDs past one byte
		for i := 0; i < len(list); i += 50 {
			h.add(list[i : i+50]...)
		}
		h.same("the window", urls(h.window(1, "a.example")), urls(list))
	}},
	{name: "a window is at most as long as asked for", run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 5)...)
		for n := range 7 {
			h.same(fmt.Sprintf("a window of %d", n), h.windowAfter(1, "a.example", frontier.Pos{}, n), all[:min(n, 5)])
		}
	}},
	{name: "a window begins after the place given, whether it is queued or not", run: func(h *harness) {
		h.openCrawl(1)
		var all []frontier.Entry
		for i, p := range []uint8{1, 1, 1, 3, 3} {
			all = append(all, h.add(withPrio(p, page("a.example", fmt.Sprint(i))))...)
		}
		for i := range all {
			h.same(fmt.Sprintf("after entry %d", i), h.windowAfter(1, "a.example", all[i].Pos(), 10), all[i+1:])
		}
		h.same("after a priority nobody has", h.windowAfter(1, "a.example", frontier.Pos{Prio: 2}, 10), all[3:])
		h.same("after all IDs of a priority", h.windowAfter(1, "a.example", frontier.Pos{Prio: 1, ID: 1 << 60}, 10), all[3:])
		h.same("after everything", h.windowAfter(1, "a.example", frontier.Pos{Prio: 255, ID: 1 << 60}, 10), []frontier.Entry{})
		h.commit(&frontier.Batch{Ack: refs(all[1:2])})
		h.same("after one that is gone", h.windowAfter(1, "a.example", all[1].Pos(), 10), all[2:])
	}},
	{name: "a window is appended to what the caller has", run: func(h *harness) {
		h.openCrawl(1)
		added := h.add(page("a.example", "x"))
		mine := page("mine", "y")
		got, err := h.s.Window(ctx, "a.example", 1, frontier.Pos{}, 10, []frontier.Entry{mine})
		if err != nil {
			h.Fatal(err)
		}
		h.same("the window", got, []frontier.Entry{mine, added[0]})
	}},
	{name: "paging visits each entry once while others come and go", run: func(h *harness) {
		h.openCrawl(1)
		all := h.add(pages("a.example", 50)...)
		visited := map[string]int{}
		var after frontier.Pos
		for turn := 0; ; turn++ {
			part := h.windowAfter(1, "a.example", after, 7)
			if len(part) == 0 {
				break
			}
			for _, e := range part {
				visited[e.URL]++
			}
			after = part[len(part)-1].Pos()
			h.commit(&frontier.Batch{Ack: refs(part[:3])})
			if turn < 3 {
				all = append(all, h.add(page("a.example", fmt.Sprintf("late%d", turn)))...)
			}
		}
		for _, e := range all {
			if visited[e.URL] != 1 {
				h.Fatalf("%s was visited %d times", e.URL, visited[e.URL])
			}
		}
	}},
	{name: "groups whose names begin alike do not mix", run: func(h *harness) {
		h.openCrawl(1)
		names := []string{"", "a", "a.", "a.example", "a.example:8080", "a.exampl", "b", "a\x01", "ä.example", "\xff", "\xff\xff"}
		want := map[string]int{}
		for i, g := range names {
			list := make([]frontier.Entry, i+1)
			for j := range list {
				list[j] = frontier.Entry{Crawl: 1, Group: g, URL: fmt.Sprintf("http://%d/%d", i, j)}
			}
			h.add(list...)
			want[g] = len(list)
		}
		h.same("the queues", h.queues(1), want)
		for g, n := range want {
			for _, e := range h.window(1, g) {
				if e.Group != g {
					h.Fatalf("the window of %q shows an entry of %q", g, e.Group)
				}
				n--
			}
			if n != 0 {
				h.Fatalf("the window of %q lacks %d entries", g, n)
			}
		}
	}},
	{name: "the queue of nobody is empty", run: func(h *harness) {
		h.openCrawl(1)
		h.add(page("a.example", "x"))
		h.same("an unknown group", h.window(1, "b.example"), []frontier.Entry{})
		h.same("an unknown crawl", h.window(2, "a.example"), []frontier.Entry{})
		h.same("the queues of an unknown crawl", h.queues(2), map[string]int{})
	}},
	{name: "Queues lists each queue that is not empty, once, with its length", run: func(h *harness) {
		h.openCrawl(1)
		want := map[string]int{}
		for i := range 30 {
			g := fmt.Sprintf("h%d.example", i)
			all := h.add(pages(g, i+1)...)
			h.commit(&frontier.Batch{Ack: refs(all[:i/2+i%2])})
			if left := len(all) - (i/2 + i%2); left > 0 {
				want[g] = left
			}
		}
		gone := h.add(pages("gone.example", 3)...)
		h.commit(&frontier.Batch{Ack: refs(gone)})
		h.same("the queues", h.queues(1), want)
	}},
	{name: "an error of the callback ends Queues and is returned", run: func(h *harness) {
		h.openCrawl(1)
		for i := range 3 {
			h.add(page(fmt.Sprintf("h%d.example", i), "x"))
		}
		stop, calls := errors.New("stop"), 0
		err := h.s.Queues(ctx, 1, func(frontier.Queue) error { calls++; return stop })
		if !errors.Is(err, stop) || calls != 1 {
			h.Fatalf("Queues returned %v after %d calls", err, calls)
		}
	}},
	{name: "the callback of Queues may read the store", run: func(h *harness) {
		h.openCrawl(1)
		for i := range 5 {
			h.add(pages(fmt.Sprintf("h%d.example", i), 3)...)
		}
		err := h.s.Queues(ctx, 1, func(q frontier.Queue) error {
			if got := len(h.window(1, q.Group)); got != q.Count {
				return fmt.Errorf("%s: %d in the window, %d listed", q.Group, got, q.Count)
			}
			return nil
		})
		if err != nil {
			h.Fatal(err)
		}
	}},
	{name: "a long-drained queue still shows what comes in", run: func(h *harness) {
		// More dead entries, of several priorities, than any shortcut over
		// them could overlook; then single ones before, between and behind.
		h.openCrawl(1)
		const n = 6000
		var left []frontier.Entry
		for prio := uint8(1); prio <= 3; prio++ {
			list := make([]frontier.Entry, n/3)
			for i := range list {
				list[i] = withPrio(prio, page("a.example", fmt.Sprintf("%d/%d", prio, i)))
			}
			added := h.add(list...)
			left = append(left, added[0], added[len(added)/2])
			h.commit(&frontier.Batch{Ack: refs(append(append([]frontier.Entry(nil), added[1:len(added)/2]...), added[len(added)/2+1:]...))})
		}
		for turn := range 6 {
			h.same(fmt.Sprintf("the window, turn %d", turn), h.window(1, "a.example"), left)
			h.same("a short window", h.windowAfter(1, "a.example", frontier.Pos{}, 3), left[:3])
			prio := uint8(turn % 5) // 0 and 4 are new
			e := h.add(withPrio(prio, page("a.example", fmt.Sprintf("late%d", turn))))[0]
			at := len(left)
			for at > 0 && e.Pos().Less(left[at-1].Pos()) {
				at--
			}
			left = append(left[:at], append([]frontier.Entry{e}, left[at:]...)...)
		}
		h.commit(&frontier.Batch{Ack: refs(left)})
		h.same("the window at the end", h.window(1, "a.example"), []frontier.Entry{})
		h.same("the queues at the end", h.queues(1), map[string]int{})
	}},
}
