package fleet_test

import (
	"strings"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// cutAll takes the store away from everybody. The board answers a moment late
// from then on: who is back must not begin before it has looked.
func (f *fixture) cutAll() {
	for _, p := range f.procs {
		p.far.Store(true)
		p.cut.Store(true)
	}
}

func Test_a_bound_on_requests_in_flight_holds_when_all_come_back_from_an_outage(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		f.web.took = 3 * time.Second
		spec := f.spec(30, 400)
		spec.Concurrency = 6
		r, end := a.crawl(spec)
		time.Sleep(20 * time.Second)
		f.cutAll()
		time.Sleep(2 * ttl)
		a.cut.Store(false) // it gives away what the silent had
		time.Sleep(2500 * time.Millisecond)
		b.cut.Store(false)
		c.cut.Store(false)
		time.Sleep(5 * time.Second)
		if most := f.web.most.Load(); most != 6 {
			f.Errorf("%d requests were in flight, 6 may be", most)
		}
		r.Stop("enough")
		end()
	})
}

func Test_a_crawl_that_ended_during_an_outage_is_not_asked_for_by_those_who_come_back(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		f.web.took = 3 * time.Second
		r, end := a.crawl(f.spec(30, 400))
		time.Sleep(20 * time.Second)
		f.cutAll()
		time.Sleep(ttl)
		r.StopAs(ledger.Cancelled, "a person cancelled it")
		time.Sleep(2 * ttl)
		a.cut.Store(false)
		ended := make(chan crawl.Summary, 1)
		go func() { ended <- end() }()
		time.Sleep(3 * time.Second) // less than the silent are waited for with their hosts
		select {
		case sum := <-ended:
			if sum.Status != ledger.Cancelled {
				f.Fatalf("it ended as %+v", sum)
			}
		default:
			f.Fatal("it has not ended")
		}
		before, again, _ := f.web.seen()
		b.cut.Store(false)
		c.cut.Store(false)
		time.Sleep(2 * ttl)
		if now, more, _ := f.web.seen(); now+more != before+again {
			f.Errorf("%d requests for a crawl that was over", now+more-before-again)
		}
	})
}

func Test_leaving_many_crawls_while_the_ledger_hangs_costs_no_lease(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		var runs []*crawl.Run
		var ends []func() crawl.Summary
		for i := range 9 {
			spec := f.spec(8, 2000)
			for j := range spec.Seeds {
				spec.Seeds[j] = strings.Replace(spec.Seeds[j], "site-", "site-"+string(rune('a'+i)), 1)
			}
			r, end := a.crawl(spec)
			runs, ends = append(runs, r), append(ends, end)
		}
		time.Sleep(20 * time.Second)
		b.unread.Store(true)
		time.Sleep(1500 * time.Millisecond) // its hands fill
		for _, r := range runs[1:] {
			r.Stop("enough")
		}
		time.Sleep(30 * time.Second)
		if without := time.Duration(b.longest.Load()); without > ttl-ttl/6 {
			f.Errorf("no lease was renewed for %s of %s", without, ttl)
		}
		b.unread.Store(false)
		runs[0].Stop("enough")
		for _, end := range ends {
			end()
		}
	})
}
