package redisstore

import (
	"slices"
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

func Test_a_picture_stays_until_the_next_one_and_goes_with_its_worker(t *testing.T) {
	s := openTest(t, Options{URL: testenv.StartRedis(t).URL(), Prefix: newPrefix()})
	report := func(worker, picture string, ttl time.Duration) {
		t.Helper()
		r := frontier.Report{Crawl: 1, Worker: worker, Counters: []byte("{}")}
		if picture != "" {
			r.Picture = []byte(picture)
		}
		if err := s.Report(t.Context(), r, ttl); err != nil {
			t.Fatal(err)
		}
	}
	want := func(pictures bool, want map[string]string) {
		t.Helper()
		list, err := s.Reports(t.Context(), 1, pictures)
		if err != nil || len(list) != len(want) {
			t.Fatalf("%d reports, want %d: %v", len(list), len(want), err)
		}
		for _, r := range list {
			if string(r.Picture) != want[r.Worker] {
				t.Errorf("%s shows %q, want %q", r.Worker, r.Picture, want[r.Worker])
			}
		}
	}
	report("a", "one", time.Minute)
	report("b", "", time.Minute)
	want(true, map[string]string{"a": "one", "b": ""})
	want(false, map[string]string{"a": "", "b": ""})
	report("a", "", time.Minute)
	want(true, map[string]string{"a": "one", "b": ""})
	report("a", "two", time.Minute)
	want(true, map[string]string{"a": "two", "b": ""})
	report("a", "", 0)
	report("a", "", 100*time.Millisecond) // it comes back, and shows nothing old
	want(true, map[string]string{"a": "", "b": ""})
	report("a", "three", 100*time.Millisecond)
	time.Sleep(120 * time.Millisecond)
	want(true, map[string]string{"b": ""})
	report("a", "", time.Minute)
	want(true, map[string]string{"a": "", "b": ""})
}

func Test_a_crawl_that_goes_on_is_told_to_whoever_holds_its_hosts(t *testing.T) {
	opts := Options{URL: testenv.StartRedis(t).URL(), Prefix: newPrefix()}
	server, worker := openTest(t, opts), openTest(t, opts)
	for id := range frontier.CrawlID(2) {
		if err := server.OpenCrawl(ctx, id+1); err != nil {
			t.Fatal(err)
		}
		e := entryOf("a.example", "/")
		e.Crawl = id + 1
		commit(t, server, &frontier.Batch{Add: []frontier.Entry{e}})
	}
	first := true
	announce := func(held bool) {
		t.Helper()
		err := server.Announce(ctx, frontier.Announced{ID: 2, By: "s", First: first, Held: held})
		if first = false; err != nil {
			t.Fatal(err)
		}
	}
	told := func() []frontier.Lease {
		t.Helper()
		_, changed, err := worker.Renew(ctx, "w", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	announce(true)
	if got, err := worker.Acquire(ctx, "w", time.Minute, 10, nil); err != nil || len(got) != 1 {
		t.Fatalf("leased %v, %v", got, err)
	}
	if got := told(); len(got) != 0 {
		t.Errorf("told of %v while the crawl was held", got)
	}
	announce(false)
	got := told()
	if len(got) != 1 || !slices.ContainsFunc(got[0].Queues, func(q frontier.Queue) bool { return q.Crawl == 2 && q.Count == 1 }) {
		t.Errorf("told of %v", got)
	}
	announce(false) // it is on; that is not news
	if got := told(); len(got) != 0 {
		t.Errorf("told again of %v", got)
	}
}

func Test_what_is_shown_is_seen_by_all_until_its_time_is_over(t *testing.T) {
	opts := Options{URL: testenv.StartRedis(t).URL(), Prefix: newPrefix()}
	a, b := openTest(t, opts), openTest(t, opts)
	want := func(name, want string, most time.Duration) {
		t.Helper()
		text, left, err := b.Shown(t.Context(), name)
		if err != nil || string(text) != want || left > most || (left <= 0) != (text == nil) {
			t.Errorf("%s: %q for another %s: %v", name, text, left, err)
		}
	}
	want("x", "", 0)
	for _, text := range []string{"one", "\x00two\xff"} {
		if err := a.Show(t.Context(), "x", []byte(text), time.Minute); err != nil {
			t.Fatal(err)
		}
		want("x", text, time.Minute)
	}
	if texts, err := b.ShownOf(t.Context(), []string{"z", "x"}); err != nil || len(texts) != 2 || texts[0] != nil || string(texts[1]) != "\x00two\xff" {
		t.Errorf("%q, %v", texts, err)
	}
	if texts, err := b.ShownOf(t.Context(), nil); err != nil || texts != nil {
		t.Errorf("%q, %v", texts, err)
	}
	if err := a.Show(t.Context(), "y", []byte("brief"), 30*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(40 * time.Millisecond)
	want("y", "", 0)
}
