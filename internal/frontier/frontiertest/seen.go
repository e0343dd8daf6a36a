package frontiertest

import (
	"fmt"

	"tiptoe/internal/frontier"
)

var seenChecks = []check{
	{name: "a URL is queued once, however often it is offered", run: func(h *harness) {
		h.openCrawl(1)
		e := page("a.example", "x")
		if n := len(h.add(e, e, e)); n != 1 {
			h.Fatalf("one batch queued it %d times", n)
		}
		other := withPrio(9, e) // the URL is the identity, nothing else
		other.Group, other.Depth, other.FoundOn = "b.example", 3, "http://elsewhere/"
		if n := len(h.add(other)); n != 0 {
			h.Fatalf("another group queued it again")
		}
		h.commit(&frontier.Batch{Ack: refs(h.window(1, "a.example"))})
		if n := len(h.add(e, other)); n != 0 {
			h.Fatalf("it was queued again after its end")
		}
		h.same("the queues", h.queues(1), map[string]int{})
	}},
	{name: "of URLs that differ in one byte each is queued", run: func(h *harness) {
		h.openCrawl(1)
		list := pages("a.example", 2000)
		if n := len(h.add(list...)); n != len(list) {
			h.Fatalf("queued %d of %d", n, len(list))
		}
	}},
	{name: "a marked URL is never queued, a queued one may be marked", run: func(h *harness) {
		h.openCrawl(1)
		m, e := page("a.example", "m"), page("a.example", "e")
		h.commit(&frontier.Batch{Mark: []frontier.Mark{{Crawl: 1, FP: m.Fingerprint()}, {Crawl: 1, FP: m.Fingerprint()}}})
		added := h.add(m, e)
		h.same("what was added", urls(added), []string{e.URL})
		h.commit(&frontier.Batch{Mark: []frontier.Mark{{Crawl: 1, FP: e.Fingerprint()}}})
		h.same("the window", h.window(1, "a.example"), added)
	}},
	{name: "a URL added and marked in one batch is queued", run: func(h *harness) {
		h.openCrawl(1)
		e := page("a.example", "x")
		added := h.commit(&frontier.Batch{Add: []frontier.Entry{e}, Mark: []frontier.Mark{{Crawl: 1, FP: e.Fingerprint()}}})
		h.same("what was added", urls(added), []string{e.URL})
		if n := len(h.add(e)); n != 0 {
			h.Fatal("it was queued twice")
		}
	}},
	{name: "Seen is never true for a URL that was not seen", run: func(h *harness) {
		h.openCrawl(1)
		h.add(pages("a.example", 3000)...)
		for i := range 20000 {
			fp := fingerprint(fmt.Sprintf("https://b.example/%d", i))
			if h.s.Seen(1, fp) {
				h.Fatalf("URL %d was not seen", i)
			}
			if n := h.s.InLinks(1, fp); n != 0 {
				h.Fatalf("URL %d has %d in-links", i, n)
			}
		}
		e := page("a.example", "p1")
		if h.s.Seen(2, e.Fingerprint()) {
			h.Fatal("another crawl has seen it")
		}
	}},
	{name: "in-links grow with each look and never pass the number of offers", run: func(h *harness) {
		h.openCrawl(1)
		fp := fingerprint("https://a.example/x")
		offers := 0
		if h.s.Seen(1, fp) {
			h.Fatal("seen before it was offered")
		}
		h.add(page("a.example", "x"))
		offers += 2
		last := h.s.InLinks(1, fp)
		for range 1000 {
			known := h.s.Seen(1, fp)
			offers++
			n := h.s.InLinks(1, fp)
			if n < last || n > offers || known && n == 0 {
				h.Fatalf("%d in-links after %d, %d offers, known %t", n, last, offers, known)
			}
			last = n
		}
	}},
}

var noteChecks = []check{
	{name: "a note is read as written, replaced and deleted", run: func(h *harness) {
		put := func(v []byte) {
			h.commit(&frontier.Batch{Notes: []frontier.Note{{Group: "a.example", Name: "clock", Value: v}}})
		}
		if v := h.note("a.example", "clock"); v != nil {
			h.Fatalf("there is a note already: %q", v)
		}
		put([]byte("one"))
		h.same("the note", h.note("a.example", "clock"), []byte("one"))
		put([]byte("two\x00\xff"))
		h.same("the note", h.note("a.example", "clock"), []byte("two\x00\xff"))
		put([]byte{})
		if v := h.note("a.example", "clock"); v == nil || len(v) != 0 {
			h.Fatalf("an empty note reads as %v", v)
		}
		put(nil)
		if v := h.note("a.example", "clock"); v != nil {
			h.Fatalf("a deleted note reads as %q", v)
		}
		put(nil)
	}},
	{name: "the last of several values in one batch stays", run: func(h *harness) {
		n := func(v string) frontier.Note {
			return frontier.Note{Group: "a.example", Name: "clock", Value: []byte(v)}
		}
		h.commit(&frontier.Batch{Notes: []frontier.Note{n("one"), n("two"), n("three")}})
		h.same("the note", h.note("a.example", "clock"), []byte("three"))
	}},
	{name: "notes of other names and groups are left alone", run: func(h *harness) {
		all := []frontier.Note{
			{Group: "ab", Name: "c", Value: []byte("1")},
			{Group: "a", Name: "bc", Value: []byte("2")},
			{Group: "", Name: "abc", Value: []byte("3")},
			{Group: "abc", Name: "", Value: []byte("4")},
			{Group: "a", Name: "b", Value: []byte("5")},
		}
		h.commit(&frontier.Batch{Notes: all})
		h.commit(&frontier.Batch{Notes: []frontier.Note{{Group: "a", Name: "b"}}})
		for _, n := range all[:4] {
			h.same(n.Group+"/"+n.Name, h.note(n.Group, n.Name), n.Value)
		}
	}},
	{name: "a note that was read belongs to the reader", run: func(h *harness) {
		h.commit(&frontier.Batch{Notes: []frontier.Note{{Group: "a", Name: "b", Value: []byte("value")}}})
		copy(h.note("a", "b"), "XXXXX")
		h.same("the note", h.note("a", "b"), []byte("value"))
	}},
	{name: "a note of a megabyte is kept whole", run: func(h *harness) {
		big := make([]byte, 1<<20)
		for i := range big {
			big[i] = byte(i * 7 >> 3)
		}
		h.commit(&frontier.Batch{Notes: []frontier.Note{{Group: "a", Name: "robots", Value: big}}})
		h.same("the note", h.note("a", "robots"), big)
	}},
}
