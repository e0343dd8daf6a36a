package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
)

func Test_a_fleet_whose_board_loses_every_tenth_call_ends_a_crawl_whole(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		var procs []*process
		for _, name := range []string{"a", "b", "c"} {
			procs = append(procs, f.start(name))
		}
		r, end := procs[0].crawl(f.spec(30, 20))
		for _, p := range procs {
			p.flaky.Store(true)
		}
		sum := end()
		if sum.Status != ledger.Completed || sum.Counters.Processed != 600 || sum.Remaining != 0 {
			f.Errorf("it ended as %+v", sum)
		}
		f.all(600, 600/10)
		time.Sleep(ttl)
		if n, _, err := procs[0].member.Pending(context.Background(), 1); err == nil && n != 0 {
			f.Errorf("%d URLs of crawl %d wait", n, r.ID)
		}
	})
}

func Test_a_page_budget_is_used_to_the_last_page_and_no_further(t *testing.T) {
	for _, dies := range []bool{false, true} {
		inVirtualTime(t, func(f *fixture) {
			a, b, _ := f.start("a"), f.start("b"), f.start("c")
			spec := f.spec(30, 50)
			spec.MaxURLs = 200
			r, end := a.crawl(spec)
			time.Sleep(4 * time.Second)
			if b.cut.Store(dies); dies && len(b.hosts()) == 0 {
				f.Fatal("b has nothing to die with")
			}
			begun := time.Now()
			sum := end()
			least := int64(200)
			if dies { // what it had in hand, and its portion, stay spent
				least = 150
			}
			if n := sum.Counters.Processed; n > 200 || n < least || sum.Status != ledger.Partial {
				f.Errorf("crawl %d: %d of 200 pages, %s: %s", r.ID, n, sum.Status, sum.Reason)
			}
			if took := time.Since(begun); took > 3*ttl || !dies && took > 15*time.Second {
				f.Errorf("it took %s to its end", took)
			}
			if pages, again, bad := f.web.seen(); len(bad) > 0 || pages+again > 200 || !dies && pages != 200 {
				f.Errorf("%d pages were asked for, %d again; %v", pages, again, bad)
			}
		})
	}
}

func Test_a_worker_whose_only_host_is_parked_keeps_no_pages_that_others_want(t *testing.T) {
	for _, up := range []int{1, 7} { // with one, as many URLs wait for a page as for a try of the parked host
		inVirtualTime(t, func(f *fixture) {
			a, _, c := f.start("a"), f.start("b"), f.start("c")
			time.Sleep(2 * time.Second) // until each knows the others
			spec := f.spec(0, 80)
			spec.MaxURLs = 60
			for i := 0; len(spec.Seeds) < up+2; i++ {
				site := fmt.Sprintf("site-%d.example", i)
				switch of := frontier.Prefers("c", []string{"a", "b", "c"}, frontier.DomainOfGroup(site)); {
				case of && f.web.down == "":
					f.web.down = site
					spec.Seeds = append(spec.Seeds, "http://"+site+"/", "http://"+site+"/more")
				case !of && (f.web.down != "" || len(spec.Seeds) < up):
					spec.Seeds = append(spec.Seeds, "http://"+site+"/")
				}
			}
			// It is parked when it fails once more.
			row := crawl.DomainRow(f.web.down, politeness.State{Failures: politeness.ParkAfter - 1, Updated: time.Now()})
			if err := f.books.Commit(f.Context(), &ledger.Batch{Domains: []ledger.Domain{row}}); err != nil {
				f.Fatal(err)
			}
			r, end := a.crawl(spec)
			defer time.AfterFunc(5*time.Minute, func() { r.Stop("it did not end by itself") }).Stop()
			time.Sleep(5 * time.Second)
			if hosts := c.hosts(); len(hosts) != 1 || !hosts[f.web.down] {
				f.Fatalf("c has %v, not only %s", hosts, f.web.down)
			}
			sum := end()
			if !strings.Contains(sum.Reason, "max_urls") || sum.ParkedURLs == 0 {
				f.Errorf("it ended as %+v", sum)
			}
			// The one that was tried when the host was parked is paid for.
			if n := sum.Counters.Processed; n < 59 || n > 60 {
				f.Errorf("%d of 60 pages", n)
			}
		})
	}
}

func Test_a_crawl_that_is_paused_and_resumed_has_what_is_left_of_its_budget(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, _ := f.start("a"), f.start("b")
		spec := f.spec(10, 50)
		spec.MaxURLs = 100
		r, end := a.crawl(spec)
		time.Sleep(6 * time.Second)
		r.StopAs(ledger.Paused, "a person paused it")
		if sum := end(); sum.Status != ledger.Paused || sum.Counters.Processed < 10 || sum.Counters.Processed > 90 {
			f.Fatalf("paused: %+v", sum)
		}
		r = a.takeUp(r.ID)
		if sum := a.supervise(r)(); sum.Status != ledger.Partial || sum.Counters.Processed != 100 {
			f.Errorf("it ended as %+v", sum)
		}
		f.all(100, 0)
	})
}

func Test_a_supervisor_that_wakes_in_the_middle_of_an_end_leaves_it_to_the_one_that_took_over(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		spec := f.spec(10, 40)
		first, end := a.crawl(spec)
		time.Sleep(5 * time.Second)
		// It stops the crawl, and is cut off before it can say so.
		a.cut.Store(true)
		first.Stop("a person stopped it")
		time.Sleep(ttl + 5*time.Second)
		second := b.takeUp(first.ID)
		over := b.supervise(second)
		a.cut.Store(false)
		time.Sleep(time.Second)
		first.Yield()
		if sum := end(); sum.Status != ledger.Running {
			f.Errorf("the one that yields ends it as %+v", sum)
		}
		if sum := over(); sum.Status != ledger.Completed || sum.Counters.Processed != 400 {
			f.Errorf("it ended as %+v", sum)
		}
		f.all(400, 20)
	})
}

func Test_what_was_gathered_before_the_seeds_were_queued_ends_nothing(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a := f.start("a")
		r, err := a.engine.Start(f.Context(), f.spec(3, 5), crawl.Hooks{})
		if err != nil {
			f.Fatal(err)
		}
		r.SetShared(&crawl.Shared{At: time.Now(), Settled: true}) // two turns between the board and the seeds
		if sum := a.supervise(r)(); sum.Counters.Processed != 15 {
			f.Errorf("it ended as %+v", sum)
		}
	})
}

func Test_a_supervisor_that_wakes_after_its_crawl_was_stopped_elsewhere_does_not_bring_it_back(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		first, end := a.crawl(f.spec(10, 200))
		time.Sleep(5 * time.Second)
		a.cut.Store(true)
		time.Sleep(ttl + 5*time.Second)
		second := b.takeUp(first.ID)
		over := b.supervise(second)
		time.Sleep(3 * time.Second)
		second.StopAs(ledger.Paused, "a person paused it")
		if sum := over(); sum.Status != ledger.Paused {
			f.Fatalf("paused: %+v", sum)
		}
		asked, _, _ := f.web.seen()
		a.cut.Store(false)
		if sum := end(); sum.Status != ledger.Running {
			f.Errorf("the one that wakes ends it as %+v", sum)
		}
		time.Sleep(time.Minute)
		if list, err := b.member.Crawls(f.Context()); err != nil || len(list) != 0 {
			f.Errorf("on the board: %+v, %v", list, err)
		}
		if now, _, _ := f.web.seen(); now != asked {
			f.Errorf("%d pages of a paused crawl were asked for", now-asked)
		}
	})
}

func Test_workers_leave_a_crawl_that_nobody_has_stood_by_for_long(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		r, end := a.crawl(f.spec(10, 2000))
		time.Sleep(5 * time.Second)
		a.cut.Store(true)
		time.Sleep(ttl)
		before, _, _ := f.web.seen()
		time.Sleep(5 * time.Second)
		if now, _, _ := f.web.seen(); now == before {
			f.Error("b did not go on without its supervisor")
		}
		time.Sleep(max(2*ttl, 30*time.Second))
		before, _, _ = f.web.seen()
		time.Sleep(time.Minute)
		if now, _, _ := f.web.seen(); now != before {
			f.Errorf("%d pages of a crawl without a supervisor", now-before)
		}
		a.cut.Store(false) // it was only cut off, and goes on
		time.Sleep(20 * time.Second)
		if now, _, _ := f.web.seen(); now == before || len(b.hosts()) == 0 {
			f.Errorf("%d pages since its supervisor is back, b has %d hosts", now-before, len(b.hosts()))
		}
		r.Stop("enough")
		end()
	})
}

func Test_a_crawl_that_the_store_has_forgotten_fails_at_once_and_is_not_taken_for_another_process_s(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b := f.start("a"), f.start("b")
		r, end := a.crawl(f.spec(10, 2000))
		time.Sleep(5 * time.Second)
		if len(b.hosts()) == 0 {
			f.Fatal("b does not work for it; this proves too little")
		}
		lost := time.Now()
		if err := errors.Join(a.member.Withdraw(f.Context(), r.ID, "a"), a.member.DropCrawl(f.Context(), frontier.CrawlID(r.ID))); err != nil {
			f.Fatal(err)
		}
		sum := end()
		if sum.Status != ledger.Failed || sum.Reason != crawl.ErrFrontierGone.Error() {
			f.Errorf("it ended as %s: %s", sum.Status, sum.Reason)
		}
		if took := time.Since(lost); took > 10*time.Second {
			f.Errorf("it took %s to its end", took)
		}
	})
}
