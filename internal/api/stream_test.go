package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

func (w *world) request(key, path string, header ...string) *http.Request {
	r, err := http.NewRequestWithContext(w.ctx(), "GET", w.srv.URL+path, nil)
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// event is one of a stream; a comment has only data.
type event struct{ name, id, data string }

// stream opens a job's events. next reads one and fails at the end.
func (w *world) stream(key, id, last string) (next func() (event, error), leave func()) {
	w.t.Helper()
	r := w.request(key, "/v1/jobs/"+id+"/events")
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := w.srv.Client().Do(r.WithContext(ctx))
	w.must(err)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	return func() (e event, err error) {
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return e, err
				}
				if line = strings.TrimSuffix(line, "\n"); line == "" {
					return e, nil
				}
				field, value, _ := strings.Cut(line, ": ")
				switch field {
				case "event":
					e.name = value
				case "id":
					e.id = value
				case "data", "":
					e.data = value
				}
			}
		}, func() {
			cancel()
			resp.Body.Close()
		}
}

func Test_a_stream_tells_everything_from_the_beginning_and_ends_with_the_job(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://a.example/")
		w.commit(page(crawlID, "https://a.example/1"), page(crawlID, "https://a.example/2"))
		w.must(w.db.AddEvents(w.ctx(), []ledger.JobEvent{{Job: id, At: time.Now(), Type: "warning", Data: `{"message":"80 %\nof it"}`}}))
		w.step(id, ledger.Completed, nil)
		next, leave := w.stream(w.ann, id, "")
		defer leave()
		var got []string
		var last event
		for {
			e, err := next()
			if err == io.EOF {
				break
			}
			w.must(err)
			if e.name == "" {
				continue
			}
			var data struct{ Status, Message, URL any }
			w.must(json.Unmarshal([]byte(e.data), &data))
			what := e.name
			for _, v := range []any{data.Status, data.Message, data.URL} {
				if v != nil {
					what += fmt.Sprintf(" %v", v)
				}
			}
			got, last = append(got, what), e
		}
		want := "status queued|status running|warning 80 %\nof it|status completed|page 200 https://a.example/1|page 200 https://a.example/2|end completed"
		if strings.Join(got, "|") != want {
			t.Errorf("%q", got)
		}
		if !strings.HasSuffix(last.id, ".end") {
			t.Errorf("%+v", last)
		}
		// A browser that has seen the end comes back and is told to stay away.
		if a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/events", "", "Last-Event-ID", last.id); a.status != 204 {
			t.Errorf("%+v", a)
		}
		// One that has seen all but the end is told only that.
		next, leave2 := w.stream(w.ann, id, strings.TrimSuffix(last.id, ".end"))
		defer leave2()
		next()
		if e, err := next(); err != nil || e.name != "end" || e.id != last.id {
			t.Errorf("%+v %v", e, err)
		}
		w.refused(w.do(w.ann, "GET", "/v1/jobs/"+id+"/events", "", "Last-Event-ID", "x"), 422)
		if a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/events?last_event_id="+last.id, ""); a.status != 204 {
			t.Errorf("%+v", a)
		}
	})
}

// A client that breaks off at random points and comes back with its last id
// sees each page and each event once, in order, while both are written.
func Test_a_client_that_comes_back_misses_nothing_and_sees_nothing_twice(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id, crawlID := w.begin(w.ann, "https://a.example/")
		const pages, warnings = 600, 60
		written := make(chan bool)
		go func() {
			defer close(written)
			for i := 0; i < pages; i += 20 {
				var batch []ledger.Page
				for k := range 20 {
					batch = append(batch, page(crawlID, fmt.Sprintf("https://a.example/%d", i+k)))
				}
				w.commit(batch...)
				for k := range 2 {
					w.must(w.db.AddEvents(w.ctx(), []ledger.JobEvent{{Job: id, At: time.Now(), Type: "warning", Data: fmt.Sprintf(`{"message":"%d"}`, i/10+k)}}))
				}
				w.svc.poke(id)
			}
			w.step(id, ledger.Completed, nil)
		}()
		seed := uint64(time.Now().UnixNano())
		t.Log("seed", seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		var urls, messages []string
		last, visits := "", 0
		for over := false; !over; visits++ {
			next, leave := w.stream(w.ann, id, last)
			for range rnd.IntN(60) {
				e, err := next()
				if err != nil {
					t.Fatal(err)
				}
				var data struct{ URL, Message string }
				if e.data != "" && e.name != "" {
					w.must(json.Unmarshal([]byte(e.data), &data))
				}
				switch e.name {
				case "page":
					urls = append(urls, data.URL)
				case "warning":
					messages = append(messages, data.Message)
				case "end":
					over = true
				}
				if e.id != "" {
					last = e.id
				}
				if over {
					break
				}
			}
			leave()
		}
		<-written
		var want []string
		for i := range pages {
			want = append(want, fmt.Sprintf("https://a.example/%d", i))
		}
		if strings.Join(urls, "\n") != strings.Join(want, "\n") {
			t.Errorf("after %d visits %d pages, not %d in order", visits, len(urls), pages)
		}
		for i, m := range messages {
			if m != fmt.Sprint(i) {
				t.Fatalf("warning %d is %s", i, m)
			}
		}
		if len(messages) != warnings {
			t.Errorf("%d warnings", len(messages))
		}
		if visits < 5 {
			t.Errorf("only %d visits", visits)
		}
	})
}

func Test_a_stream_shows_live_pictures_and_keeps_the_line_open(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.Beat, c.LiveEvery = 20*time.Millisecond, 5*time.Millisecond })
	id, _ := w.begin(w.ann, "https://a.example/")
	w.svc.mu.Lock()
	w.svc.status[id] = running()
	w.svc.mu.Unlock()
	next, leave := w.stream(w.ann, id, "")
	defer leave()
	comments, lives := 0, 0
	for comments < 4 || lives < 4 {
		e, err := next()
		if err != nil {
			t.Fatal(err)
		}
		switch e.name {
		case "":
			comments++
		case "live":
			lives++
			if e.id != "" || !strings.Contains(e.data, `"running":true`) {
				t.Fatalf("%+v", e)
			}
		}
	}
}

func Test_streams_are_bounded_for_each_key_and_end_with_the_client_and_the_server(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.MaxStreams, c.MaxRequests = 2, 1 })
	id, _ := w.begin(w.ann, "https://a.example/")
	next, leave := w.stream(w.ann, id, "")
	_, leave2 := w.stream(w.ann, id, "")
	a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/events", "")
	w.refused(a, 429)
	if a.header.Get("Retry-After") == "" {
		t.Error("without Retry-After")
	}
	_, leave3 := w.stream(w.annRO, id, "") // another key of theirs
	get[Me](w, w.ann, "/v1/me")            // streams hold no place of requests
	for w.svc.watchers(id) != 3 {
		time.Sleep(time.Millisecond)
	}
	leave2()
	leave3()
	for w.svc.watchers(id) != 1 {
		time.Sleep(time.Millisecond)
	}
	_, leave4 := w.stream(w.ann, id, "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w.must(w.srv.Config.Shutdown(ctx))
	for {
		if _, err := next(); err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			break
		}
	}
	leave()
	leave4()
}

func Test_a_stream_ends_when_its_key_is_revoked_or_its_job_deleted(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.Beat = 10 * time.Millisecond })
	id, _ := w.begin(w.ann, "https://a.example/")
	k := decode[NewKeyView](w, w.do(w.ann, "POST", "/v1/keys", `{}`), 201)
	next, leave := w.stream(k.Text, id, "")
	defer leave()
	if a := w.do(w.ann, "DELETE", "/v1/keys/"+k.ID, ""); a.status != 204 {
		t.Fatal(a)
	}
	for {
		if _, err := next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func Test_a_download_may_take_longer_than_any_request(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Timeout, c.WriteTimeout = 50*time.Millisecond, 500*time.Millisecond
		c.Export = func(_ context.Context, out io.Writer, _ string, _ int64) error {
			for range 20 {
				time.Sleep(50 * time.Millisecond)
				if _, err := out.Write(make([]byte, 64<<10)); err != nil {
					return err
				}
			}
			return nil
		}
	})
	id, _ := w.begin(w.ann, "https://a.example/")
	if a := w.do(w.ann, "GET", "/v1/jobs/"+id+"/export", ""); len(a.body) != 20*64<<10 {
		t.Errorf("%d bytes", len(a.body))
	}
}

func Test_a_reader_that_stalls_is_cut(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.WriteTimeout = 100 * time.Millisecond
		c.Export = func(_ context.Context, out io.Writer, _ string, _ int64) error {
			for { // until nobody takes it
				if _, err := out.Write(make([]byte, 64<<10)); err != nil {
					return err
				}
			}
		}
	})
	id, _ := w.begin(w.ann, "https://a.example/")
	resp, err := w.srv.Client().Do(w.request(w.ann, "/v1/jobs/"+id+"/export"))
	w.must(err)
	defer resp.Body.Close()
	for began := time.Now(); w.streamsOpen() != 0; time.Sleep(time.Millisecond) { // nothing is read until it was cut
		if time.Since(began) > 20*time.Second {
			t.Fatal("it waits for ever")
		}
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("it ended well")
	}
}

func (w *world) streamsOpen() int {
	w.api.streams.mu.Lock()
	defer w.api.streams.mu.Unlock()
	return w.api.streams.taken
}

func Test_a_stream_of_a_job_that_another_server_drives_tells_its_news_all_the_same(t *testing.T) {
	w := newWorld(t, openSQLite(t), func(c *Config) { c.LiveEvery = 20 * time.Millisecond })
	w.svc.away = true
	id, crawlID := w.begin(w.ann, "https://a.example/")
	w.svc.mu.Lock()
	w.svc.status[id] = crawl.Status{At: time.Now(), Queued: 3} // as the other server shows it
	w.svc.mu.Unlock()
	next, leave := w.stream(w.ann, id, "")
	defer leave()
	until := func(name string) (e event) {
		t.Helper()
		for e.name != name {
			var err error
			e, err = next()
			w.must(err)
		}
		return e
	}
	until("live")
	w.commit(page(crawlID, "https://a.example/1"))
	until("page")
	w.step(id, ledger.Paused, nil)
	if e := until("status"); !strings.Contains(e.data, `"status":"paused"`) {
		t.Error(e.data)
	}
	// What the other server showed last may still stand; the job runs no more.
	if v := get[Live](w, w.ann, "/v1/jobs/"+id+"/live"); v.Running {
		t.Errorf("%+v", v)
	}
}

// counted counts how often a job is read.
type counted struct {
	Store
	reads *atomic.Int64
}

func (s counted) Job(ctx context.Context, tenant, id string) (ledger.Job, error) {
	s.reads.Add(1)
	return s.Store.Job(ctx, tenant, id)
}

func Test_a_stream_of_a_job_that_waits_looks_for_news_of_another_server_with_each_beat(t *testing.T) {
	reads := new(atomic.Int64)
	w := newWorld(t, openSQLite(t), func(c *Config) {
		c.Store, c.LiveEvery, c.Beat = counted{c.Store, reads}, 5*time.Millisecond, 400*time.Millisecond
	})
	w.svc.away = true
	id := w.order(w.ann, "https://a.example/").ID
	next, leave := w.stream(w.ann, id, "")
	defer leave()
	until := func(status string) {
		t.Helper()
		for {
			if e, err := next(); err != nil {
				t.Fatal(err)
			} else if e.name == "status" && strings.Contains(e.data, `"status":"`+status+`"`) {
				return
			}
		}
	}
	until("queued")
	before := reads.Load()
	time.Sleep(200 * time.Millisecond)
	if n := reads.Load() - before; n > 2 {
		t.Errorf("a job that is queued was read %d times between two beats", n)
	}
	w.step(id, ledger.Running, nil) // there
	until("running")
	before = reads.Load()
	time.Sleep(200 * time.Millisecond)
	if n := reads.Load() - before; n < 5 {
		t.Errorf("a job that runs was read %d times", n)
	}
}
