package frontiertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/frontier"
)

// Member is one process's view of a shared store.
type Member interface {
	frontier.Store
	frontier.Board
}

// RunLeases checks a store that many processes share. open makes an empty one
// and returns a way to join it, once for each process; RunLeases closes them.
// patience is how long a free group is left to the worker that prefers it.
// Leases expire by the store's clock, which no test can turn: these checks use
// short leases and real time.
func RunLeases(t *testing.T, patience time.Duration, open func(t testing.TB) (join func() Member)) {
	for _, c := range slices.Concat(leaseChecks, boardChecks) {
		t.Run(c.name, func(t *testing.T) {
			f := &fleet{T: t, join: open(t), patience: patience}
			defer func() {
				for _, m := range f.members {
					if err := m.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}
			}()
			c.run(f)
		})
	}
}

const (
	long  = time.Minute            // a lease that does not expire in a test
	short = 150 * time.Millisecond // one that does
)

// fleet is a shared store with helpers that fail the test.
type fleet struct {
	*testing.T
	join     func() Member
	patience time.Duration
	members  []*member
}

// member is one process, used as one worker.
type member struct {
	Member
	f    *fleet
	name string
}

// start joins the store as a worker with crawl 1 open.
func (f *fleet) start(name string) *member {
	f.Helper()
	m := &member{Member: f.join(), f: f, name: name}
	f.members = append(f.members, m)
	if err := m.OpenCrawl(ctx, 1); err != nil {
		f.Fatal(err)
	}
	return m
}

func (m *member) add(entries ...frontier.Entry) []frontier.Entry {
	m.f.Helper()
	added, err := m.Commit(ctx, &frontier.Batch{Add: entries})
	if err != nil {
		m.f.Fatalf("%s adds: %v", m.name, err)
	}
	return added
}

func (m *member) acquire(ttl time.Duration, max int) []frontier.Lease {
	m.f.Helper()
	leases, err := m.Acquire(ctx, m.name, ttl, max, nil)
	if err != nil {
		m.f.Fatalf("%s acquires: %v", m.name, err)
	}
	return leases
}

// only acquires what is to be a lease of one group.
func (m *member) only(ttl time.Duration, group string) frontier.Lease {
	m.f.Helper()
	leases := m.acquire(ttl, 10)
	if len(leases) != 1 || leases[0].Group != group {
		m.f.Fatalf("%s got %+v, want %s", m.name, leases, group)
	}
	return leases[0]
}

func (m *member) renew(ttl time.Duration) (lost []string, changed []frontier.Lease) {
	m.f.Helper()
	lost, changed, err := m.Renew(ctx, m.name, ttl)
	if err != nil {
		m.f.Fatalf("%s renews: %v", m.name, err)
	}
	slices.Sort(lost)
	return lost, changed
}

func (m *member) release(leases ...frontier.Lease) {
	m.f.Helper()
	if err := m.Release(ctx, leases); err != nil {
		m.f.Fatalf("%s releases: %v", m.name, err)
	}
}

func (m *member) window(group string) []string {
	m.f.Helper()
	got, err := m.Window(ctx, group, 1, frontier.Pos{}, 100, nil)
	if err != nil {
		m.f.Fatal(err)
	}
	return urls(got)
}

// fenced commits what must be refused for these groups and no others.
func (m *member) fenced(b *frontier.Batch, groups ...string) (added []frontier.Entry) {
	m.f.Helper()
	added, err := m.Commit(ctx, b)
	var fe *frontier.FencedError
	if !errors.Is(err, frontier.ErrFenced) || !errors.As(err, &fe) {
		m.f.Fatalf("%s committed: %v; want it fenced", m.name, err)
	}
	slices.Sort(fe.Groups)
	m.f.same("fenced groups", fe.Groups, groups)
	return added
}

func (f *fleet) same(what string, got, want any) {
	f.Helper()
	if d := diff(got, want); d != "" {
		f.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

// pass lets time pass in the store.
func (f *fleet) pass(d time.Duration) { time.Sleep(d + 20*time.Millisecond) }

// fires waits for a wake-up.
func (m *member) fires() {
	m.f.Helper()
	select {
	case <-m.Changed():
	case <-time.After(5 * time.Second):
		m.f.Fatalf("%s was not woken", m.name)
	}
}

func (m *member) quiet() {
	for {
		select {
		case <-m.Changed():
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

type leaseCheck struct {
	name string
	run  func(*fleet)
}

var leaseChecks = []leaseCheck{

	{"a group with work is leased to one worker, with its counts", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		if err := b.OpenCrawl(ctx, 2); err != nil {
			f.Fatal(err)
		}
		b.add(append(pages("x.example", 3), inCrawl(2, page("x.example", "y")))...)
		l := a.only(long, "x.example")
		slices.SortFunc(l.Queues, func(p, q frontier.Queue) int { return int(p.Crawl - q.Crawl) })
		f.same("its queues", l.Queues, []frontier.Queue{{Group: "x.example", Crawl: 1, Count: 3}, {Group: "x.example", Crawl: 2, Count: 1}})
		if got := b.acquire(long, 10); len(got) != 0 {
			f.Fatalf("b got it, too: %+v", got)
		}
		if got := a.acquire(long, 10); len(got) != 0 {
			f.Fatalf("a got it twice: %+v", got)
		}
	}},
	{"a group without work is leased to nobody", func(f *fleet) {
		a := f.start("a")
		e := a.add(page("x.example", "1"))
		l := a.only(long, "x.example")
		if _, err := a.Commit(ctx, &frontier.Batch{Ack: refs(e)}); err != nil {
			f.Fatal(err)
		}
		a.release(l)
		f.same("free groups", a.acquire(long, 10), []frontier.Lease(nil))
		a.add(page("x.example", "2"))
		a.only(long, "x.example")
	}},
	{"a released group is free at once and its next token is larger", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"))
		first := a.only(long, "x.example")
		a.release(first)
		second := b.only(long, "x.example")
		if second.Token <= first.Token {
			f.Fatalf("token %d after %d", second.Token, first.Token)
		}
		a.release(first) // it is not ours any more: nothing happens
		f.same("free groups", a.acquire(long, 10), []frontier.Lease(nil))
		if !a.Deadline("x.example").IsZero() {
			f.Fatal("a believes to hold it")
		}
	}},
	{"a lease that is not renewed expires and passes on with a larger token", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"))
		first := a.only(short, "x.example")
		f.same("free groups before", b.acquire(long, 10), []frontier.Lease(nil))
		f.pass(short)
		if second := b.only(long, "x.example"); second.Token <= first.Token {
			f.Fatalf("token %d after %d", second.Token, first.Token)
		}
		lost, _ := a.renew(long)
		f.same("what a lost", lost, []string{"x.example"})
		lost, _ = a.renew(long)
		f.same("what a lost since", lost, []string(nil))
	}},
	{"renewing keeps a lease", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"), page("y.example", "1"), page("z.example", "1"))
		const lease = 14 * short // a busy machine may be late by a second
		f.same("leases", len(a.acquire(lease, 10)), 3)
		for range 4 {
			f.pass(lease / 3)
			if lost, _ := a.renew(lease); len(lost) != 0 {
				f.Fatalf("lost %v", lost)
			}
			f.same("free groups", b.acquire(long, 10), []frontier.Lease(nil))
		}
		if _, err := a.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{{Group: "x.example", Name: "n", Value: []byte("v")}}}); err != nil {
			f.Fatal(err)
		}
	}},
	{"what a frozen worker says after its lease is refused as a whole", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		e := a.add(pages("x.example", 3)...)
		a.only(short, "x.example")
		if _, err := a.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{{Group: "x.example", Name: "clock", Value: []byte("owed")}}}); err != nil {
			f.Fatal(err)
		}
		f.pass(short)
		b.only(long, "x.example")
		late := e[1]
		late.Tries = 9
		added := a.fenced(&frontier.Batch{
			Add: []frontier.Entry{page("x.example", "new"), page("y.example", "new")}, Ack: refs(e[:1]), Update: []frontier.Entry{late},
			Notes: []frontier.Note{{Group: "x.example", Name: "clock", Value: []byte("late")}},
		}, "x.example")
		f.same("what was added", urls(added), []string{"https://x.example/new", "https://y.example/new"})
		f.same("the queue", b.window("x.example"), append(urls(e), "https://x.example/new"))
		note, err := b.Note(ctx, "x.example", "clock")
		if err != nil || string(note) != "owed" {
			f.Fatalf("the note is %q, %v", note, err)
		}
		if w, _ := b.Window(ctx, "x.example", 1, frontier.Pos{}, 10, nil); w[1].Tries != 0 {
			f.Fatal("the late update was applied")
		}
		if _, err := b.Commit(ctx, &frontier.Batch{Ack: refs(e[:1])}); err != nil {
			f.Fatalf("the holder was refused: %v", err)
		}
		lost, _ := a.renew(long)
		f.same("what a lost", lost, []string{"x.example"})
	}},
	{"a lease that ran out and that nobody took goes on", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		e := a.add(pages("x.example", 3)...)
		lease := a.only(short, "x.example")
		f.pass(short)
		if d := a.Deadline("x.example"); !time.Now().After(d) {
			f.Fatalf("a may act on it until %s", d)
		}
		if _, err := a.Commit(ctx, &frontier.Batch{Ack: refs(e[:1])}); err != nil {
			f.Fatalf("what a had in hand: %v", err)
		}
		lost, _ := a.renew(long)
		f.same("what a lost", lost, []string(nil))
		f.same("free groups", b.acquire(long, 10), []frontier.Lease(nil))
		if d := a.Deadline("x.example"); !time.Now().Before(d) {
			f.Fatalf("a may not act on it since %s", d)
		}
		if _, err := a.Commit(ctx, &frontier.Batch{Ack: refs(e[1:2])}); err != nil {
			f.Fatal(err)
		}
		f.same("the queue", a.window("x.example"), urls(e[2:]))
		a.release(lease)
		b.only(long, "x.example")
	}},
	{"after a silence of all, those who held groups have the first word", func(f *fleet) {
		a, b, dead := f.start("a"), f.start("b"), f.start("dead")
		a.add(page("x.example", "1"))
		a.only(short, "x.example")
		a.add(page("y.example", "1"))
		dead.only(short, "y.example")
		f.pass(short)
		f.same("what b takes, which is back first", b.acquire(short, 10), []frontier.Lease(nil))
		lost, _ := a.renew(long)
		f.same("what a lost", lost, []string(nil))
		f.pass(short)
		b.only(long, "y.example")
	}},
	{"without a lease nothing is acknowledged, and the rest of the batch is", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		mine, theirs := a.add(page("x.example", "1")), b.add(page("y.example", "1"))
		prefers := func(g string) bool { return g == "x.example" }
		if got, err := a.Acquire(ctx, "a", long, 10, prefers); err != nil || len(got) != 1 {
			f.Fatal(got, err)
		}
		a.fenced(&frontier.Batch{Ack: refs(append(mine, theirs...)), Notes: []frontier.Note{{Group: "z.example", Name: "n", Value: []byte("v")}}}, "y.example", "z.example")
		f.same("ours", a.window("x.example"), []string{})
		f.same("theirs", a.window("y.example"), urls(theirs))
	}},
	{"work that others add reaches the holder", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"), page("y.example", "1"))
		leases := a.acquire(long, 10)
		a.quiet()
		a.add(page("x.example", "mine"))
		if _, changed := a.renew(long); len(changed) != 0 {
			f.Fatalf("its own work is news to a: %+v", changed)
		}
		for round := range 3 {
			b.add(page("x.example", fmt.Sprint("theirs", round)))
			a.fires()
			_, changed := a.renew(long)
			if len(changed) != 1 || changed[0].Group != "x.example" {
				f.Fatalf("changed: %+v", changed)
			}
			f.same("counts", changed[0].Queues, []frontier.Queue{{Group: "x.example", Crawl: 1, Count: 3 + round}})
			at := slices.IndexFunc(leases, func(l frontier.Lease) bool { return l.Group == "x.example" })
			f.same("token", changed[0].Token, leases[at].Token)
		}
		if _, changed := a.renew(long); len(changed) != 0 {
			f.Fatalf("news of before: %+v", changed)
		}
	}},
	{"an idle worker is woken when there is work for it", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.same("free groups", a.acquire(long, 10), []frontier.Lease(nil))
		a.quiet()
		b.add(page("x.example", "1"))
		a.fires()
		l := a.only(long, "x.example")
		a.quiet()
		b.quiet()
		a.release(l)
		b.fires()
		b.only(long, "x.example")
	}},
	{"the next owner finds the notes of the last", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(page("x.example", "1"))
		l := a.only(long, "x.example")
		if _, err := a.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{{Group: "x.example", Name: "clock", Value: []byte("owed until noon")}}}); err != nil {
			f.Fatal(err)
		}
		a.release(l)
		b.only(long, "x.example")
		note, err := b.Note(ctx, "x.example", "clock")
		if err != nil || string(note) != "owed until noon" {
			f.Fatalf("the note is %q, %v", note, err)
		}
	}},
	{"a group that another worker prefers is left to it, but not for ever", func(f *fleet) {
		a := f.start("a")
		a.add(page("x.example", "1"), page("y.example", "1"))
		prefers := func(g string) bool { return g == "x.example" }
		got, err := a.Acquire(ctx, "a", long, 10, prefers)
		if err != nil || len(got) != 1 || got[0].Group != "x.example" {
			f.Fatalf("got %+v, %v", got, err)
		}
		f.pass(f.patience)
		got, err = a.Acquire(ctx, "a", long, 10, prefers)
		if err != nil || len(got) != 1 || got[0].Group != "y.example" {
			f.Fatalf("after a while: %+v, %v", got, err)
		}
	}},
	{"no more groups are leased than asked for, those that wait longest first", func(f *fleet) {
		a := f.start("a")
		for i := range 6 {
			a.add(page(fmt.Sprintf("h%d.example", i), "1"))
			time.Sleep(3 * time.Millisecond) // the store's clock counts milliseconds
		}
		for i := range 3 {
			var names []string
			for _, l := range a.acquire(long, 2) {
				names = append(names, l.Group)
			}
			slices.Sort(names)
			f.same("leased", names, []string{fmt.Sprintf("h%d.example", 2*i), fmt.Sprintf("h%d.example", 2*i+1)})
		}
		f.same("leased", a.acquire(long, 2), []frontier.Lease(nil))
	}},
	{"a deadline lies before the end of the lease and moves with each renewal", func(f *fleet) {
		a := f.start("a")
		a.add(page("x.example", "1"))
		if !a.Deadline("x.example").IsZero() {
			f.Fatal("a deadline without a lease")
		}
		before := time.Now()
		a.only(long, "x.example")
		first := a.Deadline("x.example")
		if first.Before(before.Add(long/2)) || !first.Before(before.Add(long)) {
			f.Fatalf("the deadline is %v after the call", first.Sub(before))
		}
		a.renew(long)
		if !a.Deadline("x.example").After(first) {
			f.Fatal("the deadline did not move")
		}
	}},
	{"two processes with one worker's name are two", func(f *fleet) {
		a, b := f.start("twin"), f.start("twin")
		e := a.add(page("x.example", "1"))
		a.only(long, "x.example")
		f.same("free groups", b.acquire(long, 10), []frontier.Lease(nil))
		b.fenced(&frontier.Batch{Ack: refs(e)}, "x.example")
		b.renew(long)
		if _, err := a.Commit(ctx, &frontier.Batch{Ack: refs(e)}); err != nil {
			f.Fatal(err)
		}
	}},
	{"a group that was lost and leased again is not lost", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		e := a.add(page("x.example", "1"), page("y.example", "1"))
		f.same("leases", len(a.acquire(short, 10)), 2)
		f.pass(short)
		b.release(b.acquire(long, 10)...)
		a.fenced(&frontier.Batch{Ack: refs(e)}, "x.example", "y.example")
		prefers := func(g string) bool { return g == "x.example" }
		if got, err := a.Acquire(ctx, "a", long, 10, prefers); err != nil || len(got) != 1 {
			f.Fatal(got, err)
		}
		lost, _ := a.renew(long)
		f.same("what a lost", lost, []string{"y.example"})
	}},
	{"of many workers that want the same groups each is leased to one", func(f *fleet) {
		const groups = 60
		var members []*member
		for i := range 4 {
			members = append(members, f.start(fmt.Sprint("w", i)))
		}
		for i := range groups {
			members[0].add(page(fmt.Sprintf("h%d.example", i), "1"))
		}
		var mu sync.Mutex
		holder := map[string]string{}
		errs := make([]error, len(members))
		var end sync.WaitGroup
		for i, m := range members {
			end.Go(func() {
				for range 30 {
					leases, err := m.Acquire(ctx, m.name, long, 5, nil)
					if err != nil {
						errs[i] = err
						return
					}
					mu.Lock()
					for _, l := range leases {
						if other := holder[l.Group]; other != "" {
							errs[i] = fmt.Errorf("%s is leased to %s and %s", l.Group, other, m.name)
						}
						holder[l.Group] = m.name
					}
					mu.Unlock()
				}
			})
		}
		end.Wait()
		if err := errors.Join(errs...); err != nil {
			f.Fatal(err)
		}
		f.same("groups leased", len(holder), groups)
	}},
	{"dropping a crawl leaves nothing to lease", func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		a.add(pages("x.example", 3)...)
		l := a.only(long, "x.example")
		a.add(pages("y.example", 3)...)
		if err := b.DropCrawl(ctx, 1); err != nil {
			f.Fatal(err)
		}
		a.release(l)
		f.same("free groups", b.acquire(long, 10), []frontier.Lease(nil))
		if _, err := a.Commit(ctx, &frontier.Batch{Add: pages("z.example", 1)}); err == nil {
			f.Fatal("somebody added to a crawl that was dropped")
		}
	}},
}
