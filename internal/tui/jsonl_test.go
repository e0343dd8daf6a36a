package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/crawl"
)

func TestJSONWritesOneLineAPage(t *testing.T) {
	var out bytes.Buffer
	j := NewJSON(&out)
	events := []crawl.PageEvent{
		{At: fakeStart, URL: "https://a.example/?a=1&b=<2>", Outcome: "ok", Status: 200, Title: "A\nB", Tries: 1},
		{At: fakeStart, URL: "https://a.example/\u009b31m\u202e", Outcome: "timeout", Title: "tag \U000e0041", Error: "no answer"},
	}
	for _, ev := range events {
		if err := j.Page(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/pages.jsonl", out.String())
	var got []crawl.PageEvent
	for dec := json.NewDecoder(&out); dec.More(); {
		var ev crawl.PageEvent
		if err := dec.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		got = append(got, ev)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Error(diff)
	}
}

func TestJSONLinesDoNotWaitForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newScreen()
		j := NewJSON(out)
		for range 3 { // the timer must rearm
			before := len(out.String())
			_ = j.Page(crawl.PageEvent{URL: "https://a.example/"})
			time.Sleep(jsonFlush - time.Millisecond)
			synctest.Wait()
			if len(out.String()) != before {
				t.Fatal("nothing is buffered")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if len(out.String()) == before {
				t.Fatal("a line waits for longer than 200 ms")
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAReaderThatLeavesIsReportedOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	j := NewJSON(w)
	var told []error
	for range 2000 { // more than the buffer holds
		if err := j.Page(crawl.PageEvent{URL: "https://a.example/", Title: strings.Repeat("x", 100)}); err != nil {
			told = append(told, err)
		}
	}
	if err := j.Close(); err != nil {
		told = append(told, err)
	}
	if len(told) != 1 || !errors.Is(told[0], ErrSinkClosed) {
		t.Errorf("told %v", told)
	}
	select {
	case <-j.Gone():
	default:
		t.Error("Gone is not closed")
	}
}

func TestAFullDiskIsReportedAsWhatItIs(t *testing.T) {
	j := NewJSON(failingWriter{})
	_ = j.Page(crawl.PageEvent{})
	err := j.Close()
	if err == nil || errors.Is(err, ErrSinkClosed) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

func TestManyWritersNeverTearALine(t *testing.T) {
	var out bytes.Buffer
	j := NewJSON(&out)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_ = j.Page(crawl.PageEvent{URL: "https://a.example/ö"})
			}
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for dec := json.NewDecoder(&out); dec.More(); n++ {
		var ev crawl.PageEvent
		if err := dec.Decode(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1600 {
		t.Errorf("%d lines, want 1600", n)
	}
}

func FuzzJSONLinesAreSafeAndTrue(f *testing.F) {
	f.Add("https://a.example/", "title \u009b \u202e \U000e0041 \x7f")
	f.Fuzz(func(t *testing.T, url, title string) {
		if !utf8.ValidString(url) || !utf8.ValidString(title) {
			t.Skip("JSON has no form for broken UTF-8")
		}
		var out bytes.Buffer
		j := NewJSON(&out)
		_ = j.Page(crawl.PageEvent{At: fakeStart, URL: url, Title: title})
		_ = j.Close()
		line, ok := strings.CutSuffix(out.String(), "\n")
		if !ok {
			t.Fatal("no line break at the end")
		}
		checkSafe(t, "the line", line)
		var got crawl.PageEvent
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.URL != url || got.Title != title {
			t.Fatalf("%q, %q became %q, %q", url, title, got.URL, got.Title)
		}
	})
}

func BenchmarkJSONPage(b *testing.B) {
	j := NewJSON(io.Discard)
	defer j.Close()
	ev := crawl.PageEvent{At: fakeStart, URL: "https://shop.demo.test/p/1?a=1&b=2", Outcome: "ok", Status: 200, ContentType: "text/html", Title: "Oak table – 東京"}
	for b.Loop() {
		_ = j.Page(ev)
	}
}
