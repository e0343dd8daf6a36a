package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

func entryOf(host, path string) frontier.Entry {
	return frontier.Entry{Crawl: 1, Group: host, Prio: 1, Via: frontier.ViaLink, URL: "https://" + host + "/" + path}
}

func refsOf(entries []frontier.Entry) []frontier.Ref {
	list := make([]frontier.Ref, len(entries))
	for i := range entries {
		list[i] = entries[i].Ref()
	}
	return list
}

// patiently repeats a call until Redis is back.
func patiently(call func() error) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = call(); err == nil {
			return nil
		}
	}
	return err
}

func Test_a_redis_killed_in_the_middle_of_commits_loses_nothing(t *testing.T) {
	const (
		walkers = 4
		pages   = 80 // a walker
		links   = 3
		kills   = 4
	)
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	// Each walker does what a crawl does: it takes a page, commits its links
	// (on other hosts) with its acknowledgement, and goes to one of them.
	var mu sync.Mutex
	done, found := map[string]int{}, map[string]bool{}
	progress := make(chan struct{}, walkers*pages)
	errs := make([]error, walkers)
	var end sync.WaitGroup
	for w := range walkers {
		end.Go(func() {
			at := entryOf(fmt.Sprintf("w%d.example", w), "start")
			mu.Lock()
			found[at.URL] = true
			mu.Unlock()
			var here []frontier.Entry
			errs[w] = patiently(func() (err error) {
				here, err = s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{at}})
				return err
			})
			for i := 0; i < pages && errs[w] == nil; i++ {
				if len(here) != 1 {
					errs[w] = fmt.Errorf("step %d of walker %d got %d entries: a link was lost or is known already", i, w, len(here))
					return
				}
				var next []frontier.Entry
				for l := range links {
					next = append(next, entryOf(fmt.Sprintf("w%d-%d.example", w, (i*links+l)%17), fmt.Sprint(i, l)))
				}
				var added []frontier.Entry
				errs[w] = patiently(func() (err error) {
					added, err = s.Commit(ctx, &frontier.Batch{Add: next, Ack: refsOf(here)})
					return err
				})
				mu.Lock()
				done[here[0].URL]++
				for _, e := range next {
					found[e.URL] = true
				}
				mu.Unlock()
				if len(added) != links && errs[w] == nil {
					errs[w] = fmt.Errorf("step %d of walker %d was told of %d links, found %d", i, w, len(added), links)
				}
				here = added[:min(1, len(added))]
				progress <- struct{}{}
			}
		})
	}
	for range kills {
		for range walkers * pages / (kills + 1) {
			<-progress
		}
		r.Kill(t)
		r.Start(t)
	}
	end.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	queued := map[string]bool{}
	err := patiently(func() error {
		return s.Queues(ctx, 1, func(q frontier.Queue) error {
			es, err := s.Window(ctx, q.Group, 1, frontier.Pos{}, 1<<20, nil)
			for _, e := range es {
				if queued[e.URL] {
					t.Errorf("%s is queued twice", e.URL)
				}
				queued[e.URL] = true
			}
			if len(es) != q.Count {
				t.Errorf("%s counts %d and has %d", q.Group, q.Count, len(es))
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for url := range found {
		if queued[url] == (done[url] > 0) {
			t.Errorf("%s: queued %t, done %d times", url, queued[url], done[url])
		}
	}
	if len(found) != walkers*(pages*links+1) || len(queued)+len(done) != len(found) {
		t.Errorf("%d found, %d queued, %d done", len(found), len(queued), len(done))
	}
	if n, stable, err := s.Pending(ctx, 1); err != nil || !stable || int(n) != len(queued) {
		t.Errorf("pending says %d (stable %t, %v), %d are queued", n, stable, err, len(queued))
	}
}

func Test_leases_and_fences_survive_a_restart_of_redis(t *testing.T) {
	r := testenv.StartRedis(t)
	a, b := openTest(t, Options{URL: r.URL()}), openTest(t, Options{URL: r.URL()})
	if err := a.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	e, err := a.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf("x.example", "1")}})
	if err != nil {
		t.Fatal(err)
	}
	if leases, err := a.Acquire(ctx, "a", time.Minute, 10, nil); err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	for len(a.wake) > 0 {
		<-a.wake
	}
	r.Kill(t)
	if _, err := a.Commit(ctx, &frontier.Batch{Ack: refsOf(e)}); err == nil || !strings.Contains(err.Error(), "redis at "+r.Addr()) {
		t.Errorf("without redis a commit said: %v", err)
	}
	if lost, _, err := a.Renew(ctx, "a", time.Minute); err == nil || len(lost) != 0 {
		t.Errorf("without redis a renewal said: %v, %v", lost, err)
	}
	r.Start(t)
	select {
	case <-a.Changed():
	case <-time.After(10 * time.Second):
		t.Error("the reconnect was not announced")
	}
	if err := patiently(func() error { _, _, err := a.Renew(ctx, "a", time.Minute); return err }); err != nil {
		t.Fatal(err)
	}
	var got []frontier.Lease
	if err := patiently(func() (err error) { got, err = b.Acquire(ctx, "b", time.Minute, 10, nil); return err }); err != nil || len(got) != 0 {
		t.Fatalf("b got %v, %v", got, err)
	}
	// Each connection of before finds out for itself that its server is gone.
	if err := patiently(func() error { _, err := a.Commit(ctx, &frontier.Batch{Ack: refsOf(e)}); return err }); err != nil {
		t.Fatal(err)
	}
}

func Test_a_redis_that_is_away_fails_every_call_in_time(t *testing.T) {
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL()})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	r.Stop(t)
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	start := time.Now()
	for name, call := range map[string]func() error{
		"commit": func() error {
			_, err := s.Commit(soon, &frontier.Batch{Add: []frontier.Entry{entryOf("x.example", "1")}})
			return err
		},
		"window": func() error { _, err := s.Window(soon, "x.example", 1, frontier.Pos{}, 1, nil); return err },
		"queues": func() error { return s.Queues(soon, 1, func(frontier.Queue) error { return nil }) },
		"note":   func() error { _, err := s.Note(soon, "x.example", "n"); return err },
		"open":   func() error { return s.OpenCrawl(soon, 2) },
		"drop":   func() error { return s.DropCrawl(soon, 3) },
		"beat":   func() error { _, err := s.Heartbeat(soon, frontier.Worker{ID: "a"}, time.Second); return err },
		"lease":  func() error { _, err := s.Acquire(soon, "a", time.Second, 1, nil); return err },
		"give":   func() error { return s.Release(soon, []frontier.Lease{{Group: "x.example", Token: 1}}) },
		"count":  func() error { _, _, err := s.Pending(soon, 1); return err },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

func Test_a_flushed_script_cache_is_filled_again(t *testing.T) {
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := r.Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		added, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf("x.example", fmt.Sprint(i)), entryOf("y.example", fmt.Sprint(i))}})
		if err != nil || len(added) != 2 {
			t.Fatal(added, err)
		}
	}
}

func Test_a_dead_workers_groups_are_all_taken_over_at_once(t *testing.T) {
	const groups = 2500
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	a, b := openTest(t, Options{URL: r.URL()}), openTest(t, Options{URL: r.URL()})
	if err := a.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	var batch frontier.Batch
	for i := range groups {
		batch.Add = append(batch.Add, entryOf(fmt.Sprintf("h%d.example", i), "1"))
	}
	if _, err := a.Commit(ctx, &batch); err != nil {
		t.Fatal(err)
	}
	first, err := a.Acquire(ctx, "a", 300*time.Millisecond, groups, nil)
	if err != nil || len(first) != groups {
		t.Fatalf("a got %d groups, %v", len(first), err)
	}
	tokens := map[string]uint64{}
	for _, l := range first {
		tokens[l.Group] = l.Token
	}
	time.Sleep(320 * time.Millisecond)
	second, err := b.Acquire(ctx, "b", time.Minute, 2*groups, nil)
	if err != nil || len(second) != groups {
		t.Fatalf("b got %d groups, %v", len(second), err)
	}
	for _, l := range second {
		if l.Token <= tokens[l.Group] {
			t.Fatalf("%s: token %d after %d", l.Group, l.Token, tokens[l.Group])
		}
		delete(tokens, l.Group)
	}
	lost, _, err := a.Renew(ctx, "a", time.Minute)
	if err != nil || len(lost) != groups || len(tokens) != 0 {
		t.Fatalf("a lost %d, b lacks %d, %v", len(lost), len(tokens), err)
	}
}

func Test_news_of_thousands_of_groups_arrives_whole(t *testing.T) {
	const groups = 3_000 // several pages
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	opts := Options{URL: r.URL(), Shards: 1}
	a, b := openTest(t, opts), openTest(t, opts)
	for _, s := range []*Store{a, b} {
		if err := s.OpenCrawl(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	var first, second frontier.Batch
	for i := range groups {
		g := fmt.Sprintf("h%d.example", i)
		first.Add = append(first.Add, entryOf(g, "1"))
		second.Add = append(second.Add, entryOf(g, "2"))
	}
	if _, err := b.Commit(ctx, &first); err != nil {
		t.Fatal(err)
	}
	if leases, err := a.Acquire(ctx, "a", time.Minute, groups, nil); err != nil || len(leases) != groups {
		t.Fatal(len(leases), err)
	}
	// One call marks up to 200 groups with one version; 70 ahead of them put
	// the end of a page in the middle of those.
	for _, part := range [][]frontier.Entry{second.Add[:70], second.Add[70:]} {
		if _, err := b.Commit(ctx, &frontier.Batch{Add: part}); err != nil {
			t.Fatal(err)
		}
	}
	a.fault = losses(3, 3) // what a lost answer said is said again
	news := map[string]int{}
	err := retry(func() error {
		_, changed, err := a.Renew(ctx, "a", time.Minute)
		for _, l := range changed {
			news[l.Group] = l.Queues[0].Count
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(news) != groups || slices.Max(slices.Collect(maps.Values(news))) != 2 || slices.Min(slices.Collect(maps.Values(news))) != 2 {
		t.Errorf("news of %d groups, want %d with two entries each", len(news), groups)
	}
}

func Test_a_commit_that_fails_anywhere_has_added_before_it_acknowledged(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	for fail := 1; ; fail++ {
		s := openTest(t, Options{URL: r.URL(), Exclusive: true, Prefix: newPrefix()})
		if err := s.OpenCrawl(ctx, 1); err != nil {
			t.Fatal(err)
		}
		pages, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf("a.example", "0"), entryOf("b.example", "0")}})
		if err != nil {
			t.Fatal(err)
		}
		batch := &frontier.Batch{Ack: refsOf(pages)}
		for i := range 20 {
			batch.Add = append(batch.Add, entryOf(fmt.Sprintf("h%d.example", i), "1"))
		}
		foreign := entryOf("elsewhere.example", "2") // paced with others, its URL belongs to another shard
		foreign.Group = "@named"
		batch.Add = append(batch.Add, foreign)
		calls := 0
		s.fault = func() error { // before and after each round of calls
			if calls++; calls == fail {
				return errLost
			}
			return nil
		}
		_, err = s.Commit(ctx, batch)
		s.fault = nil
		there := 0
		for _, e := range batch.Add {
			if w, err := s.Window(ctx, e.Group, 1, frontier.Pos{}, 10, nil); err != nil {
				t.Fatal(err)
			} else if len(w) == 1 {
				there++
			}
		}
		waiting := 0
		for _, e := range pages {
			if w, err := s.Window(ctx, e.Group, 1, frontier.Pos{}, 10, nil); err != nil {
				t.Fatal(err)
			} else if len(w) == 1 {
				waiting++
			}
		}
		if waiting < len(pages) && there < len(batch.Add) {
			t.Errorf("cut at %d: %d pages acknowledged, %d of %d links there", fail, len(pages)-waiting, there, len(batch.Add))
		}
		if err == nil {
			if fail < 6 || there != len(batch.Add) || waiting != 0 {
				t.Errorf("after %d cuts: %d links there, %d pages waiting", fail, there, waiting)
			}
			return
		}
		added, err := s.Commit(ctx, batch)
		if err != nil || len(added) != len(batch.Add) {
			t.Errorf("cut at %d: the repetition returned %d of %d links, %v", fail, len(added), len(batch.Add), err)
		}
	}
}
