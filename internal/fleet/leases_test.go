package fleet_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

func names(p *process) (list []string) {
	workers, _ := p.manager.Workers()
	for _, w := range workers {
		list = append(list, w.ID)
	}
	return list
}

func Test_heartbeats_keep_a_worker_in_the_list_and_silence_or_a_stop_takes_it_out(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		time.Sleep(5 * time.Second)
		if got := names(a); !slices.Equal(got, []string{"a", "b", "c"}) {
			f.Fatalf("the list is %v", got)
		}
		numbers := map[uint16]bool{a.manager.Bits(): true, b.manager.Bits(): true, c.manager.Bits(): true}
		if len(numbers) != 3 {
			f.Errorf("three workers have %d numbers", len(numbers))
		}
		c.stop()
		time.Sleep(ttl/10 + time.Second)
		if got := names(a); !slices.Equal(got, []string{"a", "b"}) {
			f.Errorf("a heartbeat after c stopped the list is %v", got)
		}
		b.cut.Store(true)
		time.Sleep(ttl - 2*time.Second)
		if got := names(a); !slices.Equal(got, []string{"a", "b"}) {
			f.Errorf("b has not been silent for long, and the list is %v", got)
		}
		time.Sleep(4 * time.Second)
		if got := names(a); !slices.Equal(got, []string{"a"}) {
			f.Errorf("b has been silent for longer than a lease, and the list is %v", got)
		}
	})
}

func Test_a_worker_that_is_cut_off_stops_a_margin_before_its_leases_expire_and_says_why(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		_, end := a.crawl(f.spec(40, 60))
		time.Sleep(20 * time.Second)
		lost := b.hosts()
		if len(lost) < 5 || b.manager.Waiting() != "" {
			f.Fatalf("b has %d hosts and waits for %q", len(lost), b.manager.Waiting())
		}
		b.cut.Store(true)
		at := time.Now()
		time.Sleep(3 * time.Second)
		if got := b.manager.Waiting(); !strings.Contains(got, "the fleet's store does not answer") {
			f.Errorf("b says that it waits for %q", got)
		}
		time.Sleep(ttl - ttl/6 - 3*time.Second)
		for host := range lost {
			if h := f.web.lastBy(host); h.by != "b" || h.at.Before(at) {
				f.Errorf("%s: %s asked last, %s after b was cut off; it was b's to the margin", host, h.by, h.at.Sub(at))
			}
		}
		time.Sleep(ttl/6 + 3*time.Second)
		taken := 0
		for host := range lost {
			switch h := f.web.lastBy(host); {
			case h.by == "b" && h.at.After(at.Add(ttl-ttl/6)):
				f.Errorf("%s: b asks %s after it was cut off", host, h.at.Sub(at))
			case h.by == "a":
				taken++
			}
		}
		if taken != len(lost) {
			f.Errorf("a has taken %d of %d hosts over", taken, len(lost))
		}
		b.cut.Store(false)
		time.Sleep(2 * time.Second)
		if got := b.manager.Waiting(); got != "" {
			f.Errorf("the store is back, and b waits for %q", got)
		}
		if sum := end(); sum.Status != ledger.Completed || sum.Counters.Processed != 40*60 {
			f.Errorf("it ended as %+v", sum)
		}
		f.all(40*60, len(lost)*2)
	})
}

func Test_a_worker_that_is_told_to_stop_hands_its_hosts_back_at_once_and_repeats_nothing(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		_, end := a.crawl(f.spec(30, 30))
		time.Sleep(15 * time.Second)
		had := len(b.hosts())
		if had < 5 {
			f.Fatalf("b has %d hosts", had)
		}
		b.stop()
		time.Sleep(4 * time.Second) // far from ttl
		if got := len(a.hosts()); got != 30 {
			f.Errorf("b had %d hosts and has stopped; a has %d of 30", had, got)
		}
		if sum := end(); sum.Status != ledger.Completed {
			f.Errorf("it ended as %s: %s", sum.Status, sum.Reason)
		}
		f.all(30*30, 0)
	})
}

func Test_what_leases_bring_beside_an_error_is_not_lost(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		time.Sleep(2 * time.Second)
		b.half.Store(true)
		spec := f.spec(20, 5)
		spec.DelayMin, spec.DelayMax = 20*time.Second, 20*time.Second // nothing in hand that would be refused
		_, end := a.crawl(spec)
		time.Sleep(30 * time.Second)
		had := b.hosts()
		for h := range had {
			if by := f.web.lastBy(h).by; by != "b" {
				f.Errorf("b has %s, and %q asked it last", h, by)
			}
		}
		if len(had) < 5 {
			f.Fatalf("b has %d hosts", len(had))
		}
		b.cut.Store(true)
		time.Sleep(ttl + 5*time.Second)
		b.cut.Store(false)
		time.Sleep(1500 * time.Millisecond) // it hears what was lost
		for h := range a.hosts() {
			if b.hosts()[h] {
				f.Errorf("%s is a's, and b thinks that it has it", h)
			}
		}
		b.half.Store(false)
		if sum := end(); sum.Status != ledger.Completed || sum.Counters.Processed != 20*5 {
			f.Errorf("it ended as %+v", sum)
		}
	})
}

func Test_a_worker_that_is_told_to_stop_begins_nothing_more(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		spec := f.spec(30, 400)
		spec.DelayMin, spec.DelayMax = 0, 0
		_, end := a.crawl(spec)
		time.Sleep(10 * time.Second)
		had := b.hosts()
		if len(had) < 5 {
			f.Fatalf("b has %d hosts", len(had))
		}
		told := time.Now()
		b.manager.Leaving()
		time.Sleep(5 * time.Second)
		if n := b.engine.Scheduler().InFlight(); n > 0 || len(b.hosts()) > 0 {
			f.Errorf("%d requests of b are in flight, and it has %d hosts", n, len(b.hosts()))
		}
		for h := range had {
			if last := f.web.lastBy(h); last.by == "b" && last.at.Sub(told) > 50*time.Millisecond {
				f.Errorf("b asks %s %s after it was told to stop", h, last.at.Sub(told))
			}
		}
		b.stop()
		if sum := end(); sum.Status != ledger.Completed || sum.Counters.Processed != 30*400 {
			f.Errorf("it ended as %+v", sum)
		}
	})
}

func Test_a_worker_that_is_told_to_stop_stops_while_a_store_is_away(t *testing.T) {
	for _, away := range []func(p *process) *atomic.Bool{
		func(p *process) *atomic.Bool { return &p.unread },
		func(p *process) *atomic.Bool { return &p.cut },
	} {
		inVirtualTime(t, func(f *fixture) {
			a, b := f.start("a"), f.start("b")
			_, end := a.crawl(f.spec(30, 30))
			time.Sleep(10 * time.Second)
			had := len(b.hosts())
			away(b).Store(true)
			time.Sleep(3 * time.Second)
			told := time.Now()
			b.stop()
			if took := time.Since(told); had < 5 || took > 13*time.Second {
				f.Errorf("b had %d hosts, and took %s to stop", had, took)
			}
			if sum := end(); sum.Status != ledger.Completed {
				f.Errorf("it ended as %+v", sum)
			}
			f.all(30*30, 2*had)
		})
	}
}

func Test_leases_are_renewed_while_the_ledger_keeps_a_crawl_from_being_left(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		r, end := a.crawl(f.spec(30, 100))
		time.Sleep(10 * time.Second)
		b.unread.Store(true)
		time.Sleep(3 * time.Second)
		r.Stop("a person stopped it")
		expired := map[string]bool{}
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			for h := range b.hosts() {
				expired[h] = expired[h] || !b.manager.Held(h)
			}
		}
		for h, was := range expired {
			if was {
				f.Errorf("b has %s, and its lease had expired", h)
			}
		}
		if len(b.hosts()) < 5 {
			f.Errorf("b has %d hosts", len(b.hosts()))
		}
		b.unread.Store(false)
		if sum := end(); sum.Status != ledger.Partial {
			f.Errorf("it ended as %+v", sum)
		}
		time.Sleep(5 * time.Second)
		if n := len(b.hosts()); n > 0 {
			f.Errorf("b has left the crawl and has %d hosts", n)
		}
	})
}

func Test_a_lease_that_ran_out_while_the_machine_was_suspended_is_not_held(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a := f.start("a")
		r, end := a.crawl(f.spec(3, 100))
		defer func() { r.Yield(); end() }()
		time.Sleep(5 * time.Second)
		held := func() (n int) {
			for h := range a.hosts() {
				if a.manager.Held(h) {
					n++
				}
			}
			return n
		}
		if n := held(); n != 3 {
			f.Fatalf("%d of 3 hosts are held", n)
		}
		f.ahead.Store(int64(time.Hour))
		if n := held(); n != 0 {
			f.Errorf("%d hosts are held an hour later", n)
		}
	})
}

func Test_a_fourth_worker_takes_its_share_of_the_hosts_and_no_other_moves(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		const hosts = 200
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		r, end := a.crawl(f.spec(hosts, 1000))
		defer func() { r.Yield(); end() }()
		time.Sleep(20 * time.Second)
		before := map[string]*process{}
		for _, p := range []*process{a, b, c} {
			for h := range p.hosts() {
				before[h] = p
			}
		}
		d := f.start("d")
		time.Sleep(30 * time.Second)
		if most, got := hosts*12/10/4, len(d.hosts()); len(before) != hosts || got > most || got < hosts/8 {
			f.Errorf("d has %d of %d hosts, at most %d are its share", got, len(before), most)
		}
		for h, p := range before {
			if !p.hosts()[h] && !d.hosts()[h] {
				f.Errorf("%s left %s and went elsewhere", h, p.name)
			}
		}
		d.stop()
		time.Sleep(10 * time.Second)
		for h, p := range before {
			if !p.hosts()[h] {
				f.Errorf("%s did not come back to %s", h, p.name)
			}
		}
		if _, again, bad := f.web.seen(); again > 0 || len(bad) > 0 {
			f.Errorf("%d pages were asked for again; %v", again, bad)
		}
	})
}

func Test_hosts_that_their_worker_has_no_room_for_are_asked_by_others(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a := f.start("a")
		f.room = 2
		f.start("b")
		r, end := a.crawl(f.spec(20, 2000))
		time.Sleep(2 * time.Minute)
		few := 0
		for _, seed := range r.Spec.Seeds {
			n := 0
			f.web.mu.Lock()
			for url, hits := range f.web.hits {
				if strings.HasPrefix(url, seed) {
					n += hits
				}
			}
			f.web.mu.Unlock()
			if n < 30 {
				few++
			}
		}
		if few > 0 {
			f.Errorf("%d of 20 hosts were asked for fewer than 30 pages in two minutes", few)
		}
		r.Stop("enough")
		end()
	})
}
