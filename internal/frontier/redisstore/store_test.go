package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
	"tiptoe/internal/weburl"
)

func Test_a_redis_that_would_lose_the_crawl_is_refused(t *testing.T) {
	r := testenv.StartRedis(t)
	open := func(opts Options) (log, problem string) {
		var buf bytes.Buffer
		opts.URL, opts.Logger = r.URL(), slog.New(slog.NewTextHandler(&buf, nil))
		s, err := Open(ctx, opts)
		if err != nil {
			return buf.String(), err.Error()
		}
		s.Close()
		return buf.String(), ""
	}
	set := func(key, value string) {
		t.Helper()
		if _, err := r.Do("CONFIG", "SET", key, value); err != nil {
			t.Fatal(err)
		}
	}
	if log, problem := open(Options{}); log != "" || problem != "" {
		t.Errorf("a good redis: %q, %q", log, problem)
	}
	set("appendfsync", "everysec")
	if log, problem := open(Options{}); !strings.Contains(log, "set appendfsync always") || problem != "" {
		t.Errorf("everysec: %q, %q", log, problem)
	}
	set("appendonly", "no")
	if log, problem := open(Options{}); !strings.Contains(log, "set appendonly yes") || problem != "" {
		t.Errorf("no log: %q, %q", log, problem)
	}
	// It stays off: a log that is switched on again is written by a child.
	set("maxmemory", "100mb")
	set("maxmemory-policy", "allkeys-lru")
	if _, problem := open(Options{}); !strings.Contains(problem, "set maxmemory-policy noeviction") {
		t.Errorf("eviction: %q", problem)
	}
	set("maxmemory-policy", "noeviction")
	set("set-max-intset-entries", "64")
	if log, problem := open(Options{}); !strings.Contains(log, "set-max-intset-entries 512") || problem != "" {
		t.Errorf("small integer sets: %q, %q", log, problem)
	}
	if _, problem := open(Options{Shards: 4}); !strings.Contains(problem, "has format 1 shards 8, this process wants format 1 shards 4") {
		t.Errorf("another number of shards: %q", problem)
	}
	if _, problem := open(Options{Shards: 300}); !strings.Contains(problem, "too many") {
		t.Errorf("300 shards: %q", problem)
	}
	if _, problem := open(Options{Prefix: "a{b}"}); !strings.Contains(problem, "braces") {
		t.Errorf("braces: %q", problem)
	}
	r.Kill(t)
	if _, problem := open(Options{}); !strings.Contains(problem, "cannot reach Redis at "+r.Addr()) {
		t.Errorf("no redis: %q", problem)
	}
	if _, err := Open(ctx, Options{URL: "::"}); err == nil || !strings.Contains(err.Error(), "write redis://host:port") {
		t.Errorf("no URL: %v", err)
	}
}

func Test_a_closed_store_says_so(t *testing.T) {
	r := testenv.StartRedis(t)
	s := mustOpen(t, Options{URL: r.URL()})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Commit(ctx, &frontier.Batch{}); err != ErrClosed {
		t.Errorf("commit said %v", err)
	}
	if _, err := s.Acquire(ctx, "a", time.Second, 1, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("acquire said %v", err)
	}
}

func Test_one_process_is_one_worker_and_an_exclusive_one_none(t *testing.T) {
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL()})
	if _, err := s.Acquire(ctx, "a", time.Second, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Renew(ctx, "b", time.Second); err == nil || !strings.Contains(err.Error(), "worker a, not as b") {
		t.Errorf("as another worker: %v", err)
	}
	x := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if _, err := x.Acquire(ctx, "a", time.Second, 1, nil); err == nil || !strings.Contains(err.Error(), "exclusive") {
		t.Errorf("exclusively: %v", err)
	}
}

// A page's commit, with its links on its own host and its acknowledgement, is
// one call; links to other hosts take one more for each shard they are in.
func Test_the_commit_of_a_page_is_one_call(t *testing.T) {
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	calls := func(b *frontier.Batch) ([]frontier.Entry, int64) {
		t.Helper()
		before := s.Calls()
		added, err := s.Commit(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		return added, s.Calls() - before
	}
	first, n := calls(&frontier.Batch{Add: []frontier.Entry{entryOf("a.example", "0")}})
	if n != 1 {
		t.Errorf("a seed took %d calls", n)
	}
	page := &frontier.Batch{Ack: refsOf(first), Notes: []frontier.Note{{Group: "a.example", Name: "clock", Value: []byte("v")}}}
	for i := range 20 {
		page.Add = append(page.Add, entryOf("a.example", fmt.Sprint(i)), entryOf("www.a.example", fmt.Sprint(i)))
	}
	page.Mark = []frontier.Mark{{Crawl: 1, FP: weburl.Fingerprint{Hi: 1, Lo: 2}, Host: "a.example"}}
	if added, n := calls(page); n != 1 || len(added) != 39 {
		t.Errorf("a page took %d calls and added %d", n, len(added))
	}
	if _, n := calls(&frontier.Batch{Add: page.Add, Mark: page.Mark}); n != 0 {
		t.Errorf("links known to this process took %d calls", n)
	}
}

// Of pages in many shards each travels with its links, but for links that pages
// elsewhere wait for: those come first.
func Test_the_commit_of_many_pages_is_one_call_a_shard(t *testing.T) {
	r := testenv.StartRedis(t)
	s := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	var seeds []frontier.Entry
	shards := map[int]string{}
	for i := 0; len(shards) < 4; i++ {
		host := fmt.Sprintf("h%d.example", i)
		if _, taken := shards[s.shardOf(host)]; !taken {
			shards[s.shardOf(host)] = host
			seeds = append(seeds, entryOf(host, "0"))
		}
	}
	added, err := s.Commit(ctx, &frontier.Batch{Add: seeds})
	if err != nil {
		t.Fatal(err)
	}
	link := func(from, to, path string) frontier.Entry {
		e := entryOf(to, path)
		e.Beside = from
		return e
	}
	commit := func(wantCalls int64, wantNew int, b *frontier.Batch) {
		t.Helper()
		before := s.Calls()
		added, err := s.Commit(ctx, b)
		if n := s.Calls() - before; err != nil || n != wantCalls || len(added) != wantNew {
			t.Errorf("%d calls, %d new, %v; want %d and %d", n, len(added), err, wantCalls, wantNew)
		}
	}
	own := &frontier.Batch{Ack: refsOf(added)}
	for _, e := range seeds {
		own.Add = append(own.Add, link(e.Group, e.Group, "1"), link(e.Group, e.Group, "2"))
	}
	commit(4, 8, own)
	a, b := seeds[0].Group, seeds[1].Group
	notes := func(groups ...string) (list []frontier.Note) {
		for _, g := range groups {
			list = append(list, frontier.Note{Group: g, Name: "n", Value: []byte("v")})
		}
		return list
	}
	commit(3, 2, &frontier.Batch{Notes: notes(a, b), Add: []frontier.Entry{link(a, a, "3"), link(a, b, "3")}})
	commit(3, 1, &frontier.Batch{Notes: notes(a, b), Add: []frontier.Entry{link(a, a, "4"), link(b, a, "4")}}) // both wait for it
	commit(3, 1, &frontier.Batch{Notes: notes(a, b), Add: []frontier.Entry{entryOf(a, "5")}})                  // nobody says who does
}

func Test_a_seen_set_that_grows_keeps_every_URL(t *testing.T) {
	// One shard begins with 1,024 buckets and doubles once at 409,600 URLs.
	n := 420_000
	if testing.Short() {
		n = 220_000
	}
	r := testenv.StartRedis(t, "--appendfsync", "no")
	s := openTest(t, Options{URL: r.URL(), Exclusive: true, Shards: 1, SeenCache: 1})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	marks := make([]frontier.Mark, 0, n)
	// The ends of what a member can be, each in parts of their own.
	for i, lo := range []int64{0, 1, -1, 9, -9, 999_999_999, -999_999_999, 1_000_000_000, -1_000_000_000, -12_345_678, math.MaxInt64, math.MinInt64} {
		for part := range uint64(3) {
			marks = append(marks, frontier.Mark{Crawl: 1, Host: "a.example", FP: weburl.Fingerprint{Hi: (uint64(i)*3 + part) << 54, Lo: uint64(lo)}})
		}
	}
	for len(marks) < n {
		marks = append(marks, frontier.Mark{Crawl: 1, Host: "a.example", FP: weburl.Fingerprint{Hi: rnd.Uint64(), Lo: rnd.Uint64()}})
	}
	count := func() (seen, buckets int) {
		t.Helper()
		for field, to := range map[string]*int{"s": &seen, "b": &buckets} {
			v, err := r.Do("HGET", s.key(0, "c", "1"), field)
			if err != nil {
				t.Fatal(err)
			}
			*to, _ = strconv.Atoi(v)
		}
		return seen, buckets
	}
	for pass := range 2 { // the second finds every one of them
		for i := 0; i < n; i += 5000 {
			if _, err := s.Commit(ctx, &frontier.Batch{Mark: marks[i:min(i+5000, n)]}); err != nil {
				t.Fatal(err)
			}
		}
		seen, buckets := count()
		if want := max((n+199)/200, 1024); seen != n || buckets != want {
			t.Fatalf("pass %d: %d URLs in %d buckets, want %d in %d", pass, seen, buckets, n, want)
		}
	}
	for _, h := range []int{0, 17, 1023, n/200 - 1} {
		kind, err := r.Do("OBJECT", "ENCODING", s.key(0, "s", "1", fmt.Sprint(h)))
		if err != nil || kind != "intset" {
			t.Errorf("bucket %d is a %s, %v", h, kind, err)
		}
	}
	// Whole URLs go the same way.
	e := entryOf("a.example", "x")
	if added, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{e}, Mark: marks[:1]}); err != nil || len(added) != 1 {
		t.Fatal(added, err)
	}
	if err := s.DropCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if size, err := r.Do("DBSIZE"); err != nil || size != "2" { // the layout and the clock
		t.Errorf("after the drop there are %s keys, %v", size, err)
	}
}

func Test_a_drop_that_was_interrupted_is_ended_by_the_next_open(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	s := openTest(t, Options{URL: r.URL(), Exclusive: true})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	var batch frontier.Batch
	for i := range 600 {
		batch.Add = append(batch.Add, entryOf(fmt.Sprintf("h%d.example", i), "1"))
	}
	if _, err := s.Commit(ctx, &batch); err != nil {
		t.Fatal(err)
	}
	calls := 0
	s.fault = func() error { // the second round is never answered
		if calls++; calls > 2 {
			return errLost
		}
		return nil
	}
	if err := s.DropCrawl(ctx, 1); err == nil {
		t.Fatal("it was not interrupted")
	}
	s.fault = nil
	if _, err := s.Commit(ctx, &batch); err == nil {
		t.Fatal("a crawl that is being dropped took work")
	}
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if added, err := s.Commit(ctx, &batch); err != nil || len(added) != 600 {
		t.Fatalf("%d of 600 are new, %v", len(added), err)
	}
}

func Test_every_change_of_a_count_moves_its_version(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	s := openTest(t, Options{URL: r.URL(), Exclusive: true, Shards: 1})
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	version := func() string {
		t.Helper()
		v, err := r.Do("HGET", s.key(0, "c", "1"), "v")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	seen := map[string]bool{version(): true}
	var waiting []frontier.Entry
	for _, paths := range []string{"1", "2", "", "3"} { // added; one in, one out; acknowledged; added
		batch := &frontier.Batch{Ack: refsOf(waiting)}
		if paths != "" {
			batch.Add = []frontier.Entry{entryOf("a.example", paths)}
		}
		waiting = commit(t, s, batch)
		if v := version(); seen[v] {
			t.Errorf("after %q the version is %s again", paths, v)
		} else {
			seen[v] = true
		}
	}
}

func commit(t *testing.T, s *Store, b *frontier.Batch) []frontier.Entry {
	t.Helper()
	added, err := s.Commit(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func Test_a_place_and_its_bound(t *testing.T) {
	for _, c := range []struct {
		pos  frontier.Pos
		next frontier.Pos
		any  bool
	}{
		{frontier.Pos{}, frontier.Pos{ID: 1}, true},
		{frontier.Pos{Prio: 3, ID: math.MaxUint64}, frontier.Pos{Prio: 4}, true},
		{frontier.Pos{Prio: 255, ID: math.MaxUint64}, frontier.Pos{}, false},
	} {
		got, any := after(c.pos)
		if any != c.any || any && got != "["+posText(c.next) {
			t.Errorf("after %v: %q, %t", c.pos, got, any)
		}
	}
	var e frontier.Entry
	if parseMember("short", &e) == nil || parseMember(posText(frontier.Pos{Prio: 1, ID: 2}), &e) == nil {
		t.Error("half a member was read")
	}
}

func Test_what_a_redis_without_a_log_knew_before_its_last_start_is_not_trusted(t *testing.T) {
	r := testenv.StartRedis(t, "--appendonly", "no")
	s := openTest(t, Options{URL: r.URL()})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func(crawl frontier.CrawlID) {
		t.Helper()
		must(s.OpenCrawl(ctx, crawl))
		_, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{{Crawl: crawl, Group: "a.example", URL: "https://a.example/"}}})
		must(err)
		n, _, err := s.Pending(ctx, crawl)
		if n != 1 || err != nil {
			t.Fatalf("crawl %d has %d to do, %v", crawl, n, err)
		}
	}
	add(1)
	if _, err := r.Do("SAVE"); err != nil { // it comes back with a picture of this moment
		t.Fatal(err)
	}
	r.Kill(t)
	r.Start(t)
	var gone *frontier.NotOpenError
	for end := time.Now().Add(10 * time.Second); ; { // its connections have to be made anew
		n, _, err := s.Pending(ctx, 1)
		if errors.As(err, &gone) {
			break
		}
		if err == nil || time.Now().After(end) {
			t.Fatalf("%d to do, %v", n, err)
		}
	}
	add(2) // what is begun now is as good as before
}
