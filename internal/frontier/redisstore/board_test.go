package redisstore

import (
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
