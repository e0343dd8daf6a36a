package frontiertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"tiptoe/internal/frontier"
)

// boardChecks are about where workers meet: who is there, which crawls are on,
// what is left to do and to spend.
var boardChecks = []leaseCheck{
	{"the list of workers shows the living and forgets the silent", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		wa := frontier.Worker{ID: "a", Host: "one", Started: time.Unix(1_700_000_000, 0).UTC(), Hosts: 7, Rate: 12.5}
		wb := frontier.Worker{ID: "b", Host: "two", Waiting: "no work"}
		silent := map[string]time.Duration{}
		beat := func(m *member, w frontier.Worker, ttl time.Duration, want ...frontier.Worker) {
			f.Helper()
			roll, err := m.Heartbeat(ctx, w, ttl)
			if err != nil {
				f.Fatal(err)
			}
			live := roll.Live
			for i := range live {
				if live[i].Silent != 0 && live[i].ID == w.ID {
					f.Fatalf("%s is said to be silent for %s", w.ID, live[i].Silent)
				}
				silent[live[i].ID], live[i].Silent = live[i].Silent, 0
			}
			f.same("the living", live, want)
			if off := time.Since(roll.At).Abs(); off > 5*time.Second {
				f.Fatalf("the store's clock is %s off", off)
			}
		}
		beat(a, wa, long, wa)
		beat(b, wb, short, wa, wb)
		wa.Hosts = 8
		beat(a, wa, long, wa, wb)
		f.pass(short)
		beat(a, wa, long, wa)
		f.pass(short)
		beat(b, wb, long, wa, wb)
		if got := silent["a"]; got < short || got > short+long {
			f.Fatalf("a is said to be silent for %s, not for the %s since its heartbeat", got, short)
		}
		beat(b, wb, 0, wa)
	}},
	{"no two workers in the list have one number, and each keeps its own", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		beat := func(m *member, id string, ttl time.Duration) int {
			f.Helper()
			roll, err := m.Heartbeat(ctx, frontier.Worker{ID: id}, ttl)
			if err != nil {
				f.Fatal(err)
			}
			return roll.Number
		}
		na, nb, nc := beat(a, "a", long), beat(b, "b", short), beat(b, "c", long)
		if na == nb || nb == nc || nc == na {
			f.Fatalf("the numbers are %d, %d and %d", na, nb, nc)
		}
		f.same("number of a", beat(a, "a", long), na)
		f.pass(short)
		f.same("number of who comes when b has fallen silent", beat(a, "d", long), nb)
		if got := beat(b, "b", long); got == na || got == nb || got == nc {
			f.Fatalf("b came back and has the number %d of another", got)
		}
	}},
	{"a crawl that is dropped or was never there is not open", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"))
		if n, _, err := b.Pending(ctx, 1); n != 1 || err != nil {
			f.Fatal(n, err)
		}
		if err := a.DropCrawl(ctx, 1); err != nil {
			f.Fatal(err)
		}
		var gone *frontier.NotOpenError
		if _, _, err := b.Pending(ctx, 1); !errors.As(err, &gone) || gone.Crawl != 1 {
			f.Fatalf("pending of a crawl that was dropped: %v", err)
		}
		if _, _, err := b.Pending(ctx, 77); !errors.As(err, &gone) || gone.Crawl != 77 {
			f.Fatalf("pending of a crawl that never was: %v", err)
		}
		gone = nil
		if _, err := b.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{page("x.example", "2")}}); !errors.As(err, &gone) || gone.Crawl != 1 {
			f.Fatalf("an addition to a crawl that another process dropped: %v", err)
		}
	}},
	{"pending counts over all members and knows when it can be trusted", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		want := func(n int64) {
			f.Helper()
			for _, m := range f.members {
				if got, stable, err := m.Pending(ctx, 1); err != nil || got != n || !stable {
					f.Fatalf("%s counts %d (stable %t, %v), want %d", m.name, got, stable, err, n)
				}
			}
		}
		want(0)
		ea := a.add(pages("x.example", 5)...)
		eb := b.add(append(pages("y.example", 5), pages("x.example", 5)...)...)
		want(10)
		a.acquire(long, 10)
		if _, err := a.Commit(ctx, &frontier.Batch{Ack: refs(append(ea, eb...)), Add: pages("z.example", 2)}); err != nil {
			f.Fatal(err)
		}
		want(2)
	}},
	{"pending is not stable while work goes on", func(f *fleet) {
		// One worker moves a single entry along a chain of groups, so that
		// something is always pending; a zero that is called stable is a lie.
		a, b := f.start("a"), f.start("b")
		last := a.add(page("h0.example", "1"))
		var end sync.WaitGroup
		stop := make(chan struct{})
		var failure error
		end.Go(func() {
			defer close(stop)
			for i := 1; i < 150 && failure == nil; i++ {
				if _, failure = a.Acquire(ctx, "a", long, 10, nil); failure != nil {
					return
				}
				var next []frontier.Entry
				next, failure = a.Commit(ctx, &frontier.Batch{Ack: refs(last), Add: []frontier.Entry{page(fmt.Sprintf("h%d.example", i), "1")}})
				last = next
			}
		})
		for done := false; !done; {
			select {
			case <-stop:
				done = true
			default:
			}
			if n, stable, err := b.Pending(ctx, 1); err != nil || stable && (n < 1 || n > 2) {
				f.Fatalf("counted %d, stable %t, %v", n, stable, err)
			}
		}
		end.Wait()
		if failure != nil {
			f.Fatal(failure)
		}
	}},
	{"what was spent outlives the board and goes with the crawl", spending},
	{"what a superseded supervisor says of a crawl is refused", func(f *fleet) {
		m := f.start("w")
		say := func(c frontier.Announced, want error) {
			f.Helper()
			if err := m.Announce(ctx, c); !errors.Is(err, want) {
				f.Errorf("%+v: %v, want %v", c, err, want)
			}
		}
		say(frontier.Announced{ID: 1, By: "a"}, frontier.ErrSuperseded) // not on the board, and not its first word
		say(frontier.Announced{ID: 1, By: "a", First: true}, nil)
		say(frontier.Announced{ID: 1, By: "a", Held: true}, nil)
		say(frontier.Announced{ID: 1, By: "b", First: true}, nil) // takes it over
		say(frontier.Announced{ID: 1, By: "a"}, frontier.ErrSuperseded)
		if err := m.Withdraw(ctx, 1, "a"); !errors.Is(err, frontier.ErrSuperseded) {
			f.Errorf("a withdraws what is b's: %v", err)
		}
		if list, err := m.Crawls(ctx); err != nil || len(list) != 1 || list[0].By != "b" {
			f.Errorf("on the board: %+v, %v", list, err)
		}
		for range 2 { // an answer may have been lost
			if err := m.Withdraw(ctx, 1, "b"); err != nil {
				f.Error(err)
			}
		}
		say(frontier.Announced{ID: 1, By: "b"}, frontier.ErrSuperseded)
	}},
	{"work of a crawl that is shelved is offered again when it is next announced", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		say := func(c frontier.Announced) {
			f.Helper()
			if err := a.Announce(ctx, c); err != nil {
				f.Fatal(err)
			}
		}
		lease := func(want int) {
			f.Helper()
			leases := b.acquire(long, 10)
			if len(leases) != want {
				f.Fatalf("leased %+v, want %d groups", leases, want)
			}
			if err := b.Release(ctx, leases); err != nil {
				f.Fatal(err)
			}
		}
		say(frontier.Announced{ID: 1, By: "a", First: true})
		a.add(pages("x.example", 2)...)
		for _, again := range []bool{false, true} {
			if err := b.Shelve(ctx, 1); err != nil {
				f.Fatal(err)
			}
			a.add(page("y.example", fmt.Sprint(again))) // work that comes meanwhile
			lease(0)
			say(frontier.Announced{ID: 1, By: "a", First: again})
			lease(2)
		}
	}},
}
