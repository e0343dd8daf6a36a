package frontier

import (
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

// owner is a scheduler that has leases, over a store that others have too.
func owner(t *testing.T, store Store, now *time.Time, skew, ahead time.Duration) *Scheduler {
	t.Helper()
	return New(store, Options{Rand: func() float64 { return 0.5 }, Now: func() time.Time { return now.Add(skew) },
		Held: func(string) bool { return true }, Ahead: func() (by, give time.Duration) { return ahead, 5 * time.Millisecond }})
}

func slow(id CrawlID, delay time.Duration) *Crawl {
	return &Crawl{ID: id, IgnoreRobots: true, Rules: politeness.Rules{DelayMin: delay, DelayMax: delay, PerHost: 1, MaxRetries: 3}}
}

// permit lets virtual time pass until the scheduler grants a request.
func permit(t *testing.T, s *Scheduler, now *time.Time, skew time.Duration) Work {
	t.Helper()
	for end := now.Add(2 * time.Hour); now.Before(end); {
		w, at := s.Next(0, now.Add(skew))
		switch w.Kind {
		case Fetch:
			return w
		case Load:
			if err := s.Load(t.Context(), w, func() time.Time { return now.Add(skew) }); err != nil {
				t.Fatal(err)
			}
		default:
			if at.IsZero() {
				t.Fatal("nothing to do")
			}
			*now = at.Add(-skew)
		}
	}
	t.Fatal("no permit in two hours")
	return Work{}
}

func Test_a_Retry_After_lasts_as_long_for_the_next_owner_whatever_the_two_clocks_show(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Minute, -time.Minute} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		store := newMemStore()
		c := slow(1, time.Second)
		first := owner(t, store, &now, skew, -skew)
		if err := first.Open(t.Context(), c, now); err != nil {
			t.Fatal(err)
		}
		first.Take([]Lease{{Group: "a.example", Token: 1}}, now.Add(skew))
		e := Entry{Crawl: 1, Group: "a.example", URL: "https://a.example/", Kind: KindPage}
		if _, err := first.Commit(t.Context(), &Batch{Add: []Entry{e}}, now.Add(skew)); err != nil {
			t.Fatal(err)
		}
		w := permit(t, first, &now, skew)
		first.OnWire(w.Permit, now.Add(skew))
		told := now
		v := first.Release(w.Permit, now.Add(skew), politeness.Answer{Outcome: outcome.Throttled, Status: 429, Started: now.Add(skew),
			RetryAfter: now.Add(skew + 5*time.Minute), Tries: 1})
		again := w.Entry
		again.Tries, again.NotBefore = 1, v.NotBefore
		if _, err := first.Commit(t.Context(), &Batch{Update: []Entry{again}}, now.Add(skew)); err != nil {
			t.Fatal(err)
		}

		second := owner(t, store, &now, -skew, skew)
		c = slow(1, time.Second)
		if err := second.Open(t.Context(), c, now); err != nil {
			t.Fatal(err)
		}
		second.Take([]Lease{{Group: "a.example", Token: 2, Queues: []Queue{{Group: "a.example", Crawl: 1, Count: 1}}}}, now.Add(-skew))
		permit(t, second, &now, -skew)
		if waited := now.Sub(told); waited < 5*time.Minute || waited > 5*time.Minute+time.Second {
			t.Errorf("clocks %s off to either side: the next owner asked %s after it was told to wait for 5m", skew, waited)
		}
	}
}

func Test_whoever_takes_a_group_owes_it_its_crawls_own_gap_from_then_on(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := newMemStore()
	taken := now
	for token, late := range []bool{false, true} { // the crawl is open before the lease, or joined because of it
		s := owner(t, store, &now, 0, 0)
		quick, c := slow(2, 100*time.Millisecond), slow(1, 10*time.Second)
		for _, c := range []*Crawl{quick, c} {
			if err := s.Open(t.Context(), c, now); err != nil {
				t.Fatal(err)
			}
		}
		var b Batch
		for id, path := range []string{"quick", "slow"} {
			b.Add = append(b.Add, Entry{Crawl: CrawlID(2 - id), Group: "a.example", URL: "https://a.example/" + path, Kind: KindPage})
		}
		if _, err := store.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		l := Lease{Group: "a.example", Token: uint64(token + 1), Queues: []Queue{{Group: "a.example", Crawl: 2, Count: 1}, {Group: "a.example", Crawl: 1, Count: 1}}}
		taken = now
		if late {
			s.Take([]Lease{{Group: l.Group, Token: l.Token, Queues: l.Queues[:1]}}, now)
			w, _ := s.Next(0, now) // its clocks
			if err := s.Load(t.Context(), w, func() time.Time { return now }); err != nil {
				t.Fatal(err)
			}
			s.Refresh([]Lease{l}, now)
			if v, _ := s.Host("a.example", now); v.Reason != "pace: a whole gap since this host was taken up" {
				t.Errorf("it is said to wait for %q", v.Reason)
			}
		} else {
			s.Take([]Lease{l}, now)
		}
		permit(t, s, &now, 0)
		if waited := now.Sub(taken); waited < 10*time.Second {
			t.Errorf("late %t: asked %s after the lease, 10s may be owed to the last owner's request", late, waited)
		}
	}
}

func Test_a_group_that_gets_work_while_its_clocks_are_written_is_not_let_go(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := newMemStore()
	s := owner(t, store, &now, 0, 0)
	c := slow(1, time.Second)
	if err := s.Open(t.Context(), c, now); err != nil {
		t.Fatal(err)
	}
	s.Take([]Lease{{Group: "a.example", Token: 1}, {Group: "b.example", Token: 2}}, now)
	now = now.Add(time.Minute)
	idle := s.Drained(now)
	if len(idle) != 2 {
		t.Fatalf("idle: %v", idle)
	}
	e := Entry{Crawl: 1, Group: "a.example", URL: "https://a.example/", Kind: KindPage}
	if _, err := s.Commit(t.Context(), &Batch{Add: []Entry{e}}, now); err != nil {
		t.Fatal(err)
	}
	gone := s.LetGo(idle, now)
	if len(gone) != 1 || gone[0].Group != "b.example" {
		t.Errorf("let go of %v", gone)
	}
	permit(t, s, &now, 0) // it is still at work here
}

func Test_notes_of_a_commit_that_failed_do_not_outlive_the_lease(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := owner(t, newMemStore(), &now, 0, 0)
	s.unwritten = []Note{{Group: "a.example", Name: "clocks"}, {Group: "b.example", Name: "clocks"}}
	s.Take([]Lease{{Group: "a.example", Token: 1}}, now)
	s.Drop([]string{"a.example"}, now)
	if len(s.unwritten) != 1 || s.unwritten[0].Group != "b.example" {
		t.Errorf("still to be written: %v", s.unwritten)
	}
}

func Test_a_parked_host_that_changes_hands_stays_parked_until_its_block_is_over(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, blocked := range []time.Duration{time.Hour, -time.Minute} {
		store := newMemStore()
		note := ClocksNote("a.example", politeness.State{Failures: politeness.ParkAfter, BlockedUntil: now.Add(blocked), Updated: now})
		e := Entry{Crawl: 1, Group: "a.example", URL: "https://a.example/", Kind: KindPage}
		s := owner(t, store, &now, 0, 0)
		c := slow(1, time.Second)
		if err := s.Open(t.Context(), c, now); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(t.Context(), &Batch{Add: []Entry{e}, Notes: []Note{note}}); err != nil {
			t.Fatal(err)
		}
		s.Take([]Lease{{Group: "a.example", Token: 1, Queues: []Queue{{Group: "a.example", Crawl: 1, Count: 1}}}}, now)
		w, _ := s.Next(0, now)
		if err := s.Load(t.Context(), w, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
		if parked := c.Parked() == 1; parked != (blocked > 0) || c.Pending() != 1 {
			t.Errorf("blocked for %s: %d of %d parked", blocked, c.Parked(), c.Pending())
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

func Test_what_a_crawl_ended_without_stays_queued_and_its_host_is_given_back(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := newMemStore()
	over, on := slow(1, time.Second), slow(2, time.Second)
	over.Rules.PerHost, on.Rules.PerHost = 4, 4
	s := owner(t, store, &now, 0, 0)
	var add []Entry
	for _, c := range []*Crawl{over, on} {
		if err := s.Open(t.Context(), c, now); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"1", "2"} {
			add = append(add, Entry{Crawl: c.ID, Group: "a.example", URL: "https://a.example/" + path, Kind: KindPage})
		}
	}
	s.Take([]Lease{{Group: "a.example", Token: 1}}, now)
	if _, err := s.Commit(t.Context(), &Batch{Add: add}, now); err != nil {
		t.Fatal(err)
	}
	named := Entry{Crawl: 1, Group: "a.example", URL: "https://a.example/3", Kind: KindPage}
	b := &Batch{Add: []Entry{named}, Mark: []Mark{{Crawl: 1, Host: "a.example"}}}
	for range add {
		w := permit(t, s, &now, 0)
		s.OnWire(w.Permit, now)
		s.Release(w.Permit, now, politeness.Answer{Outcome: outcome.OK, Status: 200, Started: now, Tries: 1})
		if len(b.Update) == 0 && w.Entry.Crawl == 1 {
			w.Entry.Tries++
			b.Update = append(b.Update, w.Entry)
		} else {
			b.Ack = append(b.Ack, w.Entry.Ref())
		}
	}
	for range 2 { // a commit that failed is tried again
		s.Forgo(b, 1, now)
	}
	if over.InHand() || len(b.Mark)+len(b.Update) > 0 || len(b.Ack) != 2 || len(b.Add) != 1 {
		t.Fatalf("in hand: %t; %+v", over.InHand(), b)
	}
	if _, err := s.Commit(t.Context(), b, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		crawl *Crawl
		left  int
	}{{over, 3}, {on, 0}} {
		left, err := store.Window(t.Context(), "a.example", want.crawl.ID, Pos{}, 9, nil)
		if err != nil || len(left) != want.left || want.crawl.InHand() {
			t.Errorf("crawl %d: %d URLs wait, want %d; in hand: %t; %v", want.crawl.ID, len(left), want.left, want.crawl.InHand(), err)
		}
		for _, e := range left {
			if e.Tries != 0 {
				t.Errorf("%s has %d tries", e.URL, e.Tries)
			}
		}
	}
	if back := s.Drained(time.Time{}); len(back) != 1 {
		t.Errorf("%d hosts are given back, so that somebody hears of what waits", len(back))
	}
}
