package fleet_test

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// From when a worker is cut off, its hosts are asked by others within its lease,
// a turn, and the second that is owed to each; wherever in its round of renewals
// and heartbeats it was.
func Test_hosts_of_a_worker_that_falls_silent_are_asked_again_a_turn_after_their_lease(t *testing.T) {
	for i := range 12 {
		inVirtualTime(t, func(f *fixture) {
			a := f.start("a")
			time.Sleep(730 * time.Millisecond) // not all in step
			b := f.start("b")
			time.Sleep(390 * time.Millisecond)
			c := f.start("c")
			r, end := a.crawl(f.spec(40, 2000))
			time.Sleep(20*time.Second + time.Duration(i)*370*time.Millisecond)
			lost := b.hosts()
			if len(lost) < 5 {
				f.Fatalf("b has %d hosts", len(lost))
			}
			b.cut.Store(true)
			time.Sleep(ttl + 550*time.Millisecond)
			held := a.hosts()
			maps.Copy(held, c.hosts())
			for host := range lost {
				if !held[host] {
					f.Errorf("550 ms after the lease of b (round %d) nobody has %s", i, host)
				}
			}
			time.Sleep(time.Second + 50*time.Millisecond)
			for host := range lost {
				if h := f.web.lastBy(host); h.by == "b" {
					f.Errorf("a second after its takeover (round %d) nobody has asked %s", i, host)
				}
			}
			if n := len(a.hosts()) + len(c.hosts()); n != 40 {
				f.Errorf("a and c have %d hosts of 40", n)
			}
			r.Stop("enough")
			end()
			f.all(f.pages(), len(lost))
		})
	}
}

// While the ledger hangs, hands fill up and nothing more is fetched; but hosts
// are given back and taken over all the same.
func Test_a_ledger_that_hangs_keeps_no_host_from_being_taken_over(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		r, end := a.crawl(f.spec(60, 2000))
		time.Sleep(20 * time.Second)
		lost := b.hosts()
		if len(lost) < 10 {
			f.Fatalf("b has %d hosts", len(lost))
		}
		b.cut.Store(true)
		time.Sleep(ttl - 1200*time.Millisecond)
		a.unread.Store(true)
		c := f.start("c") // some of a's hosts are c's now, and have learned something
		time.Sleep(1200*time.Millisecond + 600*time.Millisecond)
		held := a.hosts()
		maps.Copy(held, c.hosts())
		for host := range lost {
			if !held[host] {
				f.Errorf("600 ms after the lease of %s nobody has it", host)
			}
		}
		a.unread.Store(false)
		b.cut.Store(false)
		r.Stop("enough")
		end()
	})
}

func Test_hosts_of_a_crawl_that_nobody_stands_by_are_left_alone_until_somebody_does(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		r, end := a.crawl(f.spec(20, 100))
		time.Sleep(10 * time.Second)
		a.cut.Store(true)
		time.Sleep(max(2*ttl, 30*time.Second) + 15*time.Second) // it is stale, and they have left it
		before, pages := b.leased.Load()+c.leased.Load(), f.pages()
		time.Sleep(2 * time.Minute)
		if n := b.leased.Load() + c.leased.Load() - before; n > 0 || f.pages() != pages {
			f.Errorf("in two minutes without a supervisor %d leases were taken and %d pages asked for", n, f.pages()-pages)
		}
		if held := fmt.Sprint(len(b.hosts()), len(c.hosts())); held != "0 0" {
			f.Errorf("b and c have %s hosts", held)
		}
		next := b.takeUp(r.ID)
		last := b.supervise(next)
		if sum := last(); sum.Counters.Processed != 20*100 {
			f.Errorf("it was taken up and ended as %+v", sum)
		}
		a.cut.Store(false)
		end()
	})
}
